"""Generators whose report is corrected before it is charged.

One tells what its whole session used so far, and is charged for an iteration alone; one tells tokens without dollars, and is
priced.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from jumar.model.attempts import Attempt
from jumar.model.budget.pricing import PriceTable, price_usage
from jumar.model.protocols import GenerateOutcome, Generator, StepContext
from jumar.model.records import Usage

_Number = TypeVar("_Number", int, float)
_EXACT: Final = 12  # digits after the point of a dollar that are kept


def charged_before(attempts: Iterable[Attempt], session_id: str) -> Usage:
    """Return the sum of what ``attempts`` were charged for that session: equal to its last report. None where none said."""
    used = [
        attempt.end.usage
        for attempt in attempts
        if attempt.start.purpose == "generate" and attempt.end is not None and attempt.end.usage.session_id == session_id
    ]
    return Usage(
        tokens_used=_sum(usage.tokens_used for usage in used),
        input_tokens=_sum(usage.input_tokens for usage in used),
        output_tokens=_sum(usage.output_tokens for usage in used),
        cached_tokens=_sum(usage.cached_tokens for usage in used),
        token_cost_usd=_exact(_sum(usage.token_cost_usd for usage in used)),
        session_id=session_id,
    )


def usage_since(total: Usage, before: Usage) -> Usage:
    """Return ``total`` without the tokens and dollars of ``before``, field by field; what is unknown in ``total`` stays unknown.

    A figure below that of before is of a counter that began anew, and counts as it is.
    """
    return replace(
        total,
        tokens_used=_since(total.tokens_used, before.tokens_used),
        input_tokens=_since(total.input_tokens, before.input_tokens),
        output_tokens=_since(total.output_tokens, before.output_tokens),
        cached_tokens=_since(total.cached_tokens, before.cached_tokens),
        token_cost_usd=_exact(_since(_exact(total.token_cost_usd), before.token_cost_usd)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CumulativeGenerator:
    """Runs ``generator``; where it went on with a session and reports that one, earlier reports of it are taken off.

    A report that names no session is taken for one of the session that was gone on with.
    """

    generator: Generator

    def generate(self, context: StepContext) -> GenerateOutcome:
        outcome = self.generator.generate(context)
        usage, before = outcome.usage, context.session_usage
        if before is None or context.session_id is None or usage.session_id not in {None, context.session_id}:
            return outcome
        own = replace(usage_since(usage, before), session_id=context.session_id)
        taken = before.tokens_used
        notes = (f"the session's earlier {taken:,} tokens are taken off what it reports",) if taken else ()
        return replace(outcome, usage=own, notes=(*outcome.notes, *notes))


def _sum(values: Iterable[_Number | None]) -> _Number | None:
    known = [value for value in values if value is not None]
    return sum(known[1:], known[0]) if known else None


def _exact(dollars: float | None) -> float | None:
    """Return ``dollars`` without what binary sums leave behind: a sum must not lie above the report that it is equal to."""
    return None if dollars is None else round(dollars, _EXACT)


def _since(total: _Number | None, before: _Number | None) -> _Number | None:
    if total is None or before is None or total < before:
        return total
    return total - before


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedGenerator:
    """Runs ``generator``; the cost that follows from its tokens, and by which prices, stands in the outcome and its notes.

    ``model`` is assumed where the report names none. ``wanted`` is whether a limit in dollars asks for what is missing.
    """

    generator: Generator
    table: PriceTable
    model: str | None = None
    wanted: bool = False

    def generate(self, context: StepContext) -> GenerateOutcome:
        outcome = self.generator.generate(context)
        priced = price_usage(outcome.usage, self.table, model=self.model, wanted=self.wanted)
        return replace(outcome, usage=priced.usage, notes=(*outcome.notes, *priced.notes))
