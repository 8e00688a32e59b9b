"""What a run took: where attempts, time, tokens and dollars went, what went wrong, and what it takes to go on."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from jumar.core.rendering.figures import UNKNOWN, count, dollars, duration
from jumar.core.text import plural, short_dollars
from jumar.loop.report.money import NAMES, Part, Took, spent_money, spent_tokens
from jumar.model.attempts import Spend
from jumar.model.budget.limits import Budget

if TYPE_CHECKING:
    from jumar.loop.report.read import LoopReport

__all__ = [
    "TOOK_COLUMNS",
    "average_of",
    "failures_text",
    "going_on",
    "passes_text",
    "took_document",
    "took_rows",
    "took_sentences",
]

TOOK_COLUMNS = ("What", "Attempts", "Cost", "Tokens", "Time")


_OPTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "max_cost": "[budget] max_cost_usd (jumar run --max-cost)",
        "max_tokens": "[budget] max_tokens (jumar run --max-tokens)",
        "max_seconds": "[budget] max_seconds (jumar run --max-seconds)",
        "max_attempts": "[budget] max_iterations",
    }
)
_OTHERWISE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "unknown_cost": "have the generator report its cost, or set [budget] reserve_cost_usd; then jumar run",
        "rate_limited": "jumar run, once the provider takes requests again",
        "blocked": "see to what it is blocked by, then jumar run",
        "disk_full": "free some space, then jumar run",
        "interrupted": "jumar run",
        "terminated": "jumar run",
        "stop_file": "remove the STOP file (jumar stop --undo), then jumar run",
    }
)


def took_rows(report: LoopReport) -> tuple[tuple[str, ...], ...]:
    """Return the rows under :data:`TOOK_COLUMNS`, the last one the total against the limits; empty where nothing was written."""
    if report.took is None:
        return ()
    rows = [(NAMES[part.kind], count(part.attempts), *_money(part), duration(part.spend.seconds)) for part in report.took.parts]
    total, budget = report.spend, report.budget
    limit = "" if budget.max_seconds is None else f" of {duration(budget.max_seconds)}"
    runs = "" if budget.max_iterations is None else f" ({total.iterations:,} of {budget.max_iterations:,} runs of the generator)"
    calls = f"{count(total.calls)}{runs}"
    return (*rows, ("In all", calls, _cost(total, budget), spent_tokens(total, budget), f"{duration(total.seconds)}{limit}"))


def _money(part: Part) -> tuple[str, str]:
    """Return cost and tokens; of checks and scorers only where one of them told something: what nobody reported is not nought."""
    if part.kind in {"scoring", "confirming"} and part.spend.cost_usd == 0 and not part.spend.tokens:
        return UNKNOWN, UNKNOWN
    return _cost(part.spend, Budget()), spent_tokens(part.spend, Budget())


def _cost(spent: Spend, budget: Budget) -> str:
    if spent.cost_usd == 0 and budget.max_cost_usd is None:
        return dollars(0, places=0)
    return spent_money(spent, budget, places=4).removeprefix("cost ")


def took_sentences(report: LoopReport) -> tuple[str, ...]:
    """Return what went wrong and how long a provider asked to wait; empty when nothing did."""
    found = report.took
    if found is None:
        return ()
    lines = [f"Went wrong: {failures_text(found.failures)}"] if found.failures else []
    refused = found.failures.get("rate_limited", 0)
    if refused:
        untold = f"{plural(found.untold, 'time')} without saying for how long" if found.untold else ""
        told = f"{duration(found.told_to_wait)} in all" if refused > found.untold else ""
        lines.append(f"Asked to wait by the provider: {'; '.join(part for part in (told, untold) if part)}")
    return tuple(lines)


def took_document(found: Took | None) -> dict[str, Any] | None:
    """Return it as plain values; None where no attempts were written."""
    if found is None:
        return None
    return {
        "parts": [{"what": part.kind, "attempts": part.attempts, "spend": part.spend.to_json()} for part in found.parts],
        "failures": dict(found.failures),
        "told_to_wait": found.told_to_wait,
        "untold": found.untold,
    }


def failures_text(failures: Mapping[str, int]) -> str:
    """Return ``2 rate limited, 1 generator failed``; empty when nothing failed."""
    return ", ".join(f"{number:,} {kind.replace('_', ' ')}" for kind, number in failures.items())


def passes_text(passes: int, generated: int) -> str:
    """Return ``18 iterations in 21 runs of the generator``, or ``18 iterations`` where each run was one."""
    made = plural(passes, "iteration")
    return made if generated == passes else f"{made} in {plural(generated, 'run')} of the generator"


def going_on(reason: str, spent: Spend, passes: int) -> str | None:
    """Return what it takes to go on after a limit or an interruption; None where the loop ended by its own rules."""
    if reason in _OPTIONS:
        used = average_of(reason, spent, passes)
        return f"raise {_OPTIONS[reason]}" + (f"; an iteration took {used} on average" if used else "")
    return _OTHERWISE.get(reason)


def average_of(reason: str, spent: Spend, passes: int) -> str:
    """Return what an iteration took on average of what ran out, to set the next limit by; empty where it is not known."""
    return {
        "max_cost": short_dollars(spent.charged_cost_usd / passes) if passes and spent.charged_cost_usd else "",
        "max_tokens": f"{spent.charged_tokens / passes:,.0f} tokens" if passes and spent.charged_tokens else "",
        "max_seconds": duration(spent.seconds / passes) if passes else "",
    }.get(reason, "")
