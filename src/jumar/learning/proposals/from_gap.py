"""From two judges' results to proposals, by the first design's call."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from jumar.judging.patterns.merging import merge_proposals
from jumar.judging.patterns.models import PatternProposal, PatternSet, PatternV2
from jumar.judging.patterns.proposed import UNDATED
from jumar.judging.patterns.provisional import text_of
from jumar.judging.patterns.reading import parse_patterns
from jumar.learning.proposals.candidates import GapItem, propose

__all__ = ["learn_from_gap"]


def learn_from_gap(
    expensive_results: Sequence[Any],
    cheap_results: Sequence[Any],
    patterns: PatternSet | Sequence[PatternV2] | Mapping[str, Any] | None,
    stories: Sequence[Any],
    *,
    threshold: float = 0.5,
    noise: float = 0.0,
    tried: Collection[str] = (),
    iteration: int = 0,
    diversity: int = 0,
    limit: int = 200,
    seed: int = 0,
    at: datetime = UNDATED,
) -> list[PatternProposal]:
    """Return proposals for where the cheap judge differs from the expensive one by more than ``threshold`` and ``noise``.

    Results are models or mappings with ``gestalt`` (and ``reasoning``, ``strengths``, ``weaknesses``); ``stories`` are items,
    stories or mappings with their fields. They belong together by ``story_id`` and ``id`` where every one has it, else by place;
    an item that lacks one of the two scores teaches nothing. ``patterns`` are a set, a list, or what a patterns file holds; what
    they say already is not proposed again. Only these stories are looked at: to prove what is learned, keep others back. For the
    rest see :func:`jumar.learning.propose`. Errors: :class:`jumar.errors.PatternLoadError` for a mapping that is no patterns
    file; as :func:`jumar.learning.propose`.
    """
    known = _as_set(patterns)
    expensive, cheap = _by_story(expensive_results, stories), _by_story(cheap_results, stories)
    items = [
        item
        for place, story in enumerate(stories)
        if (item := _item(place, story, expensive.get(place), cheap.get(place), noise)) is not None
    ]
    found = propose(
        items,
        threshold=threshold,
        known=known,
        tried=tried,
        iteration=iteration,
        diversity=diversity,
        limit=limit,
        seed=seed,
        at=at,
    )
    return list(merge_proposals(found, known, [one.text for one in items]).kept) if found else []


def _as_set(patterns: PatternSet | Sequence[PatternV2] | Mapping[str, Any] | None) -> PatternSet:
    if isinstance(patterns, PatternSet):
        return patterns
    if isinstance(patterns, Mapping):
        return parse_patterns(dict(patterns), "the given patterns")
    return PatternSet(version="2.0", patterns=list(patterns or ()))


def _by_story(results: Sequence[Any], stories: Sequence[Any]) -> dict[int, Any]:
    """Return the result of each story, by its place."""
    names = [_get(one, "id") for one in stories]
    ids = [_get(one, "story_id") for one in results]
    if all(one is not None for one in (*names, *ids)) and len(set(names)) == len(names):
        place = {str(name): number for number, name in enumerate(names)}
        return {place[str(one)]: result for one, result in zip(ids, results, strict=True) if str(one) in place}
    return dict(enumerate(results[: len(stories)]))


def _item(place: int, story: Any, expensive: Any, cheap: Any, noise: float) -> GapItem | None:
    scores = [_get(one, "gestalt") for one in (expensive, cheap)]
    if not all(isinstance(one, int | float) and not isinstance(one, bool) and math.isfinite(one) for one in scores):
        return None
    if scores[0] < 1.0:  # the first design's sign that the judge failed
        return None
    name, group = _get(story, "id"), _get(story, "group")
    return GapItem(
        id=str(place if name is None else name),
        text=text_of(story),
        expensive=float(scores[0]),
        cheap=float(scores[1]),
        noise=noise,
        strengths=_texts(_get(expensive, "strengths")),
        weaknesses=_texts(_get(expensive, "weaknesses")),
        reasoning=str(_get(expensive, "reasoning") or ""),
        group=None if group is None else str(group),
    )


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,) if value else ()
    return tuple(str(one) for one in cast("list[Any]", value or ()))


def _get(record: Any, name: str) -> Any:
    return cast("Mapping[str, Any]", record).get(name) if isinstance(record, Mapping) else getattr(record, name, None)
