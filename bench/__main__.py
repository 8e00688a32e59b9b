"""``make bench``: what jumar costs, always as a ratio against a peer or a limit measured in the same run.

Run all of it, or name parts: ``python bench record snapshot startup engine budget topk cases patterns judge``. Sizes are for two
shared cores and some five minutes.
"""

from __future__ import annotations

import importlib
import os
import platform
import sys
import tempfile
from pathlib import Path

PARTS = (
    "startup",
    "record",
    "snapshot",
    "engine",
    "conditions",
    "defences",
    "budget",
    "cases",
    "cheap",
    "judge",
    "learning",
    "dashboard",
)


def machine() -> str:
    """Return one line about where the figures come from."""
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    return f"Python {platform.python_version()}, {system}, {os.cpu_count()} cores"


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parent))
    chosen = sys.argv[1:] or PARTS
    print(f"machine: {machine()}\n")
    print("| what | figure | against | aim |")
    print("|---|---|---|---|")
    for name in chosen:
        with tempfile.TemporaryDirectory(prefix="jumar-bench-", dir=os.environ.get("JUMAR_BENCH_DIR")) as directory:
            for row in importlib.import_module(f"part_{name}").measure(Path(directory)):
                print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
