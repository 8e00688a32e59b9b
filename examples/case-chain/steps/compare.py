"""Compare two runs of the same cases: the overall score of each case's best iteration.

jumar cases replay RUN --json > one.json
python3 compare.py one.json other.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def scores(path: Path) -> dict[int, float | None]:
    """Return the overall score of the best iteration by case; None for a case without one."""
    cases = json.loads(path.read_text())["cases"]
    return {case["case"]: None if case["ranking"] is None else case["ranking"]["overall"] for case in cases}


def main() -> None:
    runs = {Path(name).stem: scores(Path(name)) for name in sys.argv[1:]}
    cases = sorted({case for found in runs.values() for case in found})
    print("best overall score".ljust(20) + "".join(f"case {case}".rjust(9) for case in cases))
    for name, found in runs.items():
        cells = ("—" if found.get(case) is None else f"{found[case]:g}" for case in cases)
        print(f"{name} carried".ljust(20) + "".join(cell.rjust(9) for cell in cells))


if __name__ == "__main__":
    main()
