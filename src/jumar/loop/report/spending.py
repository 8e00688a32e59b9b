"""What a loop spent: on its iterations, on attempts that have no row of their own, and what it takes to go on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from jumar.core.rendering.figures import UNKNOWN, count, dollars, duration
from jumar.core.text import plural, short_dollars
from jumar.model.attempts import Attempt, Spend
from jumar.model.budget.ledger import spend
from jumar.model.budget.pricing import Budget
from jumar.model.records import IterationRecord

TOOK_COLUMNS = ("What", "Attempts", "Cost", "Tokens", "Time")

_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "passes": "Iterations, as in the table of scores",
        "lost": "Lost in the middle",
        "rate-limited": "Refused by the provider",
        "tried again": "Failed and tried again",
        "interrupted": "Interrupted",
        "not ended": "Not ended yet",
        "scoring": "Checks and scorers",
        "confirming": "Finalists scored again, and the hold-out",
    }
)
"""Kinds of attempts in the order of the table."""


_OF_OUTCOME: Final[Mapping[str, str]] = MappingProxyType(
    {"lost": "lost", "rate_limited": "rate-limited", "failed": "tried again", "timeout": "tried again"}
)


RAISED: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "max_cost": ("max_cost_usd", "--max-cost"),
        "max_tokens": ("max_tokens", "--max-tokens"),
        "max_seconds": ("max_seconds", "--max-seconds"),
    }
)
"""Reasons of a limit that an option raises: its key in ``[budget]``, and the option."""
ONCE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "max_attempts": "once [budget] max_iterations is higher",
        "rate_limited": "once the provider takes requests again",
        "blocked": "once what blocks the agent is seen to",
        "disk_full": "once there is free space",
    }
)
"""When a loop that ended for another reason can be resumed as it is."""
_OTHERWISE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "unknown_cost": "have the generator report its cost, or set [budget] reserve_cost_usd; then jumar run",
        "interrupted": "jumar run",
        "terminated": "jumar run",
        "stop_file": "remove the STOP file (jumar stop --undo), then jumar run",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The attempts of one kind (a key of the table above) and what they were charged."""

    kind: str
    attempts: int
    spend: Spend

    @property
    def has_rows(self) -> bool:
        """Whether what the attempts made stands in the table of iterations: they made one, or scored one that is there."""
        return self.kind in {"passes", "scoring"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """Where it went: ``parts`` add up to the loop's spend; none where no attempts were written.

    ``without_row`` is what the attempts took that no iteration tells of. ``failures`` count what went wrong by kind.
    ``told_to_wait`` is how many seconds a provider asked for in all, ``untold`` how often it refused without saying for how long,
    ``refused`` how often for each iteration. ``cut_off`` is the iteration that the last attempt was to make, where it came to no
    end of its own.
    """

    parts: tuple[Part, ...] = ()
    without_row: Spend = field(default_factory=Spend)
    failures: Mapping[str, int] = field(default_factory=lambda: MappingProxyType(dict[str, int]()))
    told_to_wait: float = 0.0
    untold: int = 0
    refused: Mapping[int, int] = field(default_factory=lambda: MappingProxyType(dict[int, int]()))
    cut_off: int | None = None


NOTHING_TAKEN: Final = Took()


def took_of(attempts: Iterable[Attempt], listed: Container[int | None], failures: Mapping[str, int], budget: Budget) -> Took:
    """Return where ``attempts`` went; ``listed`` are the numbers of those that have a row in the table of iterations.

    They are charged as ``budget`` says; ``failures`` as counted over attempts and iterations.
    """
    sorted_out: dict[str, list[Attempt]] = {kind: [] for kind in _NAMES}
    waits: list[float | None] = []
    cut_off: int | None = None
    for attempt in attempts:
        kind = _kind_of(attempt, listed)
        sorted_out[kind].append(attempt)
        cut_off = attempt.start.iteration if kind in {"interrupted", "lost", "not ended"} else None
        if attempt.end is not None and attempt.end.outcome == "rate_limited":
            waits.append(attempt.end.wait_seconds)
    parts = [Part(kind=kind, attempts=len(each), spend=spend(each, budget)) for kind, each in sorted_out.items() if each]
    return Took(
        parts=tuple(parts),
        without_row=spend([attempt for part in parts if not part.has_rows for attempt in sorted_out[part.kind]], budget),
        failures=MappingProxyType(dict(failures)),
        told_to_wait=sum((wait or 0.0 for wait in waits), 0.0),
        untold=waits.count(None),
        refused=MappingProxyType(Counter(attempt.start.iteration for attempt in sorted_out["rate-limited"])),
        cut_off=cut_off,
    )


def _kind_of(attempt: Attempt, listed: Container[int | None]) -> str:
    """Return what became of an attempt: ``passes`` with a row among ``listed``, ``scoring``, or what became of it."""
    start, end = attempt.start, attempt.end
    if start.purpose == "confirm":
        return "confirming"
    if start.purpose == "score":
        return "scoring"
    if start.number in listed:
        return "passes"
    return "not ended" if end is None else _OF_OUTCOME.get(end.outcome, "interrupted")


def without_row_text(took: Took) -> str | None:
    """Return ``and 1 lost, 2 rate-limited: $0.30 ($0.30 estimated)``; None where every attempt has a row and scoring is free."""
    beside = [part for part in took.parts if not part.has_rows]
    texts: list[str] = []
    if beside:
        total = sum(part.attempts for part in beside)
        counted = ", ".join(f"{part.attempts:,} {part.kind}" for part in beside)
        told = any(part.kind != "not ended" for part in beside) or took.without_row.charged_cost_usd
        money = spent_money(took.without_row, Budget()) if told else "cost not known yet"
        texts.append(f"{counted} ({'an attempt' if total == 1 else 'attempts'} without a row): {money}")
    scoring = sum(part.spend.charged_cost_usd for part in took.parts if part.kind == "scoring")
    if not math.isclose(scoring, 0.0, abs_tol=5e-7):
        texts.append(f"scoring: {short_dollars(scoring)}")
    return f"and {'; '.join(texts)}" if texts else None


def spent_money(spent: Spend, budget: Budget, *, places: int = 2) -> str:
    """Return ``$0.90 of $5.00 ($0.80 estimated, 8 not reported)``: what counts against the limit, and how much of it is a guess.

    ``cost not reported`` where nothing is known and nothing charged.
    """
    limit = None if budget.max_cost_usd is None else dollars(budget.max_cost_usd, places=2)
    estimated = short_dollars(spent.assumed_cost_usd) if spent.assumed_cost_usd else ""
    known, charged, unknown = spent.cost_usd, spent.charged_cost_usd, spent.unknown_costs
    shown = dollars(charged if known is None else known, places=places) if charged or known is not None else ""
    told = _spent(shown, limit, estimated, None if known is not None else unknown)
    return told if shown else f"cost {told}"


def spent_tokens(spent: Spend, budget: Budget) -> str:
    """Return the same for tokens, without the word: ``125,476 of 200,000 (7,840 estimated)``, or ``not reported``."""
    limit = None if budget.max_tokens is None else count(budget.max_tokens)
    estimated = count(spent.assumed_tokens) if spent.assumed_tokens else ""
    known, charged, unknown = spent.tokens, spent.charged_tokens, spent.unknown_tokens
    shown = count(charged if known is None else known) if charged or known is not None else ""
    return _spent(shown, limit, estimated, None if known is not None else unknown)


def _spent(shown: str, limit: str | None, estimated: str, unknown: int | None) -> str:
    """Return an amount with its limit; ``unknown`` is how many attempts did not report it, None where all did."""
    if not shown:
        return "not reported" if limit is None else f"not reported, limit {limit}"
    notes = [f"{estimated} estimated"] if estimated else []
    notes += [] if unknown is None else [f"{unknown:,} not reported" if unknown else "some not reported"]
    told = f" ({', '.join(notes)})" if notes else ""
    return f"{shown}{'' if limit is None else f' of {limit}'}{told}"


def took_rows(took: Took, total: Spend, budget: Budget) -> tuple[tuple[str, ...], ...]:
    """Return the rows under :data:`TOOK_COLUMNS`, the last one the total against the limits; empty where nothing was written."""
    if not took.parts:
        return ()
    rows = [(_NAMES[part.kind], count(part.attempts), *_money(part), duration(part.spend.seconds)) for part in took.parts]
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


def took_sentences(took: Took) -> tuple[str, ...]:
    """Return what went wrong and how long a provider asked to wait; empty when nothing did."""
    lines = [f"Went wrong: {failures_text(took.failures)}"] if took.failures else []
    refused = took.failures.get("rate_limited", 0)
    if refused:
        untold = f"{plural(took.untold, 'time')} without saying for how long" if took.untold else ""
        told = f"{duration(took.told_to_wait)} in all" if refused > took.untold else ""
        lines.append(f"Asked to wait by the provider: {'; '.join(part for part in (told, untold) if part)}")
    return tuple(lines)


def took_document(found: Took) -> dict[str, Any] | None:
    """Return it as plain values; None where no attempts were written."""
    if not found.parts:
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
    if reason in RAISED:
        (key, option), used = RAISED[reason], average_of(reason, spent, passes)
        return f"raise [budget] {key} (jumar run {option})" + (f"; an iteration took {used} on average" if used else "")
    return f"jumar run, {ONCE[reason]}" if reason in ONCE else _OTHERWISE.get(reason)


def average_of(reason: str, spent: Spend, passes: int) -> str:
    """Return what an iteration took on average of what ran out, to set the next limit by; empty where it is not known."""
    return {
        "max_cost": short_dollars(spent.charged_cost_usd / passes) if passes and spent.charged_cost_usd else "",
        "max_tokens": f"{spent.charged_tokens / passes:,.0f} tokens" if passes and spent.charged_tokens else "",
        "max_seconds": duration(spent.seconds / passes) if passes else "",
    }.get(reason, "")


def spend_of_records(records: Iterable[IterationRecord]) -> Spend:
    """Return what the iterations used, where no attempts were written (a tracker inside somebody else's loop).

    Seconds are the sum of those known; tokens and cost are None when any iteration did not report them.
    """
    passes = [record for record in records if record.iteration_number > 0]
    tokens = [record.tokens_used for record in passes]
    costs = [record.token_cost_usd for record in passes]
    return Spend(
        iterations=len(passes),
        seconds=math.fsum(record.execution_time_ms or 0 for record in passes) / 1000,
        tokens=None if None in tokens else sum(value or 0 for value in tokens),
        cost_usd=None if None in costs else math.fsum(value or 0 for value in costs),
    )
