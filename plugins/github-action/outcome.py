"""Turn the document of `jumar run --json` into outputs of the step: CODE OUTCOME.json, on stdout.

Exit code 2 also means that the loop had ended in an earlier attempt of the job: with its threshold met, only what follows is left
to do.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main() -> None:
    """Print ``name=value`` lines."""
    code, text = int(sys.argv[1]), Path(sys.argv[2]).read_text("utf-8")
    try:
        told = json.loads(text)
    except ValueError:  # it was killed before it could say anything
        told = {}
    if code == 2 and told.get("already_finished") and told.get("gate_met"):
        code = 0
    loop = told.get("loop_id") or ""
    if any(letter in str(loop) for letter in "\r\n"):
        raise SystemExit("the loop's name is no line")
    print(f"code={code}")
    print(f"loop={loop}")
    for name, key in {"iteration": "selected_iteration", "score": "quality_score"}.items():
        print(f"{name}={'' if told.get(key) is None else told[key]}")


if __name__ == "__main__":
    main()
