"""Loops to make reports of: the two seeds' example, one as the engine records it, a hostile one, a long one."""

from __future__ import annotations

import math
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from markdown_it import MarkdownIt

from jumar.errors import NothingEvaluatedError
from jumar.loop.ranking.noise import Evidence
from jumar.loop.ranking.ratchet import select_kept
from jumar.loop.report.read import LoopReport
from jumar.loop.report.spending import spend_of_records
from jumar.model import ArtifactDetail, CheckResult, Decision, IterationRecord, SelectionCriteria, Spend, StopDecision

HOSTILE = (
    "<script>alert(1)</script>",
    "a|b`c`|d",
    "# Heading\n\n## Another",
    "\x1b[31mred\x1b[0m\r\x07",
    "[link](https://evil.example) ![x](y)",
    "https://evil.example/www.evil.example",
    "- [x] All iteration outputs preserved",
    "&lt;b&gt; &amp; \\",
    "__init__.py and *stars* ~~gone~~",
    "| 9 ✓ | 100% | +99.0% | 0 | $0.0000 | ✓ |",
    "\udcff\udcfe not utf-8 \u202egnp.exe",
    "=cmd|' /C calc'!A0",
    "1. one\n2. two",
    "> quote",
    "```\nfence",
    " \t leading and trailing \t ",
)

AUTOMATIC = "automatic"


def record(number: int, score: float | None, *, before: float | None = None, **changes: Any) -> IterationRecord:
    """One iteration with ordinary values."""
    name = f".jumar/loops/loop-001/iterations/iteration-{number:03d}"
    base = IterationRecord(
        iteration_number=number,
        timestamp=f"2026-01-28T10:{number % 60:02d}:00Z",
        quality_score=score,
        quality_delta=None if before is None or score is None else round(score - before, 4),
        dimensions=MappingProxyType({} if score is None else {"validation": score / 100}),
        tokens_used=5000,
        token_cost_usd=0.05,
        execution_time_ms=30000,
        verification_status="passed",
        snapshot_path=name,
        artifacts=(f"{name}/artifacts/sad.md",),
        artifacts_detail=(ArtifactDetail(path="sad.md", content_hash="0" * 64, size=1200),),
    )
    return replace(base, **changes)


def seed_records() -> list[IterationRecord]:
    """Seed 2's report example: 72, 85, 83."""
    return [
        record(1, 72),
        record(2, 85, before=72, tokens_used=6000, token_cost_usd=0.06),
        record(3, 83, before=85, tokens_used=5500, token_cost_usd=0.055),
    ]


def report_of(
    records: list[IterationRecord],
    criteria: SelectionCriteria | None = None,
    *,
    decisions: tuple[Decision, ...] | str = (),
    loop_id: str = "loop-001",
    spend: Spend | None = None,
    stop: StopDecision | None = None,
    config: dict[str, Any] | None = None,
) -> LoopReport:
    """Choose as the engine would and build the report; ``decisions="automatic"`` has the selection written down."""
    rules = criteria or SelectionCriteria()
    try:
        selection = select_kept(Evidence(views=tuple(item.view() for item in records)), rules)
    except NothingEvaluatedError:
        selection = None
    made: tuple[Decision, ...] = ()
    if decisions == AUTOMATIC and selection is not None:
        made = (decision(1, selection.selected_iteration, final=selection.final_iteration, reason=selection.reason),)
    elif not isinstance(decisions, str):
        made = decisions
    return LoopReport(
        loop_id=loop_id,
        records=tuple(records),
        selection=selection,
        decisions=made,
        criteria=rules,
        spend=spend_of_records(records) if spend is None else spend,
        config=config or {},
        stop=stop,
        storage_path=".jumar/loops/loop-001",
        snapshots=frozenset(item.iteration_number for item in records),
        created_at="2026-01-28T09:59:00Z",
    )


def decision(number: int, best: int | None, **changes: Any) -> Decision:
    """A selection, or what ``changes`` make of it."""
    final = changes.pop("final", best)
    base = Decision(
        number=number,
        kind="select",
        best_iteration=best,
        final_iteration=final,
        delta=None,
        decision="use_best",
        reason="Highest verified quality: 85%",
        by="alice",
        at="2026-01-28T10:20:00Z",
    )
    return replace(base, **changes)


def engine_records() -> list[IterationRecord]:
    """A run with a start state, several dimensions, checks, a failed iteration and a decline."""
    table = [
        (0, 61.2, "failed", {"key terms": 0.94, "readability": 0.41, "length": 0.12, "structure": 0.98}, None),
        (1, 72.0, "passed", {"key terms": 0.93, "readability": 0.55, "length": 0.42, "structure": 0.98}, 0.05),
        (2, 78.4, "passed", {"key terms": 0.91, "readability": 0.63, "length": 0.61, "structure": 0.98}, 0.047),
        (3, None, "failed", {}, None),
        (4, 85.3, "passed", {"key terms": 0.88, "readability": 0.74, "length": 0.86, "structure": 0.95}, 0.061),
        (5, 86.1, "failed", {"key terms": 0.79, "readability": 0.78, "length": 0.97, "structure": 0.91}, 0.055),
        (6, 83.1, "passed", {"key terms": 0.74, "readability": 0.72, "length": 1.0, "structure": 0.88}, 0.05),
        (7, 74.6, "passed", {"key terms": 0.58, "readability": 0.70, "length": 1.0, "structure": 0.71}, 0.049),
    ]
    names = ("pytest -q", "links", "spelling")
    found: list[IterationRecord] = []
    last: float | None = None
    for number, score, verified, dimensions, cost in table:
        failing = set() if verified == "passed" else {"spelling"}
        checks = tuple(
            CheckResult(
                name=name,
                passed=name not in failing,
                exit_code=1 if name in failing else 0,
                seconds=0.8,
                output_tail="README.md:14: recieve -> receive\nREADME.md:90: seperate -> separate\n" if name in failing else "",
            )
            for name in names
        )
        item = record(number, score, before=last, verification_status=verified, token_cost_usd=cost)
        item = replace(
            item,
            dimensions=MappingProxyType(dict(dimensions)),
            checks=checks if score is not None else (),
            execution_time_ms=400 if number == 0 else 28000 + 700 * number,
            tokens_used=None if cost is None else 5000 + 90 * number,
            reasons=tuple(f"{name}: {value:.2f} measured" for name, value in dimensions.items()),
            artifacts_detail=(
                ArtifactDetail(path="README.md", content_hash="0" * 64, size=18_220),
                ArtifactDetail(path="docs/guide.md", content_hash="0" * 64, size=4_310),
            ),
            artifacts=tuple(f"{item.snapshot_path}/artifacts/{name}" for name in ("README.md", "docs/guide.md")),
        )
        if score is None:
            item = replace(item, status="generator_timeout", status_reason="the generator did not end within 1800 s")
        found.append(item)
        last = score
    return found


def engine_report() -> LoopReport:
    """The run above, chosen and written down."""
    return report_of(
        engine_records(),
        SelectionCriteria(threshold=70),
        decisions=AUTOMATIC,
        loop_id="readme-polish",
        spend=Spend(iterations=8, seconds=2012.0, tokens=None, cost_usd=None),
        stop=StopDecision(reason="decline", detail="the last 2 changes are falls that add up to 11.5 points"),
    )


def hostile_report(name: str = HOSTILE[0]) -> LoopReport:
    """``name`` wherever a name can stand."""
    records = [
        replace(
            item,
            timestamp=name,
            artifacts=(name,),
            artifacts_detail=(ArtifactDetail(path=name, size=3), ArtifactDetail(path=f"{name}2", kind="special", skipped=name)),
            dimensions=MappingProxyType({name: (item.quality_score or 0) / 100}),
            checks=(CheckResult(name=name, passed=item.iteration_number != 3, output_tail=name, exit_code=1),),
            verification_status="failed" if item.iteration_number == 3 else "passed",
            reasons=(name,),
            reflections=(name,),
        )
        for item in seed_records()
    ]
    records.append(record(4, None, status="scorer_broken", status_reason=name, commits=(name,)))
    decisions = (
        decision(1, 2, reason=name, by=name, at=name),
        decision(2, 3, kind="override", decision="use_specific", reason=name, by=name, at=name, replaced=2),
    )
    stop = StopDecision(reason="plateau", detail=name)
    return report_of(records, decisions=decisions, loop_id=name, stop=stop)


def long_report(count: int = 1000) -> LoopReport:
    """A start state and ``count`` passes whose scores rise and fall again."""
    records: list[IterationRecord] = []
    last: float | None = None
    for number in range(count + 1):
        score = round(50 + 40 * math.sin(math.pi * number / count * 1.4) + 3 * math.sin(number / 3), 4)
        records.append(record(number, score, before=last))
        last = score
    return report_of(records, decisions=AUTOMATIC)


def structure(text: str) -> list[str]:
    """What a GitHub-flavoured renderer makes of the report, without the words."""
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    found: list[str] = []
    for token in parser.parse(text):
        found.append(f"{token.type}{token.tag}")
        found += [f"  {child.type}" for child in token.children or () if child.type not in {"text", "text_special"}]
    return found
