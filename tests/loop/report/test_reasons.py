"""Why an iteration was selected: each sentence is held against every iteration that it speaks of, over all combinations."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import get_args

import pytest
from report_samples import record, report_of

from jumar.loop.report.read import LoopReport
from jumar.loop.report.reasons import why_selected
from jumar.model import IterationView, SelectionCriteria
from jumar.model.selection import Mode

SCORES = (None, 40.0, 90.0)
VERIFIED = [*itertools.product(["passed", "failed"], repeat=3), ("skipped",) * 3, ("passed", "skipped", "failed")]
CRITERIA = [
    SelectionCriteria(mode=mode, threshold=threshold, require_verification=required)
    for mode, threshold, required in itertools.product(get_args(Mode), (None, 30, 50, 95), (True, False))
    if required or mode == "most_recent_above_threshold"
]


def loops() -> Iterator[LoopReport]:
    for count, criteria in itertools.product((1, 3), CRITERIA):
        for scores, verified in itertools.product(itertools.product(SCORES, repeat=count), VERIFIED):
            made = [
                record(
                    number,
                    score,
                    verification_status=status,
                    parent=number - 1 if number else None,
                    status="ok" if score else "scorer_broken",
                )
                for number, (score, status) in enumerate(zip(scores, verified, strict=False))
            ]
            yield report_of(made, criteria)


class Facts:
    """What is true of a loop, iteration by iteration; only those with a score can be selected."""

    def __init__(self, report: LoopReport, chosen: int) -> None:
        self.valid = [view for view in report.views if view.score is not None]
        self.later = [view for view in self.valid if view.number]
        self.chosen = next(view for view in self.valid if view.number == chosen)
        self.start = self.chosen.score or 0
        self.required = report.criteria.threshold

    def passed(self, view: IterationView) -> bool:
        return view.verification == "passed"

    def reached(self, view: IterationView) -> bool:
        return self.required is not None and (view.score or 0) >= self.required

    def higher(self, view: IterationView) -> bool:
        return (view.score or 0) > self.start

    def is_best_of(self, views: list[IterationView]) -> bool:
        return self.chosen in views and all((view.score or 0) <= (self.chosen.score or 0) for view in views)

    def is_last_of(self, views: list[IterationView]) -> bool:
        return views[-1] is self.chosen


def both(facts: Facts) -> list[IterationView]:
    return [view for view in facts.valid if facts.reached(view) and facts.passed(view)]


def only(test: Callable[[IterationView], bool], facts: Facts) -> list[IterationView]:
    return [view for view in facts.valid if test(view)]


SENTENCES = {
    "alone": "There is no iteration beside the start",
    "no score": "No iteration has a valid score, so the start stays",
    "all equal": "Every iteration scored as the start did; the latest that is as good is kept",
    "equal": "No iteration scored higher than the start; the latest that is as good is kept",
    "all lower": "Every iteration scored lower than the start",
    "none higher": "No iteration scored higher than the start",
    "higher not verified": "No iteration that passes all checks scored higher than the start",
    "verified": "Highest score of those that pass all checks",
    "highest": "Highest score",
    "not verified": "No iteration passed all checks; selected by score alone",
    "not verified, reached": "No iteration passed all checks; selected by score alone, which reaches {required}",
    "not verified, below": "No iteration reached {required} or passed all checks; selected by score alone",
    "unchecked": "No iteration was verified; selected by score alone",
    "unchecked, reached": "No iteration was verified; selected by score alone, which reaches {required}",
    "unchecked, below": "No iteration reached {required} or was verified; selected by score alone",
    "below": "No iteration reached {required}; selected without it",
    "verified, below": "No iteration that passes all checks reached {required}; selected without it",
    "latest": "Latest iteration",
    "latest, verified": "Latest iteration that passes all checks",
    "latest, reached": "Latest iteration that reaches {required}",
    "latest, reached, verified": "Latest iteration that reaches {required} and passes all checks",
    "latest, reached, not verified": "No iteration that reaches {required} passed all checks; selected is the latest of them",
    "latest, not verified": "No iteration passed all checks; selected is the latest",
    "latest, below": "No iteration reached {required}; selected is the latest",
}
"""Every sentence that there is, by the case that it is for; ``{required}`` is the required score."""

TRUE: Mapping[str, Callable[[Facts], bool]] = {
    "alone": lambda facts: facts.later == [],
    "no score": lambda facts: facts.later == [],
    "all equal": lambda facts: all(view.score == facts.start for view in facts.later),
    "equal": lambda facts: not any(map(facts.higher, facts.later)) and any(view.score != facts.start for view in facts.later),
    "all lower": lambda facts: all((view.score or 0) < facts.start for view in facts.later),
    "none higher": lambda facts: not any(map(facts.higher, facts.later)),
    "higher not verified": lambda facts: (
        any(map(facts.higher, facts.later)) and not any(map(facts.higher, only(facts.passed, facts)))
    ),
    "verified": lambda facts: facts.is_best_of(only(facts.passed, facts)),
    "highest": lambda facts: facts.is_best_of(facts.valid),
    "not verified": lambda facts: not only(facts.passed, facts) and facts.required is None,
    "not verified, reached": lambda facts: not only(facts.passed, facts) and facts.reached(facts.chosen),
    "not verified, below": lambda facts: not only(facts.passed, facts) and not only(facts.reached, facts),
    "unchecked": lambda facts: {"skipped"} == {view.verification for view in facts.valid} and facts.is_best_of(facts.valid),
    "unchecked, reached": lambda facts: (
        {"skipped"} == {view.verification for view in facts.valid} and facts.reached(facts.chosen)
    ),
    "unchecked, below": lambda facts: (
        {"skipped"} == {view.verification for view in facts.valid} and not only(facts.reached, facts)
    ),
    "below": lambda facts: not only(facts.reached, facts),
    "verified, below": lambda facts: not both(facts) and bool(only(facts.passed, facts)) and bool(only(facts.reached, facts)),
    "latest": lambda facts: facts.is_last_of(facts.valid),
    "latest, verified": lambda facts: facts.is_last_of(only(facts.passed, facts)),
    "latest, reached": lambda facts: facts.is_last_of(only(facts.reached, facts)),
    "latest, reached, verified": lambda facts: facts.is_last_of(both(facts)),
    "latest, reached, not verified": lambda facts: not both(facts) and facts.is_last_of(only(facts.reached, facts)),
    "latest, not verified": lambda facts: not only(facts.passed, facts) and facts.is_last_of(facts.valid),
    "latest, below": lambda facts: not only(facts.reached, facts) and facts.is_last_of(facts.valid),
}


def test_every_sentence_is_true_of_every_loop_that_it_is_told_of_and_each_is_told() -> None:
    told: set[str] = set()
    for report in loops():
        selection = report.selection
        if selection is None:
            continue
        required = f"the required score of {report.criteria.threshold}"
        sentence = why_selected(report, selection)
        (case,) = [name for name, words in SENTENCES.items() if words.format(required=required) == sentence]
        described = [(view.score, view.verification) for view in report.views]
        assert TRUE[case](Facts(report, selection.selected_iteration)), (case, sentence, report.criteria, described, selection)
        told.add(case)
    assert set(SENTENCES) == told


@pytest.mark.parametrize(("failure", "said"), [("changed_nothing", ", and changed nothing"), (None, "")])
def test_an_equal_that_is_not_kept_says_why(failure: None, said: str) -> None:
    from jumar.loop.report.reasons import runner_up

    idle = record(1, 40, parent=0, failure=failure)
    report = report_of([record(0, 40), idle if failure else record(1, 40)], SelectionCriteria(threshold=None))
    assert report.selection is not None
    assert "No iteration scored higher than the start" == why_selected(report, report.selection)
    assert f"iteration 1 is next, with the same score{said}" == runner_up(report, report.selection, "iteration 1")
