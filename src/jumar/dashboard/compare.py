"""Comparisons: any two iterations, of one loop or of two, and loops with loops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote, urlencode

from jumar.core.rendering.figures import UNKNOWN, dollars, duration, iteration_label
from jumar.core.text import natural, percent, points
from jumar.dashboard.climbs import MOST_LOOPS, OVERS, Climb, Over, climb, climbs_page
from jumar.dashboard.diffs import shown_diff
from jumar.errors import JumarError, NotFoundError, UsageError
from jumar.loop.ranking.repairs import repairs
from jumar.loop.report.diff import compare, side_of
from jumar.loop.report.rows import VERIFIED, checks_cell, tests_of

if TYPE_CHECKING:
    from starlette.datastructures import QueryParams

    from jumar.dashboard.library import Library, Run
    from jumar.dashboard.pages import PageFrame
    from jumar.loop.report.diff import Side
    from jumar.loop.report.read import LoopReport
    from jumar.model import CheckResult, IterationRecord

_LISTED: Final = 200


def comparison(frame: PageFrame, library: Library, query: QueryParams) -> str:
    """Return the page: two iterations where an address names ``a`` and ``b`` (``LOOP:NUMBER``), the loops that it names.

    Errors: :class:`NotFoundError` for what is not there, :class:`UsageError` for what is no comparison.
    """
    keys = list(dict.fromkeys(query.getlist("loop")))
    if len(keys) > MOST_LOOPS:
        raise UsageError(f"{len(keys)} loops are too many for one plot: choose up to {MOST_LOOPS}")
    over = cast("Over", query["over"]) if query.get("over") in OVERS else "iterations"
    climbs, unread = _climbs(library, keys)
    every = [run for run in library.runs() if run.kind == "loop"]
    asked = {side: _asked(query, side) for side in ("a", "b")}
    page: dict[str, Any] = {
        "overs": [(name, f"?{urlencode([*(('loop', key) for key in keys), ('over', name)])}", name == over) for name in OVERS],
        "unread": unread,
        "any": bool(every) or not library.complete,
        "sides": None,
        "choices": [_choice(library, every, side, *asked[side]) for side in asked],
        **climbs_page(climbs, over),
    }
    if asked["a"][0] and asked["b"][0]:
        same = asked["a"][0] == asked["b"][0]
        page |= _sides(_chosen(library, *asked["a"], is_start=same), _chosen(library, *asked["b"]))
    return frame.page("compare.html.j2", page)


def _climbs(library: Library, keys: list[str]) -> tuple[list[Climb], list[Run]]:
    """Return the loops that can be read, and those that cannot. Errors: :class:`NotFoundError` for one that is not there."""
    climbs: list[Climb] = []
    unread: list[Run] = []
    for key in keys:
        run = library.find("loop", key)
        try:
            climbs.append(climb(library, key, len(climbs)))
        except (JumarError, OSError):
            unread.append(run)
    return climbs, unread


# ---------------------------------------------------------------------------------------------------------- iterations


def _asked(query: QueryParams, side: str) -> tuple[str, str]:
    """Return loop and number of ``LOOP:NUMBER``, or of a loop and the number beside it; no number is the selected one."""
    given, number = query.get(side, ""), query.get(f"{side}n")
    if number is not None:
        return given, number
    key, colon, own = given.rpartition(":")
    return (key, own) if colon else (given, "")


def _choice(library: Library, every: list[Run], side: str, key: str, number: str) -> dict[str, Any]:
    """Return the fields of one side: loops, and the iterations of the one that is chosen."""
    loops = [(run.key, run.name) for run in every[:_LISTED]]
    if key and key not in dict(loops):
        loops.append((key, library.find("loop", key).name))
    records = library.loop(key)[1].records if key else ()
    return {
        "name": side,
        "key": key,
        "loops": loops,
        "number": number,
        "iterations": [
            (str(record.iteration_number), f"{iteration_label(record.iteration_number)}: {percent(record.quality_score)}")
            for record in records
        ],
    }


Chosen = tuple["Run", "LoopReport", "IterationRecord", "Side"]


def _chosen(library: Library, key: str, number: str, *, is_start: bool = False) -> Chosen:
    """Return an iteration; without a number the selected one, else the last, or where it begins if ``is_start``."""
    store, report = library.loop(key)
    run = library.find("loop", key)
    if not report.records:
        raise NotFoundError(f"{run.name} has no iteration yet")
    if number:
        wanted = natural(number)
    elif is_start:
        wanted = report.records[0].iteration_number
    else:
        wanted = report.chosen if report.chosen is not None else report.records[-1].iteration_number
    if wanted is None:
        raise UsageError(f"'{number}' is no number of an iteration")
    record = report.find(wanted)
    if record is None:
        raise NotFoundError(f"{run.name} has no iteration {wanted}")
    return run, report, record, side_of(store, wanted)


def _sides(one: Chosen, other: Chosen) -> dict[str, Any]:
    diff = compare("", one[3], other[3])
    records = one[2], other[2]
    checks = [{check.name: check for check in record.checks} for record in records]
    names = dict.fromkeys([*checks[0], *checks[1]])
    return {
        "sides": [_side(run, record) for run, _, record, _ in (one, other)],
        "facts": _facts(*records),
        "dimensions": [(name, _shown(a), _shown(b), _more(a, b)) for name, (a, b) in diff.dimensions.items()],
        "checks": [(name, *_beside(checks[0].get(name), checks[1].get(name))) for name in names],
        "repaired": [(verb, str(tests)) for verb, tests in repairs(records[1], records[0]).parts],
        "delta": "" if diff.score_delta is None else f"{_signed(points(diff.score_delta, sign=True))} points",
        "diff": shown_diff(diff),
    }


def _side(run: Run, record: IterationRecord) -> dict[str, Any]:
    number = record.iteration_number
    return {
        "key": run.key,
        "loop": run.name,
        "number": number,
        "name": f"iteration {iteration_label(number)}",
        "address": f"{quote(run.address)}/iterations/{number}",
    }


def _facts(one: IterationRecord, other: IterationRecord) -> list[tuple[str, str, str, str]]:
    """Return what both have: a name, both values, and the second less the first where both are known."""
    scores, costs = (one.quality_score, other.quality_score), (one.token_cost_usd, other.token_cost_usd)
    seconds = [None if ms is None else ms / 1000 for ms in (one.execution_time_ms, other.execution_time_ms)]
    score = "" if scores[0] is None or scores[1] is None else points(scores[1] - scores[0], sign=True)
    cost = "" if costs[0] is None or costs[1] is None else f"{costs[1] - costs[0]:+,.4f}"
    time = "" if seconds[0] is None or seconds[1] is None else _time_more(seconds[1] - seconds[0])
    paid = ["not reported" if value is None else dollars(value) for value in costs]
    told = [percent(value) if value is not None else "no valid score" for value in scores]
    return [
        ("Score", told[0], told[1], _signed(score)),
        ("Verified", VERIFIED[one.verification_status], VERIFIED[other.verification_status], ""),
        ("Tests that pass" if tests_of(one) or tests_of(other) else "Checks that pass", checks_cell(one), checks_cell(other), ""),
        ("Cost of the generator", paid[0], paid[1], _signed(cost)),
        ("Time", duration(seconds[0]), duration(seconds[1]), time),
    ]


def _time_more(seconds: float) -> str:
    return f"{'−' if seconds < 0 else '+'}{duration(abs(seconds))}"


Cell = tuple[str, str] | None


def _beside(one: CheckResult | None, other: CheckResult | None) -> tuple[Cell, Cell, str]:
    """Return how a check went on both sides, and how many more of its tests pass on the second."""
    counts = [None if check is None or check.broken is not None else check.tests for check in (one, other)]
    more = "" if counts[0] is None or counts[1] is None else _signed(f"{counts[1].passed - counts[0].passed:+,}")
    return _verdict(one), _verdict(other), more


def _verdict(check: CheckResult | None) -> Cell:
    """Return how a check went, and the class that shows it."""
    if check is None:
        return None
    if check.broken is not None:
        return "could not run", "bad"
    sign, kind = ("✓", "good") if check.passed else ("✗", "bad")
    if check.tests is not None:
        return f"{sign} {check.tests.passed:,} of {check.tests.total:,} tests", kind
    return f"{sign} {'passed' if check.passed else 'failed'}", kind


def _shown(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.2f}"


def _more(one: float | None, other: float | None) -> str:
    return "" if one is None or other is None else _signed(f"{other - one:+.2f}")


def _signed(text: str) -> str:
    return text.replace("-", "−")
