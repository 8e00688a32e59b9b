"""Patterns that say what another one says already: the same, a part of it, the same in other words, or the same items.

One goes after the other, the most established first. Each is held against those that stay, and goes to the nearest of them or
stays itself; so nothing is merged over a chain of small differences. Why each went is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jumar.core.extras import need_extra
from jumar.core.record import Record
from jumar.judging.patterns.matcher import PatternMatcher, literals
from jumar.judging.patterns.models import PatternProposal, PatternSet, PatternV2
from jumar.judging.patterns.proposed import as_pattern
from jumar.judging.patterns.similar import Fired, Likeness, Similar, settle

_RANK: Final = {"active": 0, "provisional": 1}
_MOST_WEIGHT: Final = 2.0


@dataclass(frozen=True, slots=True)
class Merge(Record):
    """One pattern that went, the one that stays for it, and why; ``similarity`` is from 0 to 1."""

    merged: str
    into: str
    by: Likeness
    similarity: float
    explanation: str


@dataclass(frozen=True, slots=True)
class MergedProposals:
    """The proposals that are new, in their order, and why the others are not."""

    kept: tuple[PatternProposal, ...]
    merges: tuple[Merge, ...]


@dataclass(frozen=True, slots=True)
class MergedPatterns:
    """All patterns in their order, those that were merged as ``pruned``, and why."""

    patterns: tuple[PatternV2, ...]
    merges: tuple[Merge, ...]


def merge_proposals(
    proposals: Sequence[PatternProposal],
    known: PatternSet | Iterable[PatternV2] = (),
    texts: Iterable[str] = (),
    *,
    wording: float = 0.9,
    firing: float = 0.9,
) -> MergedProposals:
    """Return the proposals that say something new; earlier ones come first.

    They are held against ``known`` patterns, whatever became of those (what was rejected or pruned is not tried again), and
    against each other. See :func:`merge_patterns` for when one is merged. Errors: as
    :func:`jumar.judging.patterns.proposed.as_pattern` for a proposal that is none.
    """
    there = list(known.patterns if isinstance(known, PatternSet) else known)
    made = [as_pattern(proposal) for proposal in proposals]
    # the place keeps twins apart that have one id
    every = [one.model_copy(update={"status": "active"}) for one in there] + made
    into = _into(every, list(texts), wording, firing, [0] * len(there) + [1] * len(made))
    kept = [one for place, one in enumerate(proposals, start=len(there)) if place not in into]
    merges = [_merge(every, place, into[place]) for place in sorted(into) if place >= len(there)]
    return MergedProposals(tuple(kept), tuple(merges))


def merge_patterns(
    patterns: Sequence[PatternV2], texts: Iterable[str] = (), *, wording: float = 0.9, firing: float = 0.9
) -> MergedPatterns:
    """Return the patterns without those that say what another one says.

    Active ones stay before provisional ones, then those with fewer words, which fire on more, then the heavier, then the earlier.

    Only active and provisional patterns of one type are merged. They are merged when they

    - look for the same phrases (``identical``);
    - hold, in each phrase, a whole phrase of the other (``subsumed``), and fire on at least half of its items where ``texts`` are
      given: on fewer they single something out;
    - have nearly the same words in any order, rapidfuzz's ratio being at least ``wording`` (``wording``), unless a number or a
      denial makes the difference, and fire together on at least half of the items of either where ``texts`` are given;
    - fire on nearly the same ``texts``, Jaccard's similarity being at least ``firing`` (``firing``), three texts at least.

    The one that stays gets the weight of both, at most 2, so that what both fired on scores as before; and the other words where
    only those differ. Those that go have the status ``pruned``. 10,000 patterns take seconds. Errors:
    :class:`jumar.errors.MissingExtraError`.
    """
    live = [place for place, one in enumerate(patterns) if one.status in _RANK]
    chosen = [patterns[place] for place in live]
    into = {live[one]: (live[other], how) for one, (other, how) in _into(chosen, list(texts), wording, firing).items()}
    found = list(patterns)
    for place in sorted(into):
        other, how = into[place]
        gone, stays = found[place], found[other]
        found[place] = gone.model_copy(update={"status": "pruned"})
        update: dict[str, Any] = {}
        if gone.status == stays.status:  # a provisional one never counted
            update["weight"] = min(_MOST_WEIGHT, stays.weight + gone.weight)
            if how.by == "wording":
                update["phrases"] = list(dict.fromkeys([*literals(stays), *literals(gone)]))
        found[other] = stays.model_copy(update=update)
    return MergedPatterns(tuple(found), tuple(_merge(patterns, place, into[place]) for place in sorted(into)))


def _into(
    patterns: Sequence[PatternV2], texts: Sequence[str], wording: float, firing: float, ranks: Sequence[int] | None = None
) -> dict[int, tuple[int, Similar]]:
    """Return for each pattern that goes the one that stays for it."""
    need_extra("judge", "merging patterns", "numpy", "rapidfuzz", "ahocorasick_rs")
    order = sorted(range(len(patterns)), key=lambda place: _before(patterns[place], ranks[place] if ranks else 0, place))
    ordered = [patterns[place] for place in order]
    found = settle(ordered, _fired(ordered, texts) if texts else None, wording=wording, firing=firing)
    return {order[one]: (order[other], similar) for one, (other, similar) in found.items()}


def _before(pattern: PatternV2, rank: int, place: int) -> tuple[int, int, int, float, int]:
    longest = max((len(one.split()) for one in literals(pattern)), default=0)
    return rank, _RANK.get(pattern.status, 2), longest, -pattern.weight, place


def _fired(patterns: Sequence[PatternV2], texts: Sequence[str]) -> Fired:
    """Return the texts on which each pattern fires."""
    import numpy as np

    matcher = PatternMatcher(patterns)
    found = [np.asarray(matcher.fired(text), dtype=np.int32) for text in texts]
    which = np.concatenate([np.zeros(0, dtype=np.int32), *found])
    numbers = np.repeat(np.arange(len(texts)), [one.size for one in found])[np.argsort(which, kind="stable")]
    where = np.split(numbers, np.cumsum(np.bincount(which, minlength=len(patterns)))[:-1]) if patterns else []
    return Fired(where, len(texts))


def _merge(patterns: Sequence[PatternV2], place: int, into: tuple[int, Similar]) -> Merge:
    other, how = into
    gone, stays = patterns[place], patterns[other]
    one, two = _shown(gone), _shown(stays)
    both = f"{how.shared} of the {how.either} items on which either fires"
    said = {
        "identical": f"{one} is what {stays.id} looks for already",
        "subsumed": f"wherever {one} stands, {two} stands too" + (f"; they share {both}" if how.either else ""),
        "wording": f"{one} and {two} {_worded(how.similarity)}" + (f"; they share {both}" if how.either else ""),
        "firing": f"{one} and {two} fire on the same items: {both}",
    }
    return Merge(gone.id, stays.id, how.by, round(how.similarity, 6), said[how.by])


def _worded(similarity: float) -> str:
    if similarity == 1:
        return "have the same words in another order"
    return f"have nearly the same words: {similarity:.1%} of their letters, whatever the order of the words"


def _shown(pattern: PatternV2) -> str:
    said = literals(pattern)
    text = said[0] if said else pattern.regex or pattern.description
    return f"'{text}'" + (f" (and {len(said) - 1} more)" if len(said) > 1 else "")
