"""Patterns that say what another one says already: the same, a part of it, the same in other words, or the same items.

One goes after the other, the most established first. Each is held against those that stay, and goes to the nearest of them or
stays itself; so nothing is merged over a chain of small differences. Why each went is said.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from jumar.core.lazy import need_extra
from jumar.core.record import Record
from jumar.judging.patterns.matcher import PatternMatcher, folded, literals
from jumar.judging.patterns.models import PatternProposal, PatternSet, PatternV2
from jumar.judging.patterns.phrases import content_of
from jumar.judging.patterns.proposed import as_pattern, pattern_key

Likeness = Literal["identical", "subsumed", "wording", "firing"]

LEAST_FIRED: Final = 3
"""Texts on which a pattern has to fire before firing on the same ones means something."""

_SUBSUMED: Final = 0.5
_ALIKE: Final = 0.5
_NEAREST: Final[dict[Likeness, int]] = {"identical": 3, "subsumed": 2, "wording": 1, "firing": 0}
_CHUNK: Final = 256
_FEW: Final = 3  # phrases; a pattern with more of them is one that was derived from its description
_WORD: Final = re.compile(r"\w+")
_DENIALS: Final = frozenset({"no", "not", "never", "without", "less", "nor", "t", "lacks", "lack", "missing", "cannot", "non"})
_DENYING: Final = ("un", "in", "im", "ir", "il", "non", "dis", "mis", "anti")


@dataclass(frozen=True, slots=True)
class Similar:
    """How a pattern is like an earlier one. ``shared`` of ``either`` texts; both 0 where texts play no part."""

    by: Likeness
    similarity: float
    shared: int = 0
    either: int = 0

    @property
    def key(self) -> tuple[int, float]:
        """What is nearer has a larger key."""
        return _NEAREST[self.by], round(self.similarity, 4)


def settle(
    patterns: Sequence[PatternV2],
    fired: Fired | None,
    *,
    wording: float = 0.9,
    firing: float = 0.9,
    strengths: Sequence[float] | None = None,
) -> dict[int, tuple[int, Similar]]:
    """Return the position of every pattern that goes, with that of the earlier one that stays for it, and why.

    Patterns are in the order of their right to stay; ``fired`` says on which texts, None without texts. A pattern goes to the
    nearest that stays: ``identical`` before ``subsumed``, ``wording`` and ``firing``, then the more similar, then the earlier
    one. Patterns without phrases and expression are like nothing. With ``strengths`` none goes to a more general or a narrower
    one that is weaker. See :func:`merge_patterns`.
    """
    keys = [pattern_key(pattern) for pattern in patterns]
    earliest: dict[str, int] = {}
    for place, key in enumerate(keys):
        earliest.setdefault(key, place)
    phrases = [[] if pattern.regex is not None else literals(pattern) for pattern in patterns]
    distinct = sorted(earliest.values())
    general = PatternMatcher([_bare(str(place), phrases[place]) for place in distinct])
    words, items = _Words(patterns, wording), None if fired is None else _Items(patterns, fired, firing)
    same: dict[str, int] = {}
    kept: set[int] = set()
    narrower: dict[int, list[int]] = {}
    into: dict[int, tuple[int, Similar]] = {}
    for place, pattern in enumerate(patterns):
        if not literals(pattern) and pattern.regex is None:
            continue
        twin = same.get(keys[place])
        if twin is not None:
            into[place] = (twin, Similar("identical", 1.0)) if twin in kept else into[twin]
            continue
        same[keys[place]] = place
        held: list[set[int]] = [set(general.fired(phrase)) for phrase in phrases[place]]
        wider = [distinct[index] for index in (held[0].intersection(*held[1:]) if held else ())]
        related = [other for other in wider if other < place and other in kept]
        if strengths is not None:
            related = [one for one in (*related, *narrower.get(place, ())) if strengths[one] >= strengths[place]]
        near: list[tuple[int, Similar]] = [
            (other, how)
            for other in related
            if patterns[other].type == pattern.type
            if (how := _subsumed(place, other, fired)) is not None
        ]
        if not near:
            alike = ((other, _fire_alike(place, other, how, fired)) for other, how in words.earlier(place, kept))
            near = next(([(other, how)] for other, how in alike if how is not None), list[tuple[int, Similar]]())
        if not near and items is not None:
            near = list(items.earlier(place))
        if near:
            into[place] = max(near, key=lambda found: (found[1].key, -found[0]))
        else:
            kept.add(place)
            for other in wider:
                narrower.setdefault(other, []).append(place)
            if items is not None:
                items.keep(place)
    return into


def _bare(name: str, phrases: list[str]) -> PatternV2:
    return PatternV2.model_construct(
        id=name, type="good", description="", keywords=[], phrases=phrases, regex=None, status="provisional", source=""
    )


def _subsumed(place: int, other: int, fired: Fired | None) -> Similar | None:
    if fired is None:
        return Similar("subsumed", 1.0)
    shared, either = fired.overlap(place, other)
    if either and shared < _SUBSUMED * either:
        return None
    return Similar("subsumed", shared / either if either else 1.0, shared, either)


def _fire_alike(place: int, other: int, how: Similar, fired: Fired | None) -> Similar | None:
    """Return ``how`` two patterns are alike in words, None where they fire on other texts: the order of words may tell much."""
    if fired is None:
        return how
    shared, either = fired.overlap(place, other)
    return replace(how, shared=shared, either=either) if shared >= _ALIKE * either else None


class _Words:
    """Which patterns have nearly the same words: ratios of whole blocks at a time."""

    def __init__(self, patterns: Sequence[PatternV2], least: float) -> None:
        self._said = [words_of(pattern) for pattern in patterns]
        self._types = [pattern.type for pattern in patterns]
        self._least = least
        self._start = self._end = 0
        self._rows: Any = None

    def earlier(self, place: int, kept: set[int]) -> Iterator[tuple[int, Similar]]:
        """Yield the patterns that stay and are alike, the nearest first."""
        if not self._said[place]:
            return
        import numpy as np

        if place >= self._end:
            self._read(place)
        row: Any = self._rows[place - self._start][:place]
        alike: list[int] = np.flatnonzero(row).tolist()
        ratios = {other: float(row[other]) / 100 for other in alike}
        for other in sorted(alike, key=lambda one: (-round(ratios[one], 4), one)):
            if other in kept and self._types[other] == self._types[place] and not opposed(self._said[place], self._said[other]):
                yield other, Similar("wording", ratios[other])

    def _read(self, place: int) -> None:
        from rapidfuzz import fuzz, process

        self._start, self._end = place, min(place + _CHUNK, len(self._said))
        rows, columns = self._said[self._start : self._end], self._said[: self._end]
        self._rows = process.cdist(rows, columns, scorer=fuzz.ratio, score_cutoff=self._least * 100)


def words_of(pattern: PatternV2) -> str:
    """Return the words by which a pattern is compared, sorted: its phrases', or its description's where it has many phrases."""
    said = literals(pattern)
    text = " ".join(said) if 0 < len(said) <= _FEW else pattern.description
    return " ".join(sorted(_WORD.findall(folded(text))))


def opposed(one: str, other: str) -> bool:
    """Return whether what differs between two texts of sorted words is a number, a denial or a prefix that denies."""
    first, second = Counter(one.split()), Counter(other.split())
    left, right = list((first - second).elements()), list((second - first).elements())
    differ = [*left, *right]
    if any(word in _DENIALS or any(map(str.isdigit, word)) for word in differ):
        return True
    return any(_denies(a, b) or _denies(b, a) for a in left for b in right)


def _denies(one: str, other: str) -> bool:
    return any(one == prefix + other for prefix in _DENYING)


class _Items:
    """Which patterns that stay fire on nearly the same texts.

    Two sets whose Jaccard similarity is at least t share one of the first |A| - ceil(t |A|) + 1 members of each, in any order
    that both keep (Chaudhuri, Ganti and Kaushik 2006); with the rarest texts first there are few others to look at.
    """

    def __init__(self, patterns: Sequence[PatternV2], fired: Fired, least: float) -> None:
        self._types = [pattern.type for pattern in patterns]
        self._fired = fired
        self._least = least
        self._index: dict[int, list[int]] = {}

    def earlier(self, place: int) -> Iterator[tuple[int, Similar]]:
        """Yield the patterns that stay and fire on nearly the same texts as the one at ``place``."""
        sizes, own = self._fired.sizes, self._fired.sizes[place]
        if own < LEAST_FIRED:
            return
        fewest, most = self._least * own - 1e-9, own / self._least + 1e-9
        others = {other for text in self._fired.rarest(place, self._least) for other in self._index.get(text, ())}
        for other in sorted(others):
            if fewest <= sizes[other] <= most and self._types[other] == self._types[place]:
                shared, either = self._fired.overlap(place, other)
                if shared >= self._least * either - 1e-9:
                    yield other, Similar("firing", shared / either, shared, either)

    def keep(self, place: int) -> None:
        if self._fired.sizes[place] >= LEAST_FIRED:
            for text in self._fired.rarest(place, self._least):
                self._index.setdefault(text, []).append(place)


class Fired:
    """On which of ``texts`` texts each pattern fires, as the bits of one number a pattern."""

    def __init__(self, where: Sequence[Any], texts: int) -> None:
        import numpy as np

        self.sizes = [len(one) for one in where]
        self._where = [np.asarray(one, dtype=np.int64) for one in where]
        counts = np.bincount(np.concatenate([np.zeros(0, dtype=np.int64), *self._where]), minlength=texts)
        self._order = np.argsort(np.argsort(counts, kind="stable"), kind="stable")
        self._bits = [_bits(one, texts) for one in self._where]

    def overlap(self, one: int, other: int) -> tuple[int, int]:
        """Return the number of texts on which both fire, and of those on which either does."""
        shared = (self._bits[one] & self._bits[other]).bit_count()
        return shared, self.sizes[one] + self.sizes[other] - shared

    def rarest(self, place: int, least: float) -> list[int]:
        """Return its texts on which fewest patterns fire: as many as a set that is ``least`` similar must share one of."""
        where, size = self._where[place], self.sizes[place]
        length = size - math.ceil(least * size - 1e-9) + 1
        found: list[int] = where[self._order[where].argsort(kind="stable")[:length]].tolist()
        return found


def _bits(where: Any, texts: int) -> int:
    import numpy as np

    mask = np.zeros(texts, dtype=np.uint8)
    mask[where] = 1
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")


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
    scores: Sequence[float] | None = None,
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
    into = _into(every, list(texts), scores, wording, firing, [0] * len(there) + [1] * len(made))
    kept = [one for place, one in enumerate(proposals, start=len(there)) if place not in into]
    merges = [_merge(every, place, into[place]) for place in sorted(into) if place >= len(there)]
    return MergedProposals(tuple(kept), tuple(merges))


def merge_patterns(
    patterns: Sequence[PatternV2],
    texts: Iterable[str] = (),
    *,
    scores: Sequence[float] | None = None,
    wording: float = 0.9,
    firing: float = 0.9,
) -> MergedPatterns:
    """Return the patterns without those that say what another one says.

    Active ones stay before provisional ones. Of these, where ``scores`` of the texts are given, those that go with them most
    closely in the direction of their type, then those that fire on more and say more; without scores those with fewer words,
    which fire on more. Then the heavier, then the earlier.

    Only active and provisional patterns of one type are merged. They are merged when they

    - look for the same phrases (``identical``);
    - hold, in each phrase, a whole phrase of the other (``subsumed``), and fire on at least half of its items where ``texts`` are
      given: on fewer they single something out. With ``scores`` it goes the other way where the narrower goes with them better;
    - have nearly the same words in any order, rapidfuzz's ratio being at least ``wording`` (``wording``), unless a number or a
      denial makes the difference, and fire together on at least half of the items of either where ``texts`` are given;
    - fire on nearly the same ``texts``, Jaccard's similarity being at least ``firing`` (``firing``), three texts at least.

    The one that stays gets the weight of both, at most 2, so that what both fired on scores as before; and the other words where
    only those differ. Those that go have the status ``pruned``. 10,000 patterns take seconds. Errors:
    :class:`jumar.errors.MissingExtraError`.
    """
    live = [place for place, one in enumerate(patterns) if one.status in _RANK]
    chosen = [patterns[place] for place in live]
    into = {live[one]: (live[other], how) for one, (other, how) in _into(chosen, list(texts), scores, wording, firing).items()}
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
    patterns: Sequence[PatternV2],
    texts: Sequence[str],
    scores: Sequence[float] | None,
    wording: float,
    firing: float,
    ranks: Sequence[int] | None = None,
) -> dict[int, tuple[int, Similar]]:
    """Return for each pattern that goes the one that stays for it. Errors: ValueError for more or fewer scores than texts."""
    need_extra("judge", "merging patterns", "numpy", "rapidfuzz", "ahocorasick_rs")
    if scores is not None and len(scores) != len(texts):
        raise ValueError(f"{len(texts)} texts, {len(scores)} scores: give one of each text")
    where = _where(patterns, texts) if texts else None
    strengths = None if where is None or scores is None else _strengths(patterns, where, scores)

    def before(place: int) -> tuple[Any, ...]:
        one, said = patterns[place], literals(patterns[place])
        longest = max((len(each.split()) for each in said), default=0)
        better: tuple[float, ...] = (longest,)
        if where is not None and strengths is not None:
            says = max(map(content_of, said), default=(0, 0, 0))
            better = (-strengths[place], -len(where[place]), *(-much for much in says))
        return (ranks[place] if ranks else 0, _RANK.get(one.status, 2), *better, -one.weight, place)

    order = sorted(range(len(patterns)), key=before)
    found = settle(
        [patterns[place] for place in order],
        None if where is None else Fired([where[place] for place in order], len(texts)),
        wording=wording,
        firing=firing,
        strengths=None if strengths is None else [strengths[place] for place in order],
    )
    return {order[one]: (order[other], similar) for one, (other, similar) in found.items()}


def _where(patterns: Sequence[PatternV2], texts: Sequence[str]) -> list[Any]:
    """Return the positions of the texts on which each pattern fires."""
    import numpy as np

    matcher = PatternMatcher(patterns)
    found = [np.asarray(matcher.fired(text), dtype=np.int32) for text in texts]
    which = np.concatenate([np.zeros(0, dtype=np.int32), *found])
    numbers = np.repeat(np.arange(len(texts)), [one.size for one in found])[np.argsort(which, kind="stable")]
    return np.split(numbers, np.cumsum(np.bincount(which, minlength=len(patterns)))[:-1]) if patterns else []


def _strengths(patterns: Sequence[PatternV2], where: Sequence[Any], scores: Sequence[float]) -> list[float]:
    """Return the correlation of firing with the scores, in the direction of each pattern's type, to two decimals.

    0 where a pattern fires on all texts or on none, or all scores are the same.
    """
    import numpy as np

    apart = np.asarray(scores, dtype=np.float64)
    apart = apart - apart.mean()
    spread = float(np.sqrt((apart**2).sum()))
    found: list[float] = []
    for one, fired in zip(patterns, where, strict=True):
        scale = spread * math.sqrt(len(fired) * (1 - len(fired) / len(scores)))
        strength = float(apart[fired].sum()) / scale if scale > 0 else 0.0
        found.append(round(strength if one.type == "good" else -strength, 2))
    return found


def _merge(patterns: Sequence[PatternV2], place: int, into: tuple[int, Similar]) -> Merge:
    other, how = into
    gone, stays = patterns[place], patterns[other]
    one, two = _shown(gone), _shown(stays)
    both = f"{how.shared} of the {how.either} items on which either fires"
    worded = f"have nearly the same words: {how.similarity:.1%} of their letters, whatever the order of the words"
    if how.similarity == 1:
        worded = "have the same words in another order"
    holding, held = (two, one) if _holds(stays, gone) else (one, two)
    said = {
        "identical": f"{one} is what {stays.id} looks for already",
        "subsumed": f"wherever {holding} stands, {held} stands too" + (f"; they share {both}" if how.either else ""),
        "wording": f"{one} and {two} {worded}" + (f"; they share {both}" if how.either else ""),
        "firing": f"{one} and {two} fire on the same items: {both}",
    }
    return Merge(gone.id, stays.id, how.by, round(how.similarity, 6), said[how.by])


def _holds(one: PatternV2, other: PatternV2) -> bool:
    """Return whether each phrase of ``one`` holds a whole phrase of ``other``, and is not all of it."""
    matcher = PatternMatcher([_bare("other", literals(other))])
    return pattern_key(one) != pattern_key(other) and all(matcher.fired(phrase) for phrase in literals(one))


def _shown(pattern: PatternV2) -> str:
    said = literals(pattern)
    text = said[0] if said else pattern.regex or pattern.description
    return f"'{text}'" + (f" (and {len(said) - 1} more)" if len(said) > 1 else "")
