"""What ``jumar run --estimate`` prints: each limit, what an iteration takes of it, and how many iterations that makes."""

from __future__ import annotations

from jumar.app.run.estimate import SET_ASIDE, RunEstimate, estimate_run
from jumar.app.run.request import RunRequest
from jumar.cli.common import print_json, print_text
from jumar.cli.terminal.tabular import Column, Row, print_table
from jumar.core.rendering.figures import UNKNOWN, dollars
from jumar.core.text import escape, plural
from jumar.model.budget.estimate import Estimate, EstimateRow, Range

__all__ = ["show_estimate"]


def show_estimate(request: RunRequest, *, as_json: bool) -> int:
    """Print the estimate for the loop of ``request``, as text or JSON; return the exit code."""
    found = estimate_run(request)
    if as_json:
        print_json(found.to_json())
    else:
        _show(found)
    return 0


def _show(found: RunEstimate) -> None:
    state = f"{plural(found.made, 'iteration')} made, {dollars(found.spend.cost_usd)} spent" if found.exists else "not begun"
    print_text(f"loop      {escape(found.loop_id)}: {state}")
    if found.estimate is None:
        print_text("estimate  there is no limit to estimate by: give --max-cost, --max-tokens, --max-seconds or -n")
        return
    columns = (
        Column(name="limit"),
        Column(name="left"),
        Column(name="an iteration"),
        Column(name="iterations"),
        Column(name="from", fold=True),
    )
    rows = [
        Row(cells=(row.limit, _amount(row, row.left), _use(row), _count(row.passes), row.source)) for row in found.estimate.rows
    ]
    print_table(columns, rows)
    print_text(f"estimate  {_verdict(found.estimate) if found.ended is None else _after_the_end(found.ended, found.estimate)}")


def _verdict(found: Estimate) -> str:
    passes, limit = found.passes, found.limited_by
    first = next((row for row in found.rows if row.limit == limit), None)
    assumed = ", if each takes what is set aside for it" if first is not None and first.source == SET_ASIDE else ""
    if passes.typical is not None:
        spread = "" if passes.low == passes.high else f" ({_count(passes)})"
        return f"the budget buys about {plural(round(passes.typical), 'iteration')}{spread}{assumed}; {limit} is reached first"
    most = "about" if assumed else "at most"
    untold = " and ".join(row.limit for row in found.rows if row.passes.typical is None)
    bought = f"{most} {plural(round(passes.high or 0), 'iteration')} by {limit}{assumed}"
    return f"{bought}; what an iteration takes of {untold} is not known before the first one"


def _after_the_end(why: str, found: Estimate) -> str:
    """Say that the loop has ended, and what is left of each limit: nothing runs until one of them, or a rule, is changed."""
    left = [f"{_amount(row, row.left)} of {row.limit}" for row in found.rows]
    most = found.passes.typical if found.passes.typical is not None else found.passes.high
    buys = "" if not most else f", about {plural(round(most), 'iteration')}"
    return f"the loop has ended ({escape(why)}); left are {', '.join(left)}{buys}"


def _amount(row: EstimateRow, value: float | None) -> str:
    if value is None:
        return UNKNOWN
    if row.limit == "max_cost_usd":
        return dollars(value)
    return f"{value:,.1f} s" if row.limit == "max_seconds" else f"{round(value):,}"


def _use(row: EstimateRow) -> str:
    use = row.a_pass
    if use.low is None:
        return "1" if row.limit.startswith("max_iterations") else UNKNOWN
    if use.high is None:
        return f"over {_amount(row, use.low)}"
    middle = _amount(row, use.typical)
    return middle if use.low == use.high else f"{middle} ({_amount(row, use.low)} to {_amount(row, use.high)})"


def _count(passes: Range) -> str:
    if passes == Range():
        return UNKNOWN
    if passes.typical is None:
        return f"at most {round(passes.high or 0):,}"
    if passes.low == passes.high:
        return f"{round(passes.typical):,}"
    high = "any number" if passes.high is None else f"{round(passes.high):,}"
    return f"{round(passes.typical):,}, from {round(passes.low or 0):,} to {high}"
