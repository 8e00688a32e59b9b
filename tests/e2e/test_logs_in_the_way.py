"""What a candidate's code makes of the logs of its own evaluation before it kills jumar: nothing is written through them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CONFIG = f"""
[loop]
id = "t"
max_iterations = 2

[generator]
command = "{sys.executable} ../agent.py"

[[checks]]
name = "works"
command = "{sys.executable} check.py"
"""
AGENT = """
import os
from pathlib import Path
Path("m.py").write_text(Path("../bad.py").read_text() + f"\\nvalue = 2  # {os.environ['JUMAR_ITERATION']}\\n")
"""
BAD = """
import os, signal
from pathlib import Path
place, done = Path(os.environ["JUMAR_PROMPT_FILE"]).parent, Path({done!r})
if os.environ["JUMAR_ITERATION"] == "1" and not done.exists():
    done.touch()
    prompt, feedback, persons = place / "prompt.md", place / "feedback.json", Path({persons!r})
    {does}
    if {kills}:
        leader = Path(f"/proc/{{os.getsid(0)}}/stat").read_text()
        os.kill(int(leader.rpartition(")")[2].split()[1]), signal.SIGKILL)
"""
DEEDS = {
    "a link for a log": "prompt.unlink(); feedback.unlink(); feedback.symlink_to(persons / 'notes')",
    "links for both": (
        "prompt.unlink(); prompt.symlink_to(persons / 'new'); feedback.unlink(); feedback.symlink_to(persons / 'notes')"
    ),
    "a file for the logs": "place.rename(place.parent / 'gone'); place.touch()",
    "a link for the logs": "place.rename(place.parent / 'gone'); place.symlink_to(persons)",
    "a pipe for the prompt": "prompt.unlink(); os.mkfifo(prompt)",
    "a directory for the feedback": "prompt.unlink(); feedback.unlink(); (feedback / 'x').mkdir(parents=True)",
    "a prompt of a terabyte": "os.truncate(prompt, 1 << 40)",
    "scratch folders of later steps": (
        "[(place.parents[2] / f'scratch/{number:06d}').symlink_to(persons) for number in range(4, 30)]"
    ),
}


def run(place: Path) -> int:
    argv = [sys.executable, "-m", "jumar.cli.entry", "run"]
    return subprocess.run(argv, cwd=place, capture_output=True, timeout=60, check=False).returncode


@pytest.mark.parametrize("kills", [True, False])
@pytest.mark.parametrize("deed", DEEDS)
def test_it_leads_to_no_file_of_a_persons_and_ends_no_loop(fresh_place: Path, deed: str, *, kills: bool) -> None:
    persons = fresh_place.parent / "persons"
    persons.mkdir()
    (persons / "notes").write_text("mine")
    (fresh_place / "m.py").write_text("value = 1\n")
    (fresh_place / "check.py").write_text("import m\nassert m.value == 2\n")
    (fresh_place / "jumar.toml").write_text(CONFIG)
    (fresh_place.parent / "agent.py").write_text(AGENT)
    done = fresh_place.parent / "done"
    bad = BAD.format(done=str(done), persons=str(persons), does=DEEDS[deed], kills=kills)
    (fresh_place.parent / "bad.py").write_text(bad)

    codes = [run(fresh_place) for _ in range(1 + kills)]

    assert codes[-1] in {0, 10}, codes
    assert (codes[0] == -9) == kills
    assert done.exists()
    assert {"notes": "mine"} == {path.name: path.read_text() for path in persons.iterdir()}
    stored = fresh_place / ".jumar/loops/t"
    assert all(path.stat().st_blocks < 100_000 for path in stored.rglob("*") if path.is_file())
    assert subprocess.run([sys.executable, "-m", "jumar.cli.entry", "verify", "t"], cwd=fresh_place, check=False).returncode == 0
