"""What a loop spent, and on what that has no row of its own: attempts that were lost, refused, interrupted or tried again."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from jumar.core.rendering.figures import count, dollars
from jumar.core.text import short_dollars
from jumar.model.attempts import Attempt, Spend
from jumar.model.budget.ledger import spend
from jumar.model.budget.limits import Budget
from jumar.model.records import IterationRecord

__all__ = [
    "NAMES",
    "NOTHING_BESIDE",
    "Beside",
    "Part",
    "Took",
    "attempt_kind",
    "beside",
    "beside_line",
    "spent_money",
    "spent_tokens",
    "took_of",
]

NAMES: Final[Mapping[str, str]] = MappingProxyType(
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


_KINDS: Final = ("lost", "rate-limited", "tried again", "interrupted", "not ended", "confirming")
_OF_OUTCOME: Final[Mapping[str, str]] = MappingProxyType(
    {"lost": "lost", "rate_limited": "rate-limited", "failed": "tried again", "timeout": "tried again"}
)


def _none() -> Mapping[str, int]:
    return MappingProxyType({})


def _nobody() -> Mapping[int, int]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """The attempts that have no row in the table of iterations.

    ``kinds`` counts them by what became of them, ``spend`` is theirs. ``scoring`` are the dollars known of evaluations of
    iterations that have a row, whose own cost is the generator's. ``refused`` counts for each iteration how often its provider
    refused it; ``cut_off`` is the iteration that the last attempt was to make, where it came to no end of its own.
    """

    kinds: Mapping[str, int] = field(default_factory=_none)
    spend: Spend = field(default_factory=Spend)
    scoring: float = 0.0
    refused: Mapping[int, int] = field(default_factory=_nobody)
    cut_off: int | None = None


NOTHING_BESIDE: Final = Beside()


def beside(attempts: Iterable[Attempt], records: Iterable[IterationRecord], budget: Budget) -> Beside:
    """Return what ``attempts`` were paid for and have no row among ``records``; charged as ``budget`` says."""
    listed = {record.attempt for record in records}
    kinds: Counter[str] = Counter()
    refused: Counter[int] = Counter()
    others: list[Attempt] = []
    scoring: list[Attempt] = []
    cut_off: int | None = None
    for attempt in attempts:
        kind = attempt_kind(attempt, listed)
        if kind in _KINDS:
            kinds[kind] += 1
            refused[attempt.start.iteration] += kind == "rate-limited"
            others.append(attempt)
        elif kind == "scoring":
            scoring.append(attempt)
        cut_off = attempt.start.iteration if kind in {"interrupted", "lost", "not ended"} else None
    return Beside(
        kinds=MappingProxyType({kind: kinds[kind] for kind in _KINDS if kinds[kind]}),
        spend=spend(others, budget),
        scoring=spend(scoring, budget).charged_cost_usd,
        refused=MappingProxyType({number: count for number, count in refused.items() if count}),
        cut_off=cut_off,
    )


def attempt_kind(attempt: Attempt, listed: Container[int | None]) -> str:
    """Return what became of an attempt: ``passes`` with a row among ``listed``, ``scoring``, or a kind of :class:`Beside`."""
    start, end = attempt.start, attempt.end
    if start.purpose == "confirm":
        return "confirming"
    if start.purpose == "score":
        return "scoring"
    if start.number in listed:
        return "passes"
    return "not ended" if end is None else _OF_OUTCOME.get(end.outcome, "interrupted")


def beside_line(found: Beside) -> str | None:
    """Return ``and 1 lost, 2 rate-limited: $0.30 ($0.30 estimated)``; None where every attempt has a row and scoring is free."""
    parts: list[str] = []
    if found.kinds:
        counted = [f"{count:,} {kind}" for kind, count in found.kinds.items()]
        total = sum(found.kinds.values())
        money = spent_money(found.spend, Budget())
        parts.append(f"{', '.join(counted)} ({'an attempt' if total == 1 else 'attempts'} without a row): {money}")
    if not math.isclose(found.scoring, 0.0, abs_tol=5e-7):
        parts.append(f"scoring: {short_dollars(found.scoring)}")
    return f"and {'; '.join(parts)}" if parts else None


def spent_money(spent: Spend, budget: Budget, *, places: int = 2) -> str:
    """Return ``$0.90 of $5.00 ($0.80 estimated, 8 not reported)``: what counts against the limit, and how much of it is a guess.

    ``cost not reported`` where nothing is known and nothing charged.
    """
    charged = spent.cost_usd if spent.cost_usd is not None else spent.charged_cost_usd
    unknown = spent.unknown_costs
    limit = "" if budget.max_cost_usd is None else f" of {dollars(budget.max_cost_usd, places=2)}"
    if spent.cost_usd is None and not charged:
        return f"cost not reported{f', limit {limit[4:]}' if limit else ''}"
    notes = [f"{short_dollars(spent.assumed_cost_usd)} estimated"] if spent.assumed_cost_usd else []
    if spent.cost_usd is None:
        notes.append(f"{unknown:,} not reported" if unknown else "some not reported")
    told = f" ({', '.join(notes)})" if notes else ""
    return f"{dollars(charged, places=places)}{limit}{told}"


def spent_tokens(spent: Spend, budget: Budget) -> str:
    """Return the same for tokens, without the word: ``125,476 of 200,000 (7,840 estimated)``, or ``not reported``."""
    limit = "" if budget.max_tokens is None else f" of {count(budget.max_tokens)}"
    if spent.tokens is None and not spent.charged_tokens:
        return f"not reported{f', limit {limit[4:]}' if limit else ''}"
    notes = [f"{count(spent.assumed_tokens)} estimated"] if spent.assumed_tokens else []
    if spent.tokens is None:
        notes.append(f"{spent.unknown_tokens:,} not reported" if spent.unknown_tokens else "some not reported")
    told = f" ({', '.join(notes)})" if notes else ""
    return f"{count(spent.charged_tokens if spent.tokens is None else spent.tokens)}{limit}{told}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The attempts of one kind (a key of the table above) and what they were charged."""

    kind: str
    attempts: int
    spend: Spend


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """Where it went: ``parts`` add up to the loop's spend.

    ``failures`` count what went wrong by kind. ``told_to_wait`` is how many seconds a provider asked for in all, ``untold`` how
    often it refused without saying for how long.
    """

    parts: tuple[Part, ...]
    failures: Mapping[str, int] = field(default_factory=_none)
    told_to_wait: float = 0.0
    untold: int = 0


def took_of(attempts: Iterable[Attempt], listed: frozenset[int | None], failures: Mapping[str, int], budget: Budget) -> Took:
    """Return where ``attempts`` went; ``listed`` are the numbers of those that have a row in the table of iterations.

    They are charged as ``budget`` says; ``failures`` as counted over attempts and iterations.
    """
    sorted_out: dict[str, list[Attempt]] = {kind: [] for kind in NAMES}
    told, untold = 0.0, 0
    for attempt in attempts:
        sorted_out[attempt_kind(attempt, listed)].append(attempt)
        if attempt.end is not None and attempt.end.outcome == "rate_limited":
            told += attempt.end.wait_seconds or 0.0
            untold += attempt.end.wait_seconds is None
    return Took(
        parts=tuple(Part(kind=kind, attempts=len(each), spend=spend(each, budget)) for kind, each in sorted_out.items() if each),
        failures=MappingProxyType(dict(failures)),
        told_to_wait=told,
        untold=untold,
    )
