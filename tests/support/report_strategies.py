"""Loops with anything in their names and any sensible numbers, for property tests of the report."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from hypothesis import strategies as st
from report_samples import HOSTILE, decision, record, report_of

from jumar.loop.report.read import LoopReport
from jumar.model import ArtifactDetail, CheckResult, IterationRecord, SelectionCriteria, Spend, StopDecision
from jumar.model.records import STATUSES, VERIFICATIONS
from jumar.model.selection import MODES, STOP_REASONS

# Everything that a name can hold: controls, markup, bytes that are not UTF-8 (lone surrogates), what reorders text.
names = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(st.characters(codec=None), max_size=40),
    st.text(
        st.sampled_from("|`<>#*_[]()!~-+=.:/\\&;'\"\n\r\t 019ax\x1b\x07\x7f\x85\u2028\u202e\udc80\ufffe"), min_size=1, max_size=30
    ),
).filter(lambda text: text.strip() != "")

scores = st.one_of(st.none(), st.floats(0, 100).map(lambda value: round(value, 4)), st.integers(0, 100))
amounts = st.one_of(st.none(), st.floats(0, 1e6), st.integers(0, 10**9))


@st.composite
def iterations(draw: st.DrawFn, number: int, text: st.SearchStrategy[str]) -> IterationRecord:
    score = draw(scores)
    status = "ok" if score is not None else draw(st.sampled_from(STATUSES[1:]))
    checks = draw(
        st.lists(
            st.builds(
                CheckResult,
                name=text,
                passed=st.booleans(),
                exit_code=st.one_of(st.none(), st.integers(-9, 255)),
                output_tail=text,
                broken=st.one_of(st.none(), text),
            ),
            max_size=3,
        )
    )
    return record(
        number,
        score,
        timestamp=draw(text),
        quality_delta=draw(st.one_of(st.none(), st.floats(-100, 100).map(lambda value: round(value, 4)))),
        dimensions=MappingProxyType({name: draw(st.floats(0, 1)) for name in draw(st.lists(text, max_size=3, unique=True))}),
        tokens_used=draw(st.one_of(st.none(), st.integers(0, 10**12))),
        token_cost_usd=draw(amounts),
        execution_time_ms=draw(amounts),
        verification_status=draw(st.sampled_from(VERIFICATIONS)),
        artifacts=tuple(draw(st.lists(text, max_size=3))),
        artifacts_detail=tuple(
            ArtifactDetail(path=path, size=3, skipped=draw(st.one_of(st.none(), text)))
            for path in draw(st.lists(text, max_size=3, unique=True))
        ),
        reflections=tuple(draw(st.lists(text, max_size=2))),
        reasons=tuple(draw(st.lists(text, max_size=2))),
        commits=tuple(draw(st.lists(text, max_size=2))),
        status=status,
        status_reason=draw(text) if status != "ok" else "",
        checks=tuple(checks),
    )


@st.composite
def reports(draw: st.DrawFn, text: st.SearchStrategy[str] = names) -> LoopReport:
    """A loop of up to six iterations, with or without a start state, decisions and an override."""
    first = draw(st.integers(0, 1))
    numbers = range(first, first + draw(st.integers(0, 6)))
    records = [draw(iterations(number, text)) for number in numbers]
    decisions = []
    if records:
        chosen = draw(st.sampled_from([item.iteration_number for item in records]))
        for number, kind in enumerate(draw(st.lists(st.sampled_from(["select", "override", "apply", "cleanup"]), max_size=3)), 1):
            made = decision(number, chosen, reason=draw(text), by=draw(text), at=draw(text))
            decisions.append(replace(made, kind=kind, replaced=draw(st.one_of(st.none(), st.integers(0, 3)))))
    criteria = draw(
        st.builds(
            SelectionCriteria,
            mode=st.sampled_from(MODES),
            threshold=st.one_of(st.none(), st.integers(0, 100)),
            require_verification=st.booleans(),
        )
    )
    stop = draw(st.one_of(st.none(), st.builds(StopDecision, reason=st.sampled_from(STOP_REASONS), detail=text)))
    spend = draw(st.one_of(st.none(), st.builds(Spend, tokens=st.one_of(st.none(), st.integers(0, 10**9)))))
    return report_of(records, criteria, decisions=tuple(decisions), loop_id=draw(text), spend=spend, stop=stop)
