"""Learning while what is judged grows: every iteration of a loop brings texts, and each stays on the side where it first stood.

A text counts once, whatever it is called. What shares a text, an id or a group with what was there before goes to its side; what
would belong to two sides is left out, because a set would be tested on what it was learned from. Pure.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from jumar.core.text import plural
from jumar.judging.items.item import Item, digest_of, items_digest
from jumar.judging.models import ExpensiveModeResult, IterationMetrics
from jumar.judging.patterns.models import PatternSet
from jumar.learning.material import Material, Target, target_of
from jumar.learning.proof.split import FEWEST_TO_SPLIT, FOLDS, Split, group_key
from jumar.learning.set_building import cheap_scores
from jumar.learning.state import Checkpoint
from jumar.learning.step import IterationOutcome, gap_figures

MOST: Final = 1_000
"""Texts that a step learns from, the newest. This and the next two bound its time, which grows with texts and words."""

MOST_CHARACTERS: Final = 500_000
"""Of all these texts together."""

_WORDS: Final = 300  # characters of a strength or weakness; ten of each count, and a reasoning ten times as long
_NAMED: Final = 10


@dataclass(frozen=True, slots=True)
class SeenItem:
    """An item of an iteration, and what the judge said of it."""

    iteration: int
    item: Item
    result: ExpensiveModeResult


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredItems:
    """What is learned from: ``targets`` by the names that ``names`` gives to (iteration, id), their ``split``.

    ``homes`` is the fold of every text, id and group that was ever seen, by a short hash. ``left_out`` are (iteration, id) of
    items that belong to two sides.
    """

    targets: tuple[Target, ...]
    split: Split
    homes: Mapping[str, int]
    names: Mapping[tuple[int, str], str]
    left_out: frozenset[tuple[int, str]]

    @property
    def groups(self) -> int:
        return len(self.split.groups)

    @property
    def too_few(self) -> str:
        """Why nothing can be learned yet, empty where it can."""
        if self.groups >= FEWEST_TO_SPLIT and len(set(self.split.groups.values())) == FOLDS:
            return ""
        return (
            f"{plural(len(self.targets), 'text')} in {plural(self.groups, 'group')} so far: "
            f"learning needs {FEWEST_TO_SPLIT} groups, some in each of {FOLDS} folds"
        )


def gather(seen: Iterable[SeenItem], homes: Mapping[str, int], *, most: int = MOST) -> GatheredItems:
    """Return what there is to learn from ``seen``, the oldest first. ``homes`` are those of earlier calls, which stay.

    Of more than ``most`` texts, or half a million characters, those that were seen last are taken. The first verdict on a text
    is the one that counts.
    """
    known = dict(homes)
    filled = Counter(known.values())
    targets: dict[str, tuple[Target, int]] = {}
    last: dict[str, int] = {}
    names: dict[tuple[int, str], str] = {}
    left_out: set[tuple[int, str]] = set()
    for one in seen:
        text, keys = _text_key(one.item), _keys(one.item)
        if text not in targets:
            fold = _fold((text, *keys), known, filled)
            if fold is None:
                left_out.add((one.iteration, one.item.id))
                continue
            for key in (text, *keys):
                if key not in known:
                    known[key] = fold
                    filled[fold] += 1
            targets[text] = (_named(one), known[text])
        last[text] = one.iteration
        names[(one.iteration, one.item.id)] = targets[text][0].item.id
    newest = _newest({text: len(targets[text][0].item.text) for text in sorted(targets, key=lambda text: last[text])}, most)
    kept = [pair for text, pair in targets.items() if text in newest]
    items = [target.item for target, _ in kept]
    groups: dict[str, str | int] = {group_key(target.item): fold for target, fold in kept}
    split = Split(0, 0.0, {name: groups[name] for name in sorted(groups)}, len(items), items_digest(items))
    return GatheredItems(
        targets=tuple(target for target, _ in kept), split=split, homes=known, names=names, left_out=frozenset(left_out)
    )


def shorten_verdict(result: ExpensiveModeResult) -> ExpensiveModeResult:
    """Return a verdict with as many of the judge's words as are looked at: they suggest phrases, and a judge may never end."""

    def cut(words: Sequence[str]) -> list[str]:
        return [word[:_WORDS] for word in words[:_NAMED]]

    update = {
        "reasoning": result.reasoning[: _NAMED * _WORDS],
        "strengths": cut(result.strengths),
        "weaknesses": cut(result.weaknesses),
    }
    return result.model_copy(update=update)


def _newest(sizes: dict[str, int], most: int) -> frozenset[str]:
    """Return the last ``most`` of the keys, fewer where they come to too many characters."""
    kept: list[str] = []
    characters = 0
    for name, size in reversed(sizes.items()):
        characters += size
        if len(kept) == most or characters > MOST_CHARACTERS:
            break
        kept.append(name)
    return frozenset(kept)


def _fold(keys: Sequence[str], known: Mapping[str, int], filled: Mapping[int, int]) -> int | None:
    """Return the side of what has these keys: where one of them is, else the emptiest; None where they are on several."""
    there = {known[key] for key in keys if key in known}
    if len(there) > 1:
        return None
    return there.pop() if there else min(range(FOLDS), key=lambda fold: (filled.get(fold, 0), fold))


def _named(one: SeenItem) -> Target:
    """Return the target under a name of its own: the same id may have another text in another iteration."""
    item, name = one.item, f"{one.item.id}@{one.iteration}"
    story = None if item.story is None else item.story.model_copy(update={"id": name})
    own = replace(item, id=name, story=story, group=group_key(item))
    return target_of(own, one.result.model_copy(update={"story_id": name}))


def _text_key(item: Item) -> str:
    story = None if item.story is None else item.story.model_dump(exclude={"id"})
    return _short("text", digest_of([item.text, item.prompt, item.context, story]))


def _keys(item: Item) -> tuple[str, ...]:
    own = _short("item", item.id)
    return (own,) if item.group is None else (own, _short("group", item.group))


def _short(kind: str, name: str) -> str:
    return hashlib.sha256(f"{kind}\0{name}".encode("utf-8", "surrogatepass")).hexdigest()[:20]


def extend_checkpoint(checkpoint: Checkpoint, material: Material) -> Checkpoint:
    """Return what was known of less material, with the scores of what came to it: by the sets as they are, which never saw it."""
    own = _more(checkpoint.own, checkpoint.state.patterns, material.targets, material)
    lines = tuple(
        replace(line, predictions=_more(line.predictions, line.patterns, material.inside(each.learn), material))
        for each, line in zip(material.rounds, checkpoint.lines, strict=True)
    )
    tested: dict[str, float] = {}
    for each, line in zip(material.rounds, checkpoint.lines, strict=True):
        tested |= _more(checkpoint.tested, line.patterns, material.inside(each.test), material)
    return replace(checkpoint, own=own, lines=lines, tested=tested, stopped="")


def _more(scores: Mapping[str, float], patterns: PatternSet, targets: Sequence[Target], material: Material) -> dict[str, float]:
    """Return the scores of ``targets``: those that are known, and of the others by ``patterns``."""
    new = [target for target in targets if target.item.id not in scores]
    found = {**scores, **cheap_scores(patterns, new, material.rubric)}
    return {target.item.id: found[target.item.id] for target in targets if target.item.id in found}


def iteration_metrics(
    learned: IterationOutcome,
    material: Material,
    named: Mapping[str, str],
    *,
    iteration: int,
    now: datetime,
    before: Sequence[IterationMetrics],
) -> IterationMetrics | None:
    """Return the figures of one iteration: of its own items, each scored by a set that saw nothing of its side.

    ``named`` maps the iteration's ids to names of targets. None where no item of it was scored by both judges.
    """
    judge = {target.item.id: target.score for target in material.targets}
    tested = learned.checkpoint.tested
    pairs = [(own, judge[name], tested[name]) for own, name in named.items() if name in judge and name in tested]
    if not pairs:
        return None
    return learned.metrics.model_copy(update=gap_figures(pairs, iteration=iteration, now=now, before=before))
