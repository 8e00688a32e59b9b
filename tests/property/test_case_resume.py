"""A chain of cases that is killed, or asked to stop, anywhere and resumed equals the chain that nobody disturbed."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from dying import Killed, dying, not_waiting
from hypothesis import event, given
from hypothesis import strategies as st
from pipelines import facts

from jumar.cases.chain import run_chain
from jumar.cases.records import CaseLimits
from jumar.cases.run_store import CaseSource, RunReader
from jumar.cases.settings import ChainSettings
from jumar.cases.verify import verify_run
from jumar.model.ordering import parse_order
from jumar.model.pipeline import CaseStepContext, Step
from jumar.processes.control import StopSwitch

COUNTS = {"chains": 0, "kill a call": 0, "kill a write": 0, "finish": 0, "now": 0}

Row = tuple[Any, Any, int]
"""Accuracy and overall score as the judge writes them, and the size of the diff. A first member ``fail`` is a step that fails."""


@dataclass(frozen=True)
class Chain:
    rows: tuple[tuple[Row, ...], ...]
    order: str
    tiebreak: str
    continue_from: Literal["previous", "best"]
    carry: bool
    select_best: bool
    least: float | None
    failures: int


scores = st.sampled_from([3, 5, 5.5, 8])
bad = st.sampled_from([None, "7", float("nan"), "fail"])
rows = st.tuples(st.one_of(scores, scores, scores, bad), scores, st.integers(0, 2))
chains = st.builds(
    Chain,
    rows=st.lists(st.lists(rows, min_size=1, max_size=3).map(tuple), min_size=1, max_size=3).map(tuple),
    order=st.sampled_from(["accuracy,overall", "overall,accuracy", "-accuracy,overall", "overall", "accuracy"]),
    tiebreak=st.sampled_from(["earlier_iter", "smaller_diff", "smaller_diff,earlier_iter"]),
    continue_from=st.sampled_from(["previous", "best"]),
    carry=st.booleans(),
    select_best=st.booleans(),
    least=st.sampled_from([None, 8, 99]),
    failures=st.integers(1, 3),
)

Way = Literal["kill a call", "kill a write", "finish", "now"]
interruptions = st.tuples(st.sampled_from(["kill a call", "kill a write", "kill a write", "finish", "now"]), st.floats(0, 1))


class Place:
    """Where one chain runs, what it called, and what disturbs it next."""

    def __init__(self, directory: Path, chain: Chain) -> None:
        self.run = directory / "runs" / "run_t"
        self.calls: list[str] = []
        self._chain = chain
        self._directory = directory
        self.chances = 0
        self._left: int | None = None
        self._way: Way = "finish"
        self._switch = StopSwitch()

    def chance(self, _event: object = None) -> None:
        """A moment at which the process may die or be asked to stop."""
        self.chances += 1
        if self._left is None:
            return
        self._left -= 1
        if self._left >= 0:
            return
        self._left = None
        if self._way == "kill a call":
            raise Killed
        if self._way == "finish":
            self._switch.finish()
        else:
            self._switch.now("terminated")

    def go(self, way: Way | None = None, at: int = 0) -> bool:
        """Run, or resume what is there; return whether it came to its end."""
        self._switch = StopSwitch()
        self._way = way or "finish"
        self._left = at if way in {"kill a call", "finish", "now"} else None
        self.changes = 0
        fuse = dying(at if way == "kill a write" else 0, "killed before" if at % 2 else "killed after")
        try:
            with not_waiting(), fuse as counted:
                try:
                    outcome = run_chain(self._settings(), resume=self.run.exists(), switch=self._switch, listener=self.chance)
                finally:
                    self.changes = counted()
        except Killed:
            return False
        return outcome.stopped is None

    def _settings(self) -> ChainSettings:
        chain = self._chain
        keys = {"accuracy": "accuracy", "overall": "overall"}
        return ChainSettings(
            run_id="t",
            output_root=self._directory / "runs",
            cases=tuple(
                CaseSource(number=number, case_id=f"case{number}", report="r", prompt="p", source="here")
                for number in range(1, len(chain.rows) + 1)
            ),
            steps=(
                Step(name="augment", call=self._augment, inputs=("ckg", "feedback?"), outputs=("ckg", "ckg_diff")),
                Step(name="judge", call=self._judge, inputs=("ckg", "report"), outputs=("judge",)),
                Step(name="feedback", builtin="feedback", inputs=("judge",), outputs=("feedback",)),
            ),
            order=parse_order(chain.order, chain.tiebreak, known=tuple(keys)),
            limits=CaseLimits(
                thresholds=MappingProxyType({} if chain.least is None else {"accuracy": chain.least}),
                max_iters=3,
                consecutive_failures=chain.failures,
            ),
            keys=MappingProxyType(keys),
            continue_from=chain.continue_from,
            carry_forward=chain.carry,
            select_best=chain.select_best,
            from_scratch=True,
            workdir=self._directory,
        )

    def _row(self, context: CaseStepContext) -> Row:
        given = self._chain.rows[context.case_num - 1]
        return given[min(context.iteration, len(given)) - 1]

    def _augment(self, context: CaseStepContext) -> None:
        with self._called(context, "augment"):
            before = context.inputs["ckg"].read_text()
            feedback = context.inputs["feedback"].read_text() if "feedback" in context.inputs else ""
            context.outputs["ckg"].write_text(f"{before}{context.case_num}.{context.iteration} {len(feedback)}\n")
            added = [str(number) for number in range(self._row(context)[2])]
            context.outputs["ckg_diff"].write_text(json.dumps({"added_entities": added, "added_relations": []}))

    def _judge(self, context: CaseStepContext) -> None:
        with self._called(context, "judge"):
            accuracy, overall, _ = self._row(context)
            if accuracy == "fail":
                raise ValueError("no judgement today")
            context.outputs["judge"].write_text(json.dumps({"accuracy": accuracy, "overall": overall}))

    @contextlib.contextmanager
    def _called(self, context: CaseStepContext, name: str) -> Iterator[None]:
        self.calls.append(f"{context.case_num}.{context.iteration} {name}")
        self.chance()
        yield
        self.chance()


@given(chain=chains, disturbed=st.lists(interruptions, min_size=1, max_size=4))
def test_interrupted_and_resumed_equals_uninterrupted(chain: Chain, disturbed: list[tuple[Way, float]]) -> None:
    COUNTS["chains"] += 1
    directory = Path(tempfile.mkdtemp(prefix="jumar-cases-"))
    try:
        whole, broken = (Place(directory / name, chain) for name in ("whole", "broken"))
        for place in (whole, broken):
            place.run.parent.mkdir(parents=True)
        assert whole.go()
        changes, chances = whole.changes, whole.chances
        for way, share in disturbed:
            if broken.run.exists():
                assert () == verify_run(broken.run).problems
            ended = broken.go(way, 1 + int(share * (changes if way == "kill a write" else chances)))
            COUNTS[way] += not ended
            event(f"{way}: {'came to its end' if ended else 'interrupted'}")
        assert broken.go()

        assert facts(whole.run) == facts(broken.run)
        assert () == verify_run(broken.run).problems
        assert not list(broken.run.rglob(".tmp-*"))
        assert sorted(set(whole.calls)) == sorted(set(broken.calls))
        assert len(whole.calls) <= len(broken.calls) <= len(whole.calls) + lost(broken.run), (
            "a step was paid for twice without need"
        )
    finally:
        shutil.rmtree(directory)


def lost(run: Path) -> int:
    reader = RunReader(run)
    records = [record for number in reader.case_ids for record in reader.case(number).iterations()]
    return sum(step.outcome == "lost" for record in records for step in record.steps)


def test_counts_are_printed(capsys: Any) -> None:
    with capsys.disabled():
        print(f"\ncases resume: {', '.join(f'{count} {name}' for name, count in COUNTS.items())}")
