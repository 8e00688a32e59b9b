"""Runs of cases on disk, made by the store alone, and recordings as other tools leave them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jumar.cases.case_store import CaseStore
from jumar.cases.layout import RunPaths
from jumar.cases.ranking import rank_case
from jumar.cases.records import CaseBest, CaseEnd, CaseIteration, RoleFile, StepRecord, TieBreak
from jumar.cases.role_files import role_file
from jumar.cases.run_store import CaseSource, RunStore, create_run
from jumar.model.ordering import LexicographicOrder, parse_order
from jumar.model.pipeline import DEFAULT_ROLES, RunPlan
from jumar.model.records import Usage

AT = "2026-01-28T10:00:00Z"
ORDER = parse_order("accuracy,overall,chain")
WRITTEN = ("ckg", "ckg_diff", "agent_report", "judge", "feedback", "fix_db")
POISONED = {1: [(9, 8.75, 8), (9, 8.75, 8), (3, 3.75, 2)], 2: [(3, 3.45, 2), (4, 4.25, 3), (4, 4.2, 3)]}
"""Two cases as in the recording that this was built from, shorter."""

Scores = Sequence[Any]


def judge_file(scores: Scores | None) -> dict[str, Any]:
    """A judge's file of accuracy, overall and chain; None for one that nothing can be read from."""
    if scores is None:
        return {"summary": "nothing"}
    accuracy, overall, chain = scores
    dimensions = [
        {"name": "Root Cause Accuracy", "score": accuracy, "weight": 0.5},
        {"name": "Causal Chain Completeness", "score": chain, "weight": 0.2},
    ]
    return {"case_name": "x", "composite_score": overall, "dimensions": dimensions}


def content(role: str, case: int, number: int, scores: Scores | None, diff: int = 1) -> bytes:
    """What a step would write: different in every iteration, the same every time."""
    document: Any = {"role": role, "case": case, "iteration": number}
    if role == "judge":
        document = judge_file(scores)
    elif role == "ckg_diff":
        document = {"added_entities": [f"e{index}" for index in range(diff)], "added_relations": []}
    return json.dumps(document).encode() + b"\n"


def values_of(scores: Scores | None) -> Mapping[str, float | None]:
    return MappingProxyType(dict(zip(("accuracy", "overall", "chain"), scores or (None,) * 3, strict=True)))


def make_run(
    cases: Mapping[int, Sequence[Scores | str | None]],
    *,
    run_id: str = "r",
    root: Path = Path(".jumar/runs"),
    select: str = "best",
    ended: bool = True,
    max_iters: int | None = 3,
    order: LexicographicOrder = ORDER,
    carry: bool = True,
    cost: float | None = 0.01,
    begun: int | None = None,
) -> RunStore:
    """Write a run: scores by case; None is a judge's file without scores, a text the reason of a step that failed.

    Only the first ``begun`` cases are begun; ``ended`` False leaves the last of those without an end.
    """
    sources = tuple(
        CaseSource(number=number, case_id=f"case{number}", report=f"report {number}\n", prompt="why?\n", source=f"{number}.txt")
        for number in cases
    )
    base: dict[str, bytes | Path] = {"ckg": b'{"entities": []}\n', "fix_db": b""}
    plan = RunPlan(order=order.words, tie_breaks=order.tie_breaks, max_iters=max_iters)
    run = create_run(RunPaths.of(root, run_id), run_id=run_id, config={}, cases=sources, base=base, plan=plan, created_at=AT)
    numbers = list(cases)[:begun]
    for number in numbers:
        with run.store(number).lock() as store:
            run.begin_case(number, DEFAULT_ROLES, carry=carry)
            for index, scores in enumerate(cases[number], start=1):
                add_iteration(store, index, scores, cost=cost)
            if ended or number != numbers[-1]:
                finish(store, order, select=select)
    return run


def add_iteration(
    store: CaseStore, number: int, scores: Scores | str | None, *, cost: float | None = 0.01, commit: bool = True
) -> None:
    """Make one iteration with a step that wrote everything, or one that failed before it had written its last file."""
    directory = store.begin_iteration(number)
    begun = store.begin_step(directory, "all", AT)
    attempt, nonce = begun.attempt, begun.nonce
    roles = WRITTEN if not isinstance(scores, str) else WRITTEN[:1]
    outputs: dict[str, RoleFile] = {}
    for name in roles:
        path = directory / DEFAULT_ROLES[name].path(store.number, number)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content(name, store.number, number, None if isinstance(scores, str) else scores, diff=number))
        found = role_file(path, path.relative_to(directory).as_posix())
        assert found is not None
        outputs[name] = found
    failed = isinstance(scores, str)
    step = StepRecord(
        attempt=attempt,
        step="all",
        outcome="failed" if failed else "ok",
        seconds=1.5,
        exit_code=1 if failed else 0,
        detail=scores if isinstance(scores, str) else "",
        output_tail="Traceback\n  boom\n" if failed else "",
        usage=Usage(token_cost_usd=cost),
        outputs=MappingProxyType(outputs),
    )
    store.end_step(directory, step)
    (directory / "logs" / "all.log").write_text("log\n")
    if not commit:
        return
    status, reason = ("ok", "") if scores is not None else ("invalid_score", "there is no composite_score in judge.json")
    if isinstance(scores, str):
        status, reason = "step_failed", f"step all: {scores}"
    record = CaseIteration(
        case=store.number,
        number=number,
        status=status,
        reason=reason,
        values=values_of(None if isinstance(scores, str) else scores),
        diff=None if failed else number,
        parent=number - 1 or None,
        started_at=AT,
        ended_at=AT,
        nonce=nonce,
        outputs=MappingProxyType({} if failed else outputs),
        steps=(step,),
    )
    store.commit(record)


def finish(store: CaseStore, order: LexicographicOrder = ORDER, *, select: str = "best", end: bool = True) -> None:
    """Write the best bundle and the end, as a run does."""
    iterations = store.iterations()
    ranking = rank_case(iterations, order)
    last = next((one for one in reversed(iterations) if one.complete), None)
    chosen = ranking.best if select == "best" else last
    if chosen is not None and last is not None:
        best = CaseBest(
            case=store.number,
            best_iter=chosen.number,
            selected_by="best" if select == "best" else "last",
            values=chosen.values,
            tie_break=TieBreak(
                prefer_earlier_iter="earlier_iter" in order.tie_breaks, prefer_smaller_diff="smaller_diff" in order.tie_breaks
            ),
            files=chosen.outputs,
            order=tuple(key.name for key in order.keys),
            runner_up=ranking.runner_up,
            margin=ranking.margin,
            decided_by=ranking.decided_by,
            explanation=ranking.explanation,
            last_iter=last.number,
            last_values=last.values,
        )
        store.write_best(best, DEFAULT_ROLES)
    if not end:
        return
    number = None if chosen is None else chosen.number
    detail = f"{len(iterations)} of 3 iterations done"
    store.write_end(
        CaseEnd(
            case=store.number, stopped_by="max_iters", detail=detail, iterations=len(iterations), best_iter=number, ended_at=AT
        )
    )


# ------------------------------------------------------------------------------------------------------- recordings


def make_recording(
    directory: Path,
    cases: Mapping[int, Sequence[Scores | bytes | None]],
    *,
    carried: Mapping[int, tuple[int, int]] | None = None,
) -> Path:
    """Write what another tool left: a chain of runs of one case each. Scores, the bytes of a judge's file, or None for no file.

    ``carried`` says of a case which iteration of which case it started from; others get a base of their own.
    """
    for case, rows in cases.items():
        run = directory / f"case{case}"
        source = None if carried is None else carried.get(case)
        base = b'{"base": true}' if source is None else content("ckg", source[0], source[1], None)
        put(run / "inputs" / "base_ckg_snapshot.json", base)
        for number, scores in enumerate(rows, start=1):
            place = run / f"case_{case:02d}" / "iterations" / f"iter_{number:04d}"
            for name in ("ckg", "ckg_diff", "agent_report", "feedback"):
                put(place / DEFAULT_ROLES[name].path(case, number), content(name, case, number, None, diff=number))
            if scores is not None:
                judged = scores if isinstance(scores, bytes) else json.dumps(judge_file(scores)).encode()
                put(place / DEFAULT_ROLES["judge"].path(case, number), judged)
    return directory


def put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
