"""``jumar run`` in dual mode learns: patterns grow, the gap narrows, a killed run comes to the same, ``converged`` ends it."""

from __future__ import annotations

import functools
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from loops import jumar, jumar_json

pytest.importorskip("sklearn")

# Items without meaning; some end with words that the judge holds against them.
AGENT = """
import json, os, random
number = int(os.environ.get("JUMAR_ITERATION", "0"))
words = "river stone paper window garden copper market bridge winter pencil harbor kettle ladder meadow".split()
with open("items.jsonl", "w") as file:
    for item in range(COUNT):
        draw = random.Random(f"{item} {min(number, 1)}")
        said = " ".join(draw.choices(words, k=12))
        poor = " roughly speaking" if draw.random() < (0.4 if number == 0 else 0.2) else ""
        file.write(json.dumps({"id": f"i{item}", "text": f"{said}{poor} {draw.choice(words)}."}) + "\\n")
"""
JUDGE = """
import json, os, sys, time
item = json.load(sys.stdin)["item"]
with open("asked.log", "a") as file:
    file.write(item["text"] + "\\n")
if os.path.exists("hang") and sum(1 for _ in open("asked.log")) > int(open("hang").read()):
    open("hangs", "w").close()
    while os.path.exists("hang"):  # no longer than the test lets it: a judge outlives the run that is killed
        time.sleep(0.05)
poor = "roughly speaking" in item["text"]
print(json.dumps({"gestalt": 2.0 if poor else 4.8, "reasoning": "", "usage": {"cost_usd": 0.01}}))
"""


def write(directory: Path, *, passes: int, count: int, learn: str) -> None:
    directory.mkdir(exist_ok=True)
    (directory / "agent.py").write_text(AGENT.replace("COUNT", str(count)))
    (directory / "judge.py").write_text(JUDGE)
    (directory / "own.json").write_text('{"version": "2.0", "patterns": []}')
    (directory / "jumar.toml").write_text(
        f"""
[loop]
id = "t"
max_iterations = {passes}
[artifacts]
include = ["items.jsonl"]
[generator]
command = [{json.dumps(sys.executable)}, "-SE", "agent.py"]
[evaluator]
items = "items.jsonl"
judge = "command:{sys.executable} -SE judge.py"
patterns = "own.json"
learn = "{learn}"
repeat = 1
concurrency = 1
[budget]
max_cost_usd = 5
on_unknown_cost = "allow"
[stop]
converged = true
"""
    )
    subprocess.run([sys.executable, "-SE", "agent.py"], cwd=directory, check=True)


@functools.cache
def learned(directory: Path) -> list[dict[str, Any]]:
    records = jumar_json(directory, "show", "t")["iterations"]
    return [record["readings"][0]["judgement"] for record in records]


def patterns(directory: Path, number: int) -> list[dict[str, Any]]:
    name = f".jumar/loops/t/iterations/iteration-{number:03d}/logs/evaluation/learned/patterns.json"
    found: dict[str, Any] = json.loads((directory / name).read_text())
    dated = {"discovered_at"}  # of the loop that found it
    return [{key: value for key, value in one.items() if key not in dated} for one in found["patterns"]]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    directory = tmp_path_factory.mktemp("whole")
    write(directory, passes=5, count=30, learn="evidence")
    return directory, json.loads(jumar(directory, "run", "--json", check=0, timeout=250).stdout)


def test_patterns_grow_the_gap_narrows_and_converged_ends_the_loop(whole: tuple[Path, dict[str, Any]]) -> None:
    directory, result = whole
    assert ("converged", 0) == (result["stop_reason"], result["exit_code"])
    assert "the cheap judge tracks the expensive one" in result["stop_detail"]
    found = learned(directory)
    first, last = found[0], found[-1]
    assert first["abs_gap"] > 1
    assert last["abs_gap"] < 0.1
    assert [False] * (len(found) - 1) + [True] == [one["learned"]["converged"] for one in found]
    assert all(last["learned"]["checks"].values())
    assert last["learned"]["tracks"] is True
    assert first["learned"]["committed"] > 0
    assert any("roughly" in phrase for one in patterns(directory, 0) for phrase in one["phrases"])
    assert '{"version": "2.0", "patterns": []}' == (directory / "own.json").read_text()


def test_learning_asks_nobody_and_what_was_asked_is_counted(whole: tuple[Path, dict[str, Any]]) -> None:
    directory, _ = whole
    asked = (directory / "asked.log").read_text().splitlines()
    assert len(asked) == len(set(asked)) == 60  # thirty texts, revised once
    assert pytest.approx(0.6) == sum(one["known_cost_usd"] for one in learned(directory))


def test_report_status_and_prompt_say_what_was_learned(whole: tuple[Path, dict[str, Any]]) -> None:
    directory, _ = whole
    report = jumar(directory, "report", "t").stdout
    assert "## Learned by the Cheap Judge" in report
    command = next(line.strip() for line in report.splitlines() if line.startswith("    cp "))
    subprocess.run(command.replace(" patterns.json", " mine.json"), shell=True, cwd=directory, check=True)
    taken = json.loads(jumar(directory, "evaluate", "items.jsonl", "--mode", "cheap", "--patterns", "mine.json", "--json").stdout)
    assert abs(taken["cheap"]["gestalt_avg"] - learned(directory)[-1]["gestalt"]) < 0.1
    status = jumar_json(directory, "status", "t")["learned"]
    assert learned(directory)[-1]["learned"] == status
    assert "converged" in jumar(directory, "status", "t").stdout
    prompt = (directory / ".jumar/loops/t/iterations/iteration-001/logs/prompt.md").read_text()
    assert "the rules learn from the judge: " in prompt


def test_a_run_that_was_killed_learns_the_same(tmp_path: Path) -> None:
    unbroken, killed = tmp_path / "unbroken", tmp_path / "killed"
    for directory in (unbroken, killed):
        write(directory, passes=1, count=14, learn="seed")
    jumar(unbroken, "run", check=0, timeout=100)
    (killed / "hang").write_text("20")
    process = subprocess.Popen([sys.executable, "-m", "jumar.cli.entry", "run"], cwd=killed, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not (killed / "hangs").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.kill()
    assert -signal.SIGKILL == process.wait(timeout=60)
    (killed / "hang").unlink()

    told = jumar(killed, "run", check=0, timeout=100).stdout
    assert " ".join(f"Not converged: {learned(killed)[-1]['learned']['missing']}.".split()) in " ".join(told.split())

    one, other = learned(unbroken), learned(killed)
    assert [2, 2] == [len(one), len(other)]
    assert [each["learned"] for each in one] == [each["learned"] for each in other]
    assert all(each["learned"]["set"] is not None for each in one)
    assert [each["abs_gap"] for each in one] == [each["abs_gap"] for each in other]
    for number in range(2):
        assert patterns(unbroken, number) == patterns(killed, number)
