"""Record the goldens anew: ``python tests/golden/record.py`` what is compared, ``--stores [NAME]`` the stores before that.

A store is a witness of the day it was written on: later versions have to read it. So `--stores` is for one that is new, and for
nothing else; one that cannot be read any more is not to be recorded again. Everything in them is made up, from `places/` and from
`jumar init`. Commands to compare stand in `documents/*.json` and `errors.json`: add one by its `command` alone, and record.
"""

from __future__ import annotations

import io
import json
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
PLACE = Path("/tmp/jumar-golden")  # the same on every machine: the views in a store name it
INSIDE = PLACE / "here"
JUMAR = PLACE / "bin" / "jumar"  # a store tells the command that wrote it
LEFT_OUT = {"ballast"}  # half a megabyte of noise that is only there to be given up


def main() -> int:
    """Record, and end with pytest's code."""
    if sys.argv[1:2] == ["--stores"]:
        for name in sys.argv[2:] or MAKERS:
            _make(name)
    tests = ["-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", str(HERE)]
    return subprocess.run([sys.executable, *tests], env={**os.environ, "GOLDEN": "record"}, check=False).returncode


# ---------------------------------------------------------------------------------------------------- what is in the stores


def _loop() -> None:
    """A whole loop in the person's directory: costs, a failure, then a choice of the person's, applied."""
    _copy("loop")
    _jumar("run")
    _jumar("select", "--use", "4", "--reason", "keeps the API stable")
    _jumar("apply")


def _loop_killed() -> None:
    """Killed while the generator of iteration 4 runs."""
    _copy("loop")
    _killed("hold-agent", "run")


def _loop_pending() -> None:
    """Killed while the snapshot of iteration 2 is checked."""
    _copy("loop")
    _killed("hold-check", "run")


def _wide() -> None:
    """Two candidates in copies, partial credit, protected files, an evaluation that learns, repeated scores, a hold-out."""
    _copy("wide")
    _jumar("run")


def _tracked() -> None:
    """What a program records with the tracker."""
    program = """
from pathlib import Path
from jumar import BestOutputTracker
tracker = BestOutputTracker("tracked")
for number, quality in enumerate([0.6, 0.9, 0.7], start=1):
    Path("output.md").write_text(f"draft {number}\\n")
    scores = dict.fromkeys(tracker.quality_weights, quality)
    tracker.record_iteration(
        iteration_number=number, dimensions=scores, artifacts=["output.md"], tokens_used=number, token_cost_usd=number / 100
    )
tracker.apply_output()
"""
    subprocess.run([sys.executable, "-c", program], cwd=INSIDE, env=_environment(), check=True)


def _cases() -> None:
    """A whole run of two cases, one failed iteration in it."""
    _copy("cases")
    _jumar("cases", "run")


def _cases_killed() -> None:
    """Killed in the first step of the second iteration of the second case."""
    _copy("cases")
    _killed("hold-step", "cases", "run")


def _learn() -> None:
    """A cheap judge learned from recorded verdicts in one iteration, and its proof."""
    _jumar("init", "--template", "learn")
    _jumar("learn", "answers.jsonl", "--judge", "replay:judged.jsonl", "-o", "out", "--max-iterations", "1")


def _judged() -> None:
    """A folder of two evaluations, by the cheap judge and by both."""
    _jumar("init", "--template", "judge")
    _few("answers.jsonl", 6)
    _jumar("evaluate", "few.jsonl", "--mode", "cheap", "-o", "out")
    _jumar("evaluate", "few.jsonl", "--judge", "replay:judged.jsonl", "-o", "out")


def _patterns() -> None:
    """Patterns with a history, and a number of items to keep that was tuned."""
    words = ["Include error handling", "Name the time zone", "Say which user it is for", "As everybody knows"]
    for known in (3, 4):
        listed = [
            {"type": "good_pattern", "description": text, "example": f"It does: {text}.", "discovered_at": "2026-01-02"}
            for text in words[:known]
        ]
        (INSIDE / "learned.json").write_text(json.dumps({"version": "1.0", "patterns": listed}))
        _jumar("patterns", "migrate", "learned.json", "-o", "patterns.json")
    _jumar("init", "--template", "topk")
    _few("runs.jsonl", 3)
    _jumar("topk", "tune", "runs.jsonl", "-o", "topk.toml")


MAKERS: dict[str, Callable[[], None]] = {
    "loop": _loop,
    "loop-killed": _loop_killed,
    "loop-pending": _loop_pending,
    "wide": _wide,
    "tracked": _tracked,
    "cases": _cases,
    "cases-killed": _cases_killed,
    "learn": _learn,
    "judged": _judged,
    "patterns": _patterns,
}


# ---------------------------------------------------------------------------------------------------------------- making


def _make(name: str) -> None:
    shutil.rmtree(PLACE, ignore_errors=True)
    INSIDE.mkdir(parents=True)
    JUMAR.parent.mkdir()
    JUMAR.symlink_to(Path(sys.executable).parent / "jumar")
    MAKERS[name]()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path in sorted(INSIDE.iterdir()):
            archive.add(path, path.name, filter=_member)
    small = lzma.compress(packed.getvalue(), preset=9 | lzma.PRESET_EXTREME)
    (HERE / "stores" / f"{name}.tar.xz").write_bytes(small)
    shutil.rmtree(PLACE)
    print(f"{name}: {len(small):,} bytes")


def _member(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return None if Path(member.name).name in LEFT_OUT else member


def _copy(source: str) -> None:
    shutil.copytree(HERE / "places" / source, INSIDE, dirs_exist_ok=True)


def _few(name: str, lines: int) -> None:
    kept = (INSIDE / name).read_text().splitlines(keepends=True)[:lines]
    (INSIDE / "few.jsonl").write_text("".join(kept))


def _environment() -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("JUMAR_", "GIT_"))}
    return {**ours, "XDG_STATE_HOME": str(PLACE / "state"), "LOGNAME": "somebody", "PATH": f"{JUMAR.parent}:{os.environ['PATH']}"}


def _jumar(*arguments: str) -> None:
    subprocess.run(["jumar", *arguments], cwd=INSIDE, env=_environment(), check=True, stdout=subprocess.DEVNULL)


def _killed(hold: str, *arguments: str) -> None:
    """Run until a step that waits while the file ``hold`` is there says who it is; then kill jumar, and let the step end."""
    held = PLACE / "held"
    (PLACE / hold).touch()
    process = subprocess.Popen(["jumar", *arguments], cwd=INSIDE, env=_environment(), stdout=subprocess.DEVNULL)
    while not (held.exists() and held.read_text().strip()):
        assert process.poll() is None, f"ended with {process.returncode} before it was held"
        time.sleep(0.05)
    process.kill()
    process.wait()
    (PLACE / hold).unlink()
    while _runs(int(held.read_text())):
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
