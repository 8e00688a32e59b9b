"""Where proposals of patterns come from: who proposes, and the tests that each proposal goes through."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from jumar.judging.asking.call_log import CallLog
    from jumar.judging.asking.settings import JudgeSettings
    from jumar.judging.items.item import Item
    from jumar.learning.material import Proposer
    from jumar.model.budget.pricing import Prices
    from jumar.model.protocols import Judge

ProposerName = Literal["terms", "judge"]
"""Who proposes: statistics of words, or the model of the judge."""


def proposer_of(
    name: ProposerName,
    judge: Judge,
    items: Sequence[Item],
    *,
    settings: JudgeSettings,
    cache: Path | None,
    prices: Prices | None,
    calls: CallLog,
) -> Proposer:
    """Return the proposer of a name. Errors: :class:`jumar.errors.ConfigError` for a judge that cannot propose."""
    if name == "terms":
        from jumar.learning.proposals.candidates import by_terms

        return by_terms
    from jumar.learning.proposals.asking import by_judge

    return by_judge(judge, items, settings=settings, cache=cache, prices=prices, calls=calls)
