"""What a loop's judges did in each iteration: what the cheap one learned, and in mode auto who decided and what that saved.

For the report, the run and ``jumar status``.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any, Final

from jumar.core.rendering.figures import UNKNOWN, iteration_label, share
from jumar.core.text import plural, points
from jumar.loop.store.layout import iteration_name
from jumar.model import AutoDecisions, IterationRecord, Judgement, StopDecision

LEARNED_COLUMNS: Final = ("Iteration", "Gap", "Gap, unseen", "Patterns", "Committed", "Rejected", "Tracks", "Note")
_TRACKS: Final = {True: "yes", False: "no", None: "not proven"}

DECIDED_COLUMNS: Final = (
    *("Iteration", "Cheap alone", "Judge asked", "Calls saved", "Saved", "Average", "95 % interval", "Audits wrong", "Note"),
)

_AVERAGE: Final = (
    "The average is what the judge's would be: the cheap one, corrected by the errors of the items that the judge was asked "
    "about. It is as uncertain as its interval, and so is the score that is made of it"
)


def _judged(record: IterationRecord | None) -> list[Judgement]:
    readings = () if record is None else record.readings
    return [reading.judgement for reading in readings if reading.judgement is not None]


def _learning(record: IterationRecord | None) -> list[Judgement]:
    return [judged for judged in _judged(record) if judged.learned is not None]


def _deciding(record: IterationRecord | None) -> list[Judgement]:
    return [judged for judged in _judged(record) if judged.auto is not None]


def learned_rows(records: Iterable[IterationRecord]) -> list[tuple[str, ...]]:
    """Return a row of texts for each evaluation that learned, or waited to; none where no cheap judge learns."""
    return [_learned_row(record, judged) for record in records for judged in _learning(record)]


def _learned_row(record: IterationRecord, judged: Judgement) -> tuple[str, ...]:
    label, gap = iteration_label(record.iteration_number), share(judged.abs_gap)
    learned = judged.learned
    if learned is None or learned.set is None:
        return (label, gap, *(UNKNOWN for _ in range(5)), "" if learned is None else learned.waiting)
    counts = (f"{learned.patterns:,}", f"{learned.committed:,}", f"{learned.rejected:,}")
    notes = [word for word, holds in (("rolled back", learned.rolled_back), ("converged", learned.converged)) if holds]
    return (label, gap, share(learned.abs_gap), *counts, _TRACKS[learned.tracks], ", ".join(notes))


def take_over(records: Iterable[IterationRecord], directory: str) -> str | None:
    """Return the command that makes the newest learned set the person's own, None where nothing was learned.

    ``directory`` is the loop's.
    """
    found: str | None = None
    for record in records:
        for judged in _learning(record):
            if judged.learned is not None and judged.learned.set is not None and record.quality_score is not None:
                found = f"{directory}/iterations/{iteration_name(record.iteration_number)}/{judged.learned.set}"
    return None if found is None else f"cp {shlex.quote(found)} patterns.json"


def learned_document(record: IterationRecord | None) -> dict[str, Any] | None:
    """Return what the cheap judge knew after an iteration, as it stands in its record; None where it does not learn."""
    judged = _learning(record)
    return judged[0].learned.to_json() if judged and judged[0].learned is not None else None


def learned_words(learned: dict[str, Any]) -> str:
    """Return :func:`learned_document` as a line."""
    if learned["set"] is None:
        return str(learned["waiting"])
    words = f"{learned['patterns']:,} patterns from {learned['items']:,} texts, {learned['committed']:,} committed, "
    words += f"{learned['rejected']:,} rejected; gap on unseen {share(learned['abs_gap'])}, tracks: {_TRACKS[learned['tracks']]}"
    return words + (
        ", converged" if learned["converged"] else f"; not converged: {learned['missing']}" if learned["missing"] else ""
    )


def unconverged_sentence(learned: dict[str, Any] | None, stop: StopDecision | None, *, asked: bool) -> str:
    """Return what :func:`learned_document` says is missing where a loop was to stop on it, ``asked``, and did not; else empty."""
    if learned is None or not asked or stop is None or stop.reason == "converged":
        return ""
    missing = str(learned["missing"] or learned["waiting"])
    return f"Not converged: {missing}." if missing else ""


def decided_rows(records: Iterable[IterationRecord]) -> list[tuple[str, ...]]:
    """Return a row of texts for each evaluation in mode auto; none where no iteration was judged so."""
    return [_decided_row(record, judged) for record in records for judged in _deciding(record)]


def _decided_row(record: IterationRecord, judged: Judgement) -> tuple[str, ...]:
    auto = judged.auto
    if auto is None:
        return (iteration_label(record.iteration_number), *(UNKNOWN for _ in DECIDED_COLUMNS[1:]))
    notes = [] if not auto.reasons else ["audits failed: the rest was asked, too" if auto.rest_asked else "proof not believed"]
    notes += [] if not auto.undecided else [f"{auto.undecided:,} undecided"]
    return (
        iteration_label(record.iteration_number),
        f"{auto.cheaply:,} of {judged.items:,}",
        f"{auto.audited + auto.escalated:,}, {auto.audited:,} as audits" if auto.audited else f"{auto.escalated:,}",
        f"{auto.calls_saved:,}",
        _dollars(auto.cost_saved_usd),
        UNKNOWN if judged.gestalt is None else f"{judged.gestalt:.2f}",
        _interval(auto.interval) or "none",
        f"{auto.wrong:,} of {auto.audited:,}",
        ", ".join(notes),
    )


def decided_notes(records: Iterable[IterationRecord]) -> list[str]:
    """Return what the table does not say: what the average is, what is promised, and why a proof is not believed."""
    judged = [(record, one) for record in records for one in _deciding(record)]
    if not judged:
        return []
    last = judged[-1][1].auto
    notes = [_AVERAGE]
    if any(one.auto is not None and one.auto.interval is None for _, one in judged):
        notes.append("No interval: audits in fewer than ten groups say too little; a larger audit draws more")
    if last is not None:
        notes.append(f"At most {last.promised:.0%} of what the cheap judge decides alone may be wrong. {_kept(last)}")
    told: dict[str, list[str]] = {}
    for record, one in judged:
        for reason in one.auto.reasons if one.auto is not None else ():
            told.setdefault(reason, []).append(iteration_label(record.iteration_number))
    notes += [
        f"The cheap judge decides nothing in iteration {', '.join(where)}, because {reason}: the judge was asked about every item"
        for reason, where in told.items()
    ]
    return notes


def _kept(last: AutoDecisions) -> str:
    if last.audited:
        were = "was" if last.wrong == 1 else "were"
        found = f"{last.wrong:,} of {plural(last.audited, 'audit')} of the last iteration {were} wrong"
        return f"{found}, so it may be up to {last.wrong_at_most:.0%}"
    return "Nothing was audited, so that nobody knows whether that is kept" if last.cheaply else "It decided nothing"


def decided_document(record: IterationRecord | None) -> dict[str, Any] | None:
    """Return who decided in an iteration, as it stands in its record, with its items and average; None in other modes."""
    judged = _deciding(record)
    if not judged or judged[0].auto is None:
        return None
    one = judged[0]
    return {"items": one.items, "average": one.gestalt, **judged[0].auto.to_json()}


def decided_words(found: dict[str, Any]) -> str:
    """Return :func:`decided_document` as a line."""
    asked = found["audited"] + found["escalated"]
    average = "—" if found["average"] is None else f"{found['average']:.2f}"
    between = _interval(found["interval"])
    words = [f"{found['cheaply']:,} of {plural(found['items'], 'item')} decided by the cheap judge alone, {asked:,} by the judge"]
    words.append(f"average {average}{f' {between}' if between else ', no interval'}")
    if found["cheaply"] or found["audited"]:
        words.append(f"saved {plural(found['calls_saved'], 'call')}, {_dollars(found['cost_saved_usd'])}")
        words.append(f"{found['wrong']:,} of {plural(found['audited'], 'audit')} wrong")
    return "; ".join([*words, *found["reasons"]])


def _interval(given: Any) -> str:
    """Return an interval of averages, and of what they are on the scale of the score; empty for None."""
    if given is None:
        return ""
    low, high = (points(25 * (float(end) - 1)) for end in given)
    return f"[{given[0]:.2f}, {given[1]:.2f}], {low} to {high} of 100"


def _dollars(value: float | None) -> str:
    return "unknown cost" if value is None else f"${value:.4f}"
