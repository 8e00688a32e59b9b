"""The generator of the real loops: a program that does what ``deeds.json`` says of this run of this iteration.

Which run it is follows from the attempts on disk, as in :mod:`wild_world`: what was lost happens again.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
DEEDS, STORE = (Path(name) for name in sys.argv[1:3])


def act(name):
    """Do one of the things that agents do beside their work."""
    if name == "flood":
        for _ in range(2_000):
            os.write(1, b"x" * 1023 + b"\n")
    elif name == "edit-check":
        Path("check.sh").write_text("exit 0\n")
    elif name == "edit-store":
        (STORE / "loop.json").write_text("{}")
    elif name == "plant":
        (STORE / "iterations" / "iteration-099").mkdir()
        (STORE / "iterations" / "iteration-099" / "metrics.json").write_text('{"quality_score": 100}')
    elif name == "edit-start":
        (STORE / "iterations" / "iteration-000" / "metrics.json").write_text('{"quality_score": 0}')
    elif name == "429":
        print("Error: HTTP 429 Too Many Requests, retry after 0.2 s", flush=True)
        sys.exit(1)
    elif name.startswith("exit-"):
        sys.exit(int(name[5:]))
    elif name == "sleep":
        time.sleep(0.2)
    else:
        sys.path.insert(0, str(HERE))
        from wild_agent import ACTIONS

        ACTIONS[name]()


def run_of(iteration):
    """Return how many runs of this iteration have come to an end."""
    found = 0
    for start in STORE.glob("attempts/*.start.json"):
        end = start.with_name(start.name.replace(".start.", ".end."))
        begun = json.loads(start.read_text())
        if begun["iteration"] == iteration and begun["purpose"] == "generate" and end.exists():
            found += json.loads(end.read_text())["outcome"] not in {"lost", "interrupted"}
    return found


def main():
    iteration = int(os.environ["JUMAR_ITERATION"])
    deed = json.loads(DEEDS.read_text())[str(iteration)][run_of(iteration)]
    if deed["text"] is not None:
        Path("out.txt").write_text(deed["text"])
    if deed["usage"]:
        Path(os.environ["JUMAR_USAGE_FILE"]).write_text(json.dumps(deed["usage"]))
    if deed["printed"]:
        print("working", flush=True)
    for name in deed["acts"]:
        act(name)


if __name__ == "__main__":
    main()
