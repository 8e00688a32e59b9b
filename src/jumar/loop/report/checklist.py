"""Seed 1's validation checklist, each line computed, with the fact that decides it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from jumar.core.record import Record
from jumar.core.rendering.figures import iteration_label, listing, point_text
from jumar.core.text import percent, plural
from jumar.loop.report.read import LoopReport
from jumar.model.views import best_of_batches, valid_score


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckLine(Record):
    """One line: what should be true, whether it is, and the fact behind the answer."""

    text: str
    done: bool
    fact: str


def checklist(report: LoopReport) -> tuple[CheckLine, ...]:
    """Return the seven lines, in seed 1's order."""
    answers = ((text, answer(report)) for text, answer in _LINES)
    return tuple(CheckLine(text=text, done=done, fact=fact) for text, (done, fact) in answers)


def _preserved(report: LoopReport) -> Answer:
    if not report.records:
        return False, "no iteration is recorded"
    if report.snapshots is None:
        return False, "not looked at: this report was made from records alone"
    missing = [record.iteration_number for record in report.records if record.iteration_number not in report.snapshots]
    if not missing:
        return True, f"{plural(len(report.records), 'snapshot')} stored"
    cleaned = [decision.number for decision in report.decisions if decision.kind == "cleanup"]
    why = f"removed by cleanup (decision {cleaned[-1]})" if cleaned else "missing, and no cleanup removed them"
    return False, f"{listing(missing)} {why}; {len(report.records) - len(missing)} of {len(report.records)} stored"


def _scored(report: LoopReport) -> Answer:
    invalid = [view.number for view in report.views if valid_score(view) is None]
    valid = len(report.views) - len(invalid)
    if not report.views:
        return False, "no iteration is recorded"
    if not invalid:
        return True, f"{valid} of {valid}"
    return False, f"{valid} of {len(report.views)}; no valid score: {listing(invalid)}"


def _tracked(report: LoopReport) -> Answer:
    if not report.leaders:
        return False, "no iteration has a valid score"
    path = _path(report.leaders)
    best = report.record(report.leaders[-1])
    return True, f"running best: {path} ({percent(best.quality_score)})"


def _path(leaders: tuple[int, ...]) -> str:
    shown = [str(number) for number in leaders]
    if len(shown) > 8:
        shown = [*shown[:3], "…", *shown[-4:]]
    return " → ".join(shown)


def _by_quality(report: LoopReport) -> Answer:
    if report.selection is None:
        return False, "nothing could be selected"
    if report.override is not None:
        return False, f"overridden by {report.override.by} (decision {report.override.number})"
    if report.criteria.mode == "most_recent_above_threshold":
        return False, "the mode most_recent_above_threshold prefers the most recent one that qualifies"
    chosen = report.selection.selected_iteration
    score = report.selection.quality_score
    if report.within_noise:
        how = "by all readings of the finalists" if report.certainty is not None and report.certainty.rescored else "and a tie"
        return True, f"iteration {iteration_label(chosen)} has {percent(score)}, {how}; see how sure this is"
    pool = _pool(report, chosen)
    highest = max(pool.values())
    which = "verified score" if _only_verified(report, chosen) else "valid score"
    top = f"the highest of {plural(len(pool), which)} is {percent(highest)}"
    return score == highest, f"iteration {iteration_label(chosen)} has {percent(score)}, {top}"


def _only_verified(report: LoopReport, chosen: int) -> bool:
    wanted = report.criteria.mode == "highest_quality_verified"
    return wanted and report.record(chosen).verification_status == "passed"


def _pool(report: LoopReport, chosen: int) -> Mapping[int, float]:
    """The valid scores that the selected one competes with: the verified ones when the mode wants them and it is one."""
    only_verified = _only_verified(report, chosen)
    return {
        view.number: score
        for view in report.views
        if (score := valid_score(view)) is not None and (not only_verified or view.verification == "passed")
    }


def _logged(report: LoopReport) -> Answer:
    choices = [decision for decision in report.decisions if decision.kind in {"select", "override"}]
    standing = [decision for decision in choices if decision.best_iteration == report.chosen]
    if report.override is not None:
        standing = [report.override]
    if not standing:
        return False, "not logged yet" if not choices else "the logged selection is of an earlier state"
    last = standing[-1]
    if not last.reason.strip():
        return False, f"decision {last.number} gives no reason"
    return True, f"decision {last.number} ({last.kind}) by {last.by} at {last.at}: {last.reason}"


def _override_available(report: LoopReport) -> Answer:
    if report.config.get("override_enabled") is False:
        return False, "switched off: [override] enabled = false"
    used = sum(decision.kind == "override" for decision in report.decisions)
    return True, f"available; {'not used' if not used else 'used once' if used == 1 else f'used {used} times'}"


def _degradation_looked_for(report: LoopReport) -> Answer:
    # steps from one valid score to the next, as the detection takes them
    compared = sum(valid_score(view) is not None for view in best_of_batches(report.views)) - 1
    if compared < 1:
        return False, "needs two valid scores to compare"
    found, selection = report.degradation, report.selection
    facts: list[str] = []
    if found.detected:
        facts.append(f"{', '.join(found.triggers).replace('_', ' ')} at {listing(found.iterations)}")
    if selection is not None and selection.degradation_detected and selection.final_quality is not None:
        noise = f", {report.excuse}" if report.excuse else ""
        lost = point_text(selection.quality_score - selection.final_quality)
        facts.append(f"the final iteration is {lost} below the best choice{noise}")
    return True, f"looked at {plural(compared, 'change')} of score; {'; '.join(facts) or 'none found'}"


Answer = tuple[bool, str]
_LINES: Final[tuple[tuple[str, Callable[[LoopReport], Answer]], ...]] = (
    ("All iteration outputs preserved", _preserved),
    ("Quality score calculated for each iteration", _scored),
    ("Best tracker maintained throughout", _tracked),
    ("Selection based on quality, not recency", _by_quality),
    ("Selection decision logged with rationale", _logged),
    ("Override option available if needed", _override_available),
    ("Degradation patterns detected", _degradation_looked_for),
)
