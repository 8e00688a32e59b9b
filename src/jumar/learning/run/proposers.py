"""Who proposes patterns in a learning run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from jumar.errors import ConfigError
from jumar.judging.asking.cache import reply_cache
from jumar.judging.asking.call_log import CallLog
from jumar.judging.cheap.evaluator import CheapModeEvaluator
from jumar.judging.items.item import Item
from jumar.judging.models import CheapModeResult
from jumar.learning.material import Asked, Proposer, Proposing
from jumar.learning.proposals.asking import ask_for_proposals
from jumar.learning.proposals.candidates import propose
from jumar.learning.run.model import LearnRequest
from jumar.model.judges import Judge

__all__ = ["by_model", "by_terms", "proposer_of"]

_A_LINE, _SET = 4, 10
"""Questions in one iteration: along each line that only tests, and for the set itself."""


def proposer_of(request: LearnRequest, judge: Judge, items: Sequence[Item], most: float | None, calls: CallLog) -> Proposer:
    """Return the proposer that was asked for; a model is asked while all ``calls`` have cost less than ``most``, in USD.

    Errors: :class:`jumar.errors.ConfigError` for a judge that cannot propose.
    """
    if request.proposer == "terms":
        return by_terms
    if getattr(judge, "recorded", False):
        raise ConfigError(f"--propose judge: {judge.identity} has scores on file and proposes nothing; leave --propose out")
    return by_model(request, judge, items, most, calls)


def by_terms(asked: Asked) -> Proposing:
    """Propose what tells items with a large gap from the others, by statistics of their words and of the judge's reasons."""
    found = propose(
        asked.items,
        threshold=asked.threshold,
        known=asked.known,
        tried=asked.tried,
        iteration=asked.iteration,
        diversity=asked.diversity,
        seed=asked.seed,
        at=asked.at,
    )
    return Proposing(proposals=tuple(found))


def by_model(request: LearnRequest, judge: Judge, items: Sequence[Item], most: float | None, calls: CallLog) -> Proposer:
    """Return a proposer that shows the largest gaps to the judge's model, one at a time."""
    by_id = {item.id: item for item in items}

    def proposed(asked: Asked) -> Proposing:
        async def work() -> Proposing:
            found = await ask_for_proposals(
                asked.items,
                judge,
                threshold=asked.threshold,
                patterns=asked.known,
                signals=_signals(asked, by_id),
                tried=asked.tried,
                settings=replace(request.settings, max_cost=most),
                limit=_SET if asked.whole else _A_LINE,
                iteration=asked.iteration,
                diversity=asked.diversity,
                cache=reply_cache(request.cache, judge),
                prices=request.prices,
                calls=calls,
                at=asked.at,
            )
            await judge.aclose()
            told = [f"no proposal for {one.item_id}: {one.reason}" for one in found.refused]
            if found.stopped is not None:
                told.append(f"the model was not asked any more: {found.stopped}")
            return Proposing(proposals=found.proposals, told=tuple(told), cost_usd=found.cost_usd)

        return asyncio.run(work())

    return proposed


def _signals(asked: Asked, by_id: Mapping[str, Item]) -> dict[str, Sequence[str]]:
    """Return what the cheap judge detected in each item, as the question tells."""
    evaluator = CheapModeEvaluator(asked.known)
    large = [by_id[one.id] for one in asked.items if one.is_large(asked.threshold)]
    found = evaluator.evaluate(large, parts=False)
    return {one.story_id: [*one.reasons, *one.patterns_matched] for one in found if isinstance(one, CheapModeResult)}
