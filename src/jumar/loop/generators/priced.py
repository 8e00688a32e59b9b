"""A generator whose tokens are priced where it reports no dollars itself."""

from __future__ import annotations

from dataclasses import dataclass, replace

from jumar.model.budget.pricing import PriceTable, price_usage
from jumar.model.protocols import GenerateOutcome, Generator, StepContext

__all__ = ["PricedGenerator"]


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
