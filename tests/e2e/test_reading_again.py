"""Candidates that wait until they are scored again after the last iteration: what decides is guarded then as it was before."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from loops import jumar

from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.verify import verify

TESTS = "import candidate\nPASS = [candidate.right(number) for number in range(1, 5)]\n"
SCORE = """
import os, sys
sys.path.insert(0, ".")
import exam
print(0.1 + sum(exam.PASS) / 5 + (0.02 if os.environ.get("JUMAR_REPEAT") == "1" else -0.02))
"""
CANDIDATE = """
import glob, os, pathlib, shutil
scratch = pathlib.Path(os.environ["JUMAR_FEEDBACK_FILE"]).parent
if scratch.parent.name == "scratch":
    store, origin = scratch.parents[1], pathlib.Path(os.environ["JUMAR_PROJECT_DIR"])
    {act}
def right(number):
    return number <= {good}
"""
LOOP = """
[loop]
id = "t"
max_iterations = 2
protect = ["exam.py"]
isolation = "{isolation}"
[generator]
command = ["{python}", "-c", "import os, shutil; shutil.copy('{top}/' + os.environ['JUMAR_ITERATION'] + '.py', 'candidate.py')"]
[[checks]]
name = "there"
command = "test -e exam.py"
[[{holdout}scorers]]
dimension = "exam"
command = ["{python}", "-B", "{top}/score.py"]
{more}
[noise]
level = 0.9999
"""
PLAIN = '[[scorers]]\ndimension = "exam"\ncommand = "grep -c -F \'<= 1\' candidate.py || true"\n'
ACTS = {
    "the protected test": "pathlib.Path('exam.py').write_text('PASS = [1] * 4')",
    "a new module in its place": "os.mkdir('exam'); pathlib.Path('exam/__init__.py').write_text('PASS = [1] * 4')",
    "a record": "next(store.glob('iterations/iteration-001/metrics.json')).write_text('{}')",
    "a reading": "(store / 'readings/0001-rescore-iteration-002.json').write_text('{}')",
    "a snapshot that waits": "(store / 'pending/iteration-003').mkdir(parents=True)",
    "the configuration": "path = origin / 'jumar.toml'; path.write_text(path.read_text().replace('= 2', '= 99'))",
    "its own scratch folder": "shutil.rmtree(scratch); scratch.symlink_to(origin)",
    "the directory it works in": "store.parts in pathlib.Path.cwd().parents or os.getcwd() == str(origin) or shutil.rmtree('.')",
}


@pytest.mark.matrix
@pytest.mark.parametrize("isolation", ["none", "copy"])
@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_no_candidate_wins_by_what_it_does_when_it_is_read_again(tmp_path: Path, act: str, isolation: str, *, held_out: bool):
    place = tmp_path / "project"
    place.mkdir()
    for number, good in (("0", 0), ("1", 2), ("2", 1)):
        text = CANDIDATE.format(act=act if number == "2" else "pass", good=good)
        (tmp_path / f"{number}.py").write_text(text)
    (place / "candidate.py").write_text((tmp_path / "0.py").read_text())
    (place / "exam.py").write_text(TESTS)
    (tmp_path / "score.py").write_text(SCORE)
    words = {"isolation": isolation, "python": sys.executable, "top": str(tmp_path)}
    more = {"holdout": "holdout.", "more": PLAIN} if held_out else {"holdout": "", "more": "repeat = 2"}
    config = LOOP.format(**words, **more)
    (place / "jumar.toml").write_text(config)
    done = jumar(place, "run", "--no-input", "--json", check=0)
    document = json.loads(done.stdout)
    assert "Traceback" not in done.stderr
    store = LoopStore.open(place / ".jumar/loops/t")
    read = [reading for reading in store.readings() if reading.iteration == 2]
    assert read, done.stderr
    told = [reading.score for reading in read if reading.score is not None]
    assert all(score < 35 for score in told), told  # it has one of four right
    assert (2 if held_out else 1) == document["selected_iteration"]
    assert config == (place / "jumar.toml").read_text()
    assert TESTS == (place / "exam.py").read_text()
    assert () == verify(store).problems
    assert {0, 1, 2} == set(store.iteration_numbers())
