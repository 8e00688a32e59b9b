"""Pipelines of small real programs, and everything of a run of cases that an interruption must not change."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jumar.cases.run_store import RunReader

__all__ = ["AGENT", "AUGMENT", "FEEDBACK", "JUDGE", "RUN", "before_steps", "calls", "facts", "judged", "write_pipeline"]

RUN = ".jumar/runs/run_t"

# what the judge's command names is put back when it changes: before.sh is not named whole
_NOTE = 'echo "$JUMAR_CASE_NUM.$JUMAR_ITERATION {name}" >> calls.log; b=before; [ ! -x $b.sh ] || ./$b.sh {name} || exit; '

AUGMENT = f"""
[[steps]]
name = "augment"
command = '''{_NOTE.format(name="augment")}{{ cat "$JUMAR_IN_CKG"; echo "$JUMAR_CASE_NUM.$JUMAR_ITERATION"; }} \
> "$JUMAR_OUT_CKG"'''
inputs = ["ckg", "report", "feedback?"]
outputs = ["ckg"]
timeout = 60
"""

AGENT = f"""
[[steps]]
name = "agent"
command = '''{_NOTE.format(name="agent")}cat "$JUMAR_IN_PROMPT" "$JUMAR_IN_CKG" > "$JUMAR_OUT_AGENT_REPORT"'''
inputs = ["ckg", "prompt"]
outputs = ["agent_report"]
"""

JUDGE = f"""
[[steps]]
name = "judge"
command = '''{_NOTE.format(name="judge")}cp "judged/$JUMAR_CASE_NUM.$JUMAR_ITERATION" "$JUMAR_OUT_JUDGE"'''
inputs = ["report", "agent_report"]
outputs = ["judge"]
"""

FEEDBACK = """
[[steps]]
name = "feedback"
builtin = "feedback"
inputs = ["judge"]
outputs = ["feedback"]
"""

Scores = tuple[float, float, float]


def judged(scores: Scores) -> bytes:
    """Return a judge's file with accuracy, overall and chain."""
    accuracy, overall, chain = scores
    named = (("Root Cause Accuracy", accuracy), ("Causal Chain Completeness", chain))
    document = {"composite_score": overall, "dimensions": [{"name": name, "score": score} for name, score in named]}
    return json.dumps(document).encode()


def write_pipeline(
    directory: Path,
    scores: Mapping[int, Sequence[Scores | bytes]],
    *,
    run: str = "",
    steps: Sequence[str] = (AUGMENT, AGENT, JUDGE, FEEDBACK),
    start: str = "from_scratch = true",
    extra: str = "",
) -> Path:
    """Write a cases.toml whose judge gives ``scores`` by case and iteration, or hands out those bytes.

    Every step runs ``before.sh NAME`` first, when there is one, and fails with it.
    """
    (directory / "judged").mkdir(parents=True, exist_ok=True)
    cases: list[str] = []
    for case, rows in scores.items():
        text = f"what was wrong in case {case}\n---\nE2E Test Query\nwhat is wrong in case {case}?\n"
        (directory / f"case{case}.txt").write_text(text)
        cases.append(f'[[cases]]\nnumber = {case}\nfile = "case{case}.txt"\n')
        for number, row in enumerate(rows, start=1):
            (directory / "judged" / f"{case}.{number}").write_bytes(row if isinstance(row, bytes) else judged(row))
    most = max(len(rows) for rows in scores.values())
    path = directory / "cases.toml"
    head = f'[run]\nrun_id = "t"\nmax_iters = {most}\n{run}\n[start]\n{start}\n'
    path.write_text("\n".join([head, *cases, *steps, extra]))
    return path


def before_steps(directory: Path, script: str) -> None:
    """Let every step run ``script`` first, with the step's name as its argument."""
    path = directory / "before.sh"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def calls(directory: Path) -> list[str]:
    """Return which steps were run for which iteration, such as ``1.2 augment``, in order."""
    log = directory / "calls.log"
    return log.read_text().splitlines() if log.exists() else []


def facts(run_dir: Path) -> dict[str, Any]:
    """Return everything of a run but times, and but the steps that were lost or interrupted on the way."""
    run = RunReader(run_dir)
    return {"inputs": _hashes(run_dir / "inputs"), "cases": {number: _case(run, number) for number in run.case_ids}}


def _case(run: RunReader, number: int) -> dict[str, Any]:
    case = run.case(number)
    end = case.end()
    iterations = [
        {
            **{
                name: value
                for name, value in record.to_json().items()
                if name not in {"started_at", "ended_at", "nonce", "steps"}
            },
            "steps": [
                (step.step, step.outcome, step.detail) for step in record.steps if step.outcome not in {"lost", "interrupted"}
            ],
        }
        for record in case.iterations()
    ]
    return {
        "iterations": iterations,
        "best": _hashes(case.paths.best),
        "end": None if end is None else {name: value for name, value in end.to_json().items() if name != "ended_at"},
        "left": sorted(path.name for path in case.paths.pending.glob("*")) if case.paths.pending.exists() else [],
    }


def _hashes(directory: Path) -> dict[str, str]:
    found = sorted(path for path in directory.rglob("*") if path.is_file()) if directory.exists() else []
    return {str(path.relative_to(directory)): hashlib.sha256(_MARK.sub(b"", path.read_bytes())).hexdigest() for path in found}


_MARK = re.compile(rb',\n  "mark": "[0-9a-f:]+"')
