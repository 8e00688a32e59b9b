"""What a whole loop leaves in the working directory, and what each iteration started from, against a plain model of the rule."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from dying import not_waiting
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.loop.decisions.apply import apply
from jumar.loop.decisions.plan import plan_apply
from jumar.loop.decisions.select import override
from jumar.loop.engine.engine import Loop
from jumar.loop.engine.outcome import LoopOutcome
from jumar.loop.settings import ContinueFrom, Isolation, LoopParts, LoopSettings
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.store.layout import prepare_root
from jumar.loop.store.loop_store import LoopStore
from jumar.model import SelectionCriteria, StopRules
from jumar.testing import ManualClock, PassingValidator, ReadingScorer, ScriptedGenerator

START = "0.5"
SCORES = (None, "words", "0.3", "0.5", "0.5", "0.5", "0.7", "0.7")  # a failed iteration, one without a score; refused: 0.7


@dataclass(frozen=True)
class Case:
    scores: tuple[str | None, ...]
    continue_from: ContinueFrom
    candidates: int
    validated: bool
    isolation: Isolation = "none"

    @property
    def texts(self) -> tuple[str | None, ...]:
        """Every iteration leaves a text of its own, equal scores or not."""
        return tuple(score and score + " " * (place + 1) for place, score in enumerate(self.scores))


CASES = st.builds(
    Case,
    scores=st.lists(st.sampled_from(SCORES), min_size=1, max_size=6).map(tuple)
    | st.lists(st.sampled_from(["0.3", "0.5"]), min_size=1, max_size=6).map(tuple),
    continue_from=st.sampled_from(["previous", "best"]),
    candidates=st.sampled_from([1, 1, 1, 2]),
    validated=st.booleans(),
)


def run(place: Path, case: Case, iterations: int | None = None) -> LoopOutcome:
    directory = place / ".jumar" / "loops" / "t"
    if directory.exists():
        store = LoopStore.open(directory)
    else:
        (place / "out.txt").write_text(START)
        prepare_root(place / ".jumar")
        store = LoopStore.create(directory, "t", {}, workdir=place, created_at="2026-01-01T00:00:00Z")
    configured = LoopSettings(
        loop_id="t",
        workdir=place,
        continue_from=case.continue_from,
        isolation=case.isolation,
        apply="auto" if case.isolation == "none" else "never",
        artifacts=ArtifactRules(include=("out.txt",)),
        criteria=SelectionCriteria(threshold=None),
        stop=StopRules(max_iterations=iterations or len(case.scores), consecutive_failures=99),
        candidates=case.candidates,
        workers=case.candidates,
    )
    validators = (PassingValidator(refused=("0.7",)),) if case.validated else ()
    parts = LoopParts(generator=ScriptedGenerator(case.texts), validators=validators, scorers=(ReadingScorer(),))
    with not_waiting():
        return Loop.of(store, configured, parts, clock=ManualClock()).run()


@dataclass(frozen=True)
class Model:
    """The rule, written as slowly as it can be: each iteration's worth, and what follows from all of them."""

    case: Case
    upto: int

    def worth(self, number: int) -> tuple[bool, float] | None:
        text = START if number == 0 else self.case.scores[number - 1]
        if text in {None, "words"}:
            return None
        return (not (self.case.validated and text == "0.7"), float(text or 0))

    @property
    def best(self) -> tuple[bool, float]:
        return max(worth for number in range(self.upto + 1) if (worth := self.worth(number)) is not None)

    @property
    def equals(self) -> list[int]:
        return [number for number in range(self.upto + 1) if self.worth(number) == self.best]

    @property
    def is_tie(self) -> bool:
        return self.equals[0] == 0 and len(self.equals) > 1

    @property
    def left(self) -> int:
        """The iteration that stands, and that the working directory is left with: of a tie with the start the latest."""
        if not self.is_tie:
            return self.equals[0]
        latest, size = self.equals[-1], self.case.candidates
        first = latest - (latest - 1) % size  # of its batch, whose candidates are equally late
        return min(number for number in self.equals if number >= first)

    def text(self, number: int) -> str:
        return START if number == 0 else self.case.texts[number - 1] or ""


@given(CASES)
def test_a_tie_undoes_no_work_and_only_what_is_worse_gives_way(case: Case) -> None:
    with tempfile.TemporaryDirectory(prefix="jumar-ratchet-") as directory:
        place = Path(directory)
        outcome, model = run(place, case), Model(case, len(case.scores))

        assert outcome.selection is not None
        assert model.equals[0] == outcome.selection.selected_iteration
        assert model.is_tie == outcome.tie_with_start == outcome.to_json()["tie_with_start"]
        held = (place / "out.txt").read_text()
        assert model.text(model.left) == held
        assert model.left == outcome.selection.stands
        if case.candidates == 1:
            assert (outcome.applied is None) == (model.left == model.upto)
        if model.is_tie:
            store = LoopStore.open(outcome.directory)
            plan = plan_apply(store, 0, place, ArtifactRules(include=("out.txt",)))
            apply(store, plan, by="a", at="2026-01-01T00:00:00Z")  # what `jumar apply` does
            assert START == (place / "out.txt").read_text()
        again = run(place, case)
        assert (again.already_finished, again.tie_with_start) == (True, outcome.tie_with_start)


@settings(max_examples=25)
@given(CASES, st.integers(1, 6))
def test_a_loop_that_goes_on_after_its_end_starts_from_what_it_left(case: Case, first: int) -> None:
    """Ended, and run again with a higher limit: the parents are those of a loop that ran through, and so is what it leaves."""
    case = replace(case, candidates=1)
    with tempfile.TemporaryDirectory(prefix="jumar-ratchet-") as directory:
        whole, parts = Path(directory, "whole"), Path(directory, "parts")
        for place in (whole, parts):
            place.mkdir()
        outcome = run(whole, case)
        run(parts, case, min(first, len(case.scores)))
        resumed = run(parts, case)
        parents = [[record.parent for record in LoopStore.open(one.directory).records()] for one in (outcome, resumed)]
        assert parents[0] == parents[1]
        if case.continue_from == "best":
            model = [Model(case, number).equals[-1] for number in range(len(case.scores))]
            assert model == parents[0][1:]
        assert (whole / "out.txt").read_text() == (parts / "out.txt").read_text()
        assert (outcome.selection, outcome.tie_with_start) == (resumed.selection, resumed.tie_with_start)
        assert [] == list(Path(resumed.directory, "set-aside").glob("*/*"))  # nothing in the tree but what is recorded


@settings(max_examples=25)
@given(CASES)
def test_elsewhere_nothing_is_applied_and_the_tie_is_told_all_the_same(case: Case) -> None:
    case = replace(case, isolation="copy")
    with tempfile.TemporaryDirectory(prefix="jumar-ratchet-") as directory:
        outcome = run(Path(directory), case)
        assert Model(case, len(case.scores)).is_tie == outcome.tie_with_start
        assert outcome.applied is None
        assert START == Path(directory, "out.txt").read_text()


def test_a_persons_choice_of_the_start_is_carried_out(tmp_path: Path) -> None:
    """What a person chose is no tie: it is put into place when the loop goes on and ends."""
    case = Case(scores=("0.5", "0.5"), continue_from="best", candidates=1, validated=False)
    first = run(tmp_path, case, 1)
    assert (first.tie_with_start, first.applied) == (True, None)
    store = LoopStore.open(first.directory)
    override(store, 0, reason="as it was", by="a", at="2026-01-01T00:00:00Z", criteria=SelectionCriteria(threshold=None))

    second = run(tmp_path, case, 2)

    assert second.tie_with_start is False
    assert second.applied is not None
    assert START == (tmp_path / "out.txt").read_text()
