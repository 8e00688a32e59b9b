"""Agents that change by what they are judged, and end jumar before anybody looks."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from loops import jumar, write_loop

JUDGED = """
[evaluator]
mode = "expensive"
items = "items.jsonl"
judge = "replay:judged.jsonl"
"""
CHANGE = """
import signal
os.chdir(os.environ["JUMAR_PROJECT_DIR"])
if not os.path.exists("../once"):
    open("../once", "w").close()
    open("items.jsonl", "w").write('{"id": "a", "text": "two"}')
    open("judged.jsonl", "w").write('{"id": "a", "judge_scores": 5}')
    os.kill(os.getppid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("isolation", ["none", "copy"])
def test_what_a_killed_run_left_of_what_judges_is_not_judged_by(fresh_place: Path, isolation: str) -> None:
    config = write_loop(fresh_place, [0.1], loop=f'isolation = "{isolation}"', check=None)
    config.write_text(config.read_text().partition("[[scorers]]")[0].replace('"text.md"]', '"text.md", "items.jsonl"]') + JUDGED)
    honest = '{"id": "a", "judge_scores": 2}'
    (fresh_place / "judged.jsonl").write_text(honest)
    (fresh_place / "items.jsonl").write_text('{"id": "a", "text": "one"}')
    with (fresh_place / "agent.py").open("a") as agent:
        agent.write(CHANGE)
    jumar(fresh_place, "run", check=-signal.SIGKILL)
    refused = jumar(fresh_place, "run", check=2)
    assert "judged.jsonl, by which it is judged, is not as when the loop was started" in " ".join(refused.stderr.split())

    (fresh_place / "judged.jsonl").write_text(honest)
    jumar(fresh_place, "run")
    record = json.loads((fresh_place / ".jumar/loops/t/iterations/iteration-001/metrics.json").read_text())
    assert 25 == record["quality_score"]


def test_the_scorer_of_the_hold_out_is_put_back(fresh_place: Path) -> None:
    (fresh_place / "hold.sh").write_text("echo 0.2")
    config = write_loop(fresh_place, [0.9], extra='[holdout]\n[[holdout.scorers]]\ndimension = "own"\ncommand = "sh hold.sh"\n')
    config.write_text(config.read_text().replace('"text.md"]', '"text.md", "*.sh"]'))
    with (fresh_place / "agent.py").open("a") as agent:
        agent.write("open('hold.sh', 'w').write('echo 0.9')\n")
    jumar(fresh_place, "run")

    loop = fresh_place / ".jumar/loops/t"
    record = json.loads((loop / "iterations/iteration-001/metrics.json").read_text())
    assert record["tampering"][0].startswith("hold.sh, which scorer 'own' runs, was changed by the generator and put back")
    assert {20} == {json.loads(path.read_text())["score"] for path in loop.glob("readings/*-holdout-*.json")}


PLANT = """
import signal
if n == 1 and not os.path.exists("../once"):
    open("../once", "w").close()
    os.makedirs(".venv/bin")
    open(".venv/bin/cat", "w").write("echo 0.9")
    os.chmod(".venv/bin/cat", 0o755)
    os.kill(os.getppid(), signal.SIGKILL)
"""


def test_a_program_that_a_killed_run_left_on_the_path_is_none_of_the_scorer_s(
    fresh_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{fresh_place}/.venv/bin:{os.environ['PATH']}")
    write_loop(fresh_place, [0.1])
    with (fresh_place / "agent.py").open("a") as agent:
        agent.write(PLANT)
    jumar(fresh_place, "run", check=-signal.SIGKILL)
    jumar(fresh_place, "run")
    record = json.loads((fresh_place / ".jumar/loops/t/iterations/iteration-001/metrics.json").read_text())
    assert [".venv/bin/cat would run instead of what a check names, and was taken out"] == record["tampering"]
    assert 10 == record["quality_score"]


OWN = """
[loop]
max_iterations = 50
[generator]
command = "true"
[[scorers]]
dimension = "own"
command = "echo 1"
"""


@pytest.mark.parametrize("kill", ["", "os.kill(os.getppid(), signal.SIGKILL)"])
def test_a_configuration_that_an_agent_writes_is_not_that_of_the_next_run(fresh_place: Path, kill: str) -> None:
    (fresh_place / "agent.py").write_text(f"import os, signal\nopen('jumar.toml', 'w').write({OWN!r})\n{kill}\n")
    command = ("run", "-n", "1", "--include", "out.txt", "--check", "test -f out.txt", "--", sys.executable, "agent.py")
    jumar(fresh_place, *command, check=-signal.SIGKILL if kill else 10)
    after = jumar(fresh_place, "run", check=2)

    loops = list((fresh_place / ".jumar/loops").iterdir())
    assert 1 == len(loops)
    if kill:
        assert "did not end: jumar was killed while an agent ran" in " ".join(after.stderr.split())
    else:
        (said,) = json.loads((loops[0] / "iterations/iteration-001/metrics.json").read_text())["tampering"]
        assert said.startswith("jumar.toml would be the configuration of the next `jumar run`")
        assert not (fresh_place / "jumar.toml").exists()
