"""Agents in a copy or worktree that change what decides where it runs: in the person's own directory."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from loops import jumar, write_loop

AGENT = """
import importlib.util, marshal, pathlib, struct
own = pathlib.Path(os.environ["JUMAR_PROJECT_DIR"])
evil = "def score(context): return 1.0"
"""
PLANT = """
source = own / "measure.py"
cached = pathlib.Path(importlib.util.cache_from_source(str(source)))
cached.parent.mkdir(exist_ok=True)
head = struct.pack("<III", 0, int(source.stat().st_mtime), source.stat().st_size)
cached.write_bytes(importlib.util.MAGIC_NUMBER + head + marshal.dumps(compile(evil, str(source), "exec")))
"""
CHANGED = "measure.py, which scorer 'own' runs, is not what it was at the start"
ACTS = {
    "edits the scorer": ("(own / 'measure.py').write_text(evil)\n", CHANGED),
    "puts a package in its place": (
        "(own / 'measure').mkdir(exist_ok=True); (own / 'measure/__init__.py').write_text(evil)\n",
        "measure/__init__.py would run instead of what a check names: take it away",
    ),
    "edits the judge": ("(own / 'judge.py').write_text('print(5)')\n", "judge.py, which scorer 'judge' runs, is not what it was"),
    "plants bytecode": (PLANT, None),
}


@pytest.mark.parametrize("candidates", [1, 2])
@pytest.mark.parametrize(("act", "says"), ACTS.values(), ids=ACTS)
def test_what_decides_is_compared_where_it_runs(fresh_place: Path, act: str, says: str | None, candidates: int) -> None:
    isolation = f'isolation = "copy"\ncandidates = {candidates}\nrecheck = "off"'
    judge = f"""[[scorers]]
dimension = "judge"
builtin = "judge"
mode = "expensive"
items = "items.jsonl"
judge = "command:{sys.executable} judge.py"
"""
    own = '[[scorers]]\ndimension = "own"\npython = "measure:score"\n'
    write_loop(fresh_place, [0.1, 0.1], loop=isolation, extra=own + judge)
    (fresh_place / "measure.py").write_text("def score(context): return 0.25")
    (fresh_place / "judge.py").write_text("print('{\"gestalt\": 2}')\n")
    (fresh_place / "items.jsonl").write_text('{"id": "a", "text": "one"}\n')
    with (fresh_place / "agent.py").open("a") as agent:
        agent.write(AGENT + act)
    done = jumar(fresh_place, "run")
    assert (fresh_place / ".jumar/loops/t/iterations/iteration-001").exists(), done.stdout + done.stderr

    record = json.loads((fresh_place / ".jumar/loops/t/iterations/iteration-001/metrics.json").read_text())
    if says is None:
        assert (0.25, "passed") == (record["dimensions"]["own"], record["verification_status"])
    else:
        assert (None, "failed") == (record["quality_score"], record["verification_status"])
        assert any(says in each for each in record["tampering"]), record["tampering"]
