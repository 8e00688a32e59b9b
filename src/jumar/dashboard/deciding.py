"""Where a person chooses: what is selected beside its rivals, what applying it would change, who decided what."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from jumar.app.decide import plan_selected
from jumar.core.given import Given, sides
from jumar.core.rendering.figures import UNKNOWN, iteration_label, moment, point_text
from jumar.core.text import named, percent, plural
from jumar.dashboard.diffs import shown_diff
from jumar.dashboard.pages import address_of, tabs_of
from jumar.errors import JumarError
from jumar.loop.decisions.apply import plan_undo, way_back
from jumar.loop.report.diff import DiffLimits, compare
from jumar.loop.report.ending import why_chosen
from jumar.loop.report.reasons import capital, kind_words
from jumar.loop.report.rows import VERIFIED
from jumar.loop.snapshots.content import PlainFiles
from jumar.model.ordering import valid_score

if TYPE_CHECKING:
    from jumar.dashboard.library import Run
    from jumar.dashboard.pages import PageFrame
    from jumar.loop.decisions.plan import ApplyPlan
    from jumar.loop.report.read import LoopReport
    from jumar.loop.store.loop_store import LoopStore

_PREVIEW: Final = DiffLimits(total_lines=5_000)


def decide(frame: PageFrame, run: Run, store: LoopStore, report: LoopReport) -> str:
    """Return the page: selected, last and runner-up, the preview of an apply as a diff, the decisions so far."""
    seen = last_decision(store)
    plan, refused = _plan(store)
    page = {
        "form_token": frame.form_token,
        "seen": seen,
        "address": address_of(run),
        "chosen": report.chosen,
        "lead": "Nothing is selected." if report.chosen is None else f"Iteration {iteration_label(report.chosen)} is selected.",
        "reason": "" if report.chosen is None else why_chosen(report),
        "compared": _compared(report),
        "margin": _margin(report),
        "choices": [
            (record.iteration_number, iteration_label(record.iteration_number), percent(record.quality_score))
            for record in report.records
            if valid_score(record.view()) is not None
        ],
        "plan": plan,
        "preview": None if plan is None or plan.empty else shown_diff(_preview(store, plan)),
        "no_plan": refused,
        "undo": _undo(store),
        "trail": [(entry, moment(entry.decision.at), kind_words(entry)) for entry in reversed(report.trail)],
        "unknown": UNKNOWN,
    }
    return frame.page("decide.html.j2", page, tabs=tabs_of(run, "decide"))


def last_decision(store: LoopStore) -> str:
    """Return what stands in the forms of a page, so that they change nothing after somebody decided something else."""
    decisions = store.decisions()
    return str(decisions[-1].number) if decisions else "0"


def _plan(store: LoopStore) -> tuple[ApplyPlan | None, str]:
    """Return what an apply would do, or why it is not known."""
    try:
        return plan_selected(store), ""
    except (JumarError, OSError) as error:
        return None, str(error)


def _preview(store: LoopStore, plan: ApplyPlan) -> Any:
    """Return the working directory against the snapshot, of those paths that an apply would change."""
    record, changes = store.record(plan.iteration, listed=False), plan.moves.changes
    now = {change.path: change.before for change in changes if change.before is not None}
    then = {change.path: change.after for change in changes if change.after is not None}
    snapshot = store.content(plan.iteration) if store.has_snapshot(plan.iteration) else None
    return compare(store.loop_id, (record, now, PlainFiles(plan.workdir)), (record, then, snapshot), limits=_PREVIEW)


def _compared(report: LoopReport) -> list[tuple[str, int, str, str]]:
    """Return the iterations that were in question, each once with all that it is: names, number, score, verified."""
    selection = report.selection
    named = {
        "selected": report.chosen,
        "by the rules": None if selection is None or selection.stands == report.chosen else selection.stands,
        "last": None if report.final is None else report.final.iteration_number,
        "runner-up": None if selection is None else selection.runner_up,
    }
    found: dict[int, list[str]] = {}
    for name, number in named.items():
        if number is not None:
            found.setdefault(number, []).append(name)
    return [
        (
            capital(" and ".join(names)),
            number,
            percent(report.score_of(number)),
            VERIFIED[report.record(number).verification_status],
        )
        for number, names in found.items()
    ]


def _margin(report: LoopReport) -> str:
    """Return how far the selected iteration is from the runner-up, or from what the rules select where it is not that."""
    selection, score = report.selection, report.chosen_quality
    if selection is None or score is None:
        return ""
    ruled = selection.stands
    if ruled != report.chosen:
        other = report.score_of(ruled)
        if other is None or other == score:
            return f"As good as iteration {iteration_label(ruled)}, which the rules select"
        way = sides(score, "below", "above")[score > other] + (" than" if isinstance(score, Given) else "")
        return f"{point_text(score - other)} {way} iteration {iteration_label(ruled)}, which the rules select"
    if selection.margin is None:
        return ""
    if not selection.margin:
        return "As good as the runner-up; of equals the earlier one is selected"
    ahead = selection.margin > 0
    word = ("better than" if ahead else "worse than") if isinstance(selection.margin, Given) else "over" if ahead else "below"
    return f"{point_text(selection.margin)} {word} the runner-up"


def _undo(store: LoopStore) -> tuple[str, str] | None:
    """Return what the button is called and what it would do; None where there is nothing to take back."""
    back = way_back(store)
    if back is None:
        return None
    told = ""
    with contextlib.suppress(JumarError, OSError):
        plan = plan_undo(store)
        before = "before the loop" if plan.apply is None else f"before iteration {plan.iteration} was applied"
        told = f"{plural(len(plan.moves.changes), 'file')} would be as {before}."
        if plan.conflicts:
            told += f" Changed since: {named(plan.conflicts)}; `jumar apply {store.loop_id} --undo --force` sets that aside."
    return "Undo the last apply" if back == "apply" else "Put the start back", told
