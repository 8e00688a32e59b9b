"""Proposals without a model: what stands in the texts that the cheap judge scored wrong, and not as often in the others.

Only items whose gap is over the threshold *and* over the judge's own noise count as scored wrong; the other learn items are what
they are held against. Every phrase that is proposed stands in a text that was given, and what was said of it is kept with it.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random
from statistics import median
from typing import Any, Final, Literal, cast

from jumar.core.lazy import need_extra
from jumar.judging.patterns.matcher import PatternMatcher, folded
from jumar.judging.patterns.merging import merge_proposals
from jumar.judging.patterns.models import PatternProposal, PatternSet, PatternV2
from jumar.judging.patterns.phrases import content_of, domain_terms
from jumar.judging.patterns.proposed import UNDATED, pattern_id, pattern_key, text_of
from jumar.judging.patterns.reading import parse_patterns
from jumar.learning.material import GapItem, ProposalReply, ProposalRequest
from jumar.learning.proposals.terms import Contrast, Strength, find_terms, phrases_of, quotes_of

Source = Literal["log_odds", "chi_square", "judge_words", "tech_paths", "word_family"]


@dataclass(frozen=True, slots=True)
class Breadth:
    """How widely proposals are looked for: words a phrase, texts it stands in, a factor on their number, families of words."""

    words: int
    least: int
    factor: float
    families: bool = True


BREADTHS: Final = (Breadth(3, 6, 1.0, families=False), Breadth(4, 5, 1.5), Breadth(4, 4, 2.0), Breadth(5, 3, 3.0))
"""By diversity, from 0 to 3."""

_Z: Final = 1.0  # standard errors of the log odds below which a term tells nothing
_READ: Final = 1_000  # items with a gap whose reasons and paths are read
_MOST_PHRASES: Final = 20_000
_NAMED: Final = 20  # items that a proposal's provenance names
_ONE_SIDED: Final = 0.9  # share of items that are off to one side, from which on the level is wrong
_EXPLORED: Final = 0.15  # share of the places that is drawn from further down, a step of diversity
_VALUE: Final = re.compile(
    r"\b(?:users?\s+(?:can|will|want|need|expect)|customers?\s+(?:can|will)|allow|enabl|improv|reduc|sav(?:e|es|ed|ing)\b|"
    r"prevent|benefit|frustrat|so\s+that)"
)
_TELLS_VALUE: Final = re.compile(r"\b(?:values?|benefits?|pain)\b", re.IGNORECASE)
_PATH: Final = re.compile(r"\w/\w|\.(?:pyi?|tsx?|jsx?|php|rb|go|rs|java|json|ya?ml|toml|sql)$")


@dataclass(frozen=True, slots=True)
class _Candidate:
    phrases: tuple[str, ...]
    where: Any  # (items,) positions of the texts it stands in, ascending
    strength: Strength
    source: Source
    rank: float
    judge_words: tuple[str, ...] = ()


def propose(
    items: Sequence[GapItem],
    *,
    threshold: float = 0.5,
    known: PatternSet | None = None,
    tried: Collection[str] = (),
    iteration: int = 0,
    diversity: int = 0,
    limit: int = 200,
    seed: int = 0,
    at: datetime = UNDATED,
    fewest: int = 0,
) -> list[PatternProposal]:
    """Return proposals for the items' large gaps, the most telling first; at most ``limit``, times the breadth's factor.

    ``known`` and ``tried`` (ids by :func:`jumar.judging.patterns.proposed.pattern_id`) are not proposed again. With
    ``diversity`` from 0 to 3 phrases may be longer and rarer, forms of one word are put together, and some places go by lot
    (``seed``) to candidates further down. ``fewest``: only what stands in so many items.
    Where nearly all gaps are large and of one sign, which is a wrong level and no matter of words, what counts is how far an
    item is from their middle. The same arguments give the same proposals. Nothing is proposed where no gap is large. Errors:
    ValueError for a ``diversity`` or ``limit`` out of range; :class:`jumar.errors.MissingExtraError`.
    """
    if not 0 <= diversity < len(BREADTHS):
        raise ValueError(f"diversity = {diversity} should be from 0 to {len(BREADTHS) - 1}")
    if limit < 1:
        raise ValueError(f"limit = {limit} should be at least 1")
    need_extra("judge", "proposing patterns", "numpy", "ahocorasick_rs")
    breadth = BREADTHS[diversity]
    level, gaps = _apart(items, threshold)
    contrast = Contrast.of(gaps, [item.group for item in items])
    if contrast is None:
        return []
    random = Random(seed)  # noqa: S311 - which candidates get a place, nothing secret
    taken = set(tried) | {pattern_key(pattern) for pattern in (known.patterns if known is not None else ())}
    found = _distinct(_candidates(items, contrast, breadth, random, fewest))
    drawn = _drawn(found, round(limit * breadth.factor), diversity * _EXPLORED, random, taken)
    return [_proposal(one, items, contrast, iteration, at, level=level) for one in drawn]


def _apart(items: Sequence[GapItem], threshold: float) -> tuple[float, list[float]]:
    """Return the level that the items are off by, 0 where they are off to both sides, and each gap from it; 0 for small ones."""
    gaps = [item.gap if item.is_large(threshold) else 0.0 for item in items]
    most = max(sum(gap > 0 for gap in gaps), sum(gap < 0 for gap in gaps))
    if most < _ONE_SIDED * len(items):
        return 0.0, gaps
    level = median(item.gap for item in items) if items else 0.0
    apart = [round(item.gap - level, 9) for item in items]
    apart = [gap if abs(gap) > item.noise else 0.0 for item, gap in zip(items, apart, strict=True)]
    return (level, apart) if any(apart) else (0.0, gaps)


def _candidates(
    items: Sequence[GapItem], contrast: Contrast, breadth: Breadth, random: Random, fewest: int
) -> Iterator[_Candidate]:
    texts = [item.text for item in items]
    least = max(2, fewest, min(breadth.least, len(items) // 5))
    terms = find_terms(texts, words=breadth.words, least=least)
    strengths = contrast.strengths(terms.where)
    for phrase, where, strength in zip(terms.phrases, terms.where, strengths, strict=True):
        if strength.z < _Z or not contrast.two_groups(where, strength.kind):
            continue
        yield _Candidate((phrase,), where, strength, "log_odds", strength.z)
        yield _Candidate((phrase,), where, strength, "chi_square", strength.chi_square)
    if breadth.families:
        yield from _families(terms.phrases, terms.where, contrast)
    large = [place for place, one in enumerate(contrast.signs) if one]
    if len(large) > _READ:
        large = sorted(random.sample(large, _READ))
    there = dict(zip(terms.phrases, terms.where, strict=True)) if fewest else None
    yield from _looked_up(items, large, contrast, breadth, there)


def _families(phrases: Sequence[str], wheres: Sequence[Any], contrast: Contrast) -> Iterator[_Candidate]:
    """Yield the forms of one word together, where at least two of them stand in the texts."""
    import numpy as np

    from jumar.judging.patterns.phrases import stem

    families: dict[str, list[int]] = {}
    for place, phrase in enumerate(phrases):
        if phrase.isalpha() and phrase.isascii():
            families.setdefault(stem(phrase), []).append(place)
    several = [members for members in families.values() if len(members) > 1]
    together = [np.unique(np.concatenate([wheres[member] for member in members])) for members in several]
    for members, where, strength in zip(several, together, contrast.strengths(together), strict=True):
        if strength.z >= _Z and contrast.two_groups(where, strength.kind):
            yield _Candidate(tuple(phrases[member] for member in members), where, strength, "word_family", strength.z)


def _looked_up(
    items: Sequence[GapItem], large: Sequence[int], contrast: Contrast, breadth: Breadth, known: Mapping[str, Any] | None
) -> Iterator[_Candidate]:
    """Yield phrases of the judge's reasons, and paths, for the texts in which they really stand.

    ``known`` is where each phrase stands that may be one, None where any may.
    """
    said = _said(items, large, contrast, breadth.words, known)
    phrases = [*dict.fromkeys([*said, *_paths(items, large)])]
    if known is not None:
        phrases = [phrase for phrase in phrases if phrase in known]
    arrays = _places(items, phrases) if known is None else [known[phrase] for phrase in phrases]
    for phrase, there, strength in zip(phrases, arrays, contrast.strengths(arrays), strict=True):
        if not there.size:
            continue
        if phrase in said:
            heard = said[phrase]
            own = heard.places.intersection(there.tolist())
            if own:
                told = strength.towards(heard.kind)
                # what the judge quoted, or said of several texts in which it stands, comes before what it said of one
                rank = (10.0 if heard.quoted else 0.0) + len(own) + 0.1 * len(phrase.split()) + max(0.0, told.z)
                yield _Candidate((phrase,), there, told, "judge_words", rank, heard.statements)
        elif strength.z >= _Z and there.size > 1 and contrast.two_groups(there, strength.kind):
            yield _Candidate((phrase,), there, strength, "tech_paths", strength.z)


def _places(items: Sequence[GapItem], phrases: Sequence[str]) -> list[Any]:
    """Return in which items each phrase stands."""
    import numpy as np

    where: list[list[int]] = [[] for _ in phrases]
    matcher = PatternMatcher(_bare(phrase) for phrase in phrases)
    for place, item in enumerate(items):
        for index in matcher.fired(item.text):
            where[index].append(place)
    return [np.asarray(one, dtype=np.int64) for one in where]


@dataclass(slots=True)
class _Heard:
    kind: Literal["good", "bad"]
    places: set[int]
    statements: tuple[str, ...]
    quoted: bool


def _said(
    items: Sequence[GapItem], large: Sequence[int], contrast: Contrast, words: int, known: Mapping[str, Any] | None
) -> dict[str, _Heard]:
    """Return the phrases of what the judge said about items with a gap, and about which items."""
    found: dict[tuple[str, Literal["good", "bad"]], _Heard] = {}
    for place in large:
        item = items[place]
        kind: Literal["good", "bad"] = "good" if contrast.signs[place] > 0 else "bad"
        named = item.strengths if kind == "good" else item.weaknesses
        text = folded(item.text)
        for statement in (*named, item.reasoning) if named else (item.reasoning,):
            quotes = [folded(one) for one in quotes_of(statement)]
            for phrase in phrases_of(statement, words=words):
                if (known is not None and phrase not in known) or phrase not in text:
                    continue
                if statement is item.reasoning and named and not any(phrase in quote for quote in quotes):
                    continue  # next to named reasons only what the reasoning quotes is about the signal
                heard = found.setdefault((phrase, kind), _Heard(kind, set(), (), quoted=False))
                heard.places.add(place)
                heard.quoted = heard.quoted or any(phrase in quote for quote in quotes)
                if len(heard.statements) < 3 and statement not in heard.statements:
                    heard.statements = (*heard.statements, statement)
    ranked = sorted(found.items(), key=lambda item: (not item[1].quoted, -len(item[1].places), item[0]))[:_MOST_PHRASES]
    best: dict[str, _Heard] = {}
    for (phrase, _), heard in ranked:
        best.setdefault(phrase, heard)
    return best


def _paths(items: Sequence[GapItem], large: Sequence[int]) -> list[str]:
    found: dict[str, None] = {}
    for place in large:
        if len(found) < _MOST_PHRASES:
            found.update(dict.fromkeys(_paths_of(items[place].text)))
    return list(found)


@functools.lru_cache(maxsize=4_096)  # every line of every iteration reads the same texts
def _paths_of(text: str) -> tuple[str, ...]:
    return tuple(folded(term) for term in domain_terms(text) if _PATH.search(term))


def _distinct(candidates: Iterable[_Candidate]) -> list[_Candidate]:
    """Return of each source one candidate for a sign and a set of texts: the phrase that says most."""
    best: dict[tuple[str, bytes, str], _Candidate] = {}
    for candidate in candidates:
        key = (candidate.strength.kind, candidate.where.tobytes(), candidate.source)
        other = best.get(key)
        if other is None or _says_more(candidate, other):
            best[key] = candidate
    return sorted(best.values(), key=lambda one: (-one.rank, one.phrases))


def _says_more(one: _Candidate, other: _Candidate) -> bool:
    if one.source == "judge_words":  # the judge's own words are kept whole: the more of them, the less they mean by accident
        return (-one.rank, one.phrases) < (-other.rank, other.phrases)
    sizes = [(content_of(each.phrases[0]), each.phrases) for each in (one, other)]
    return sizes[0] > sizes[1]


def _drawn(ranked: list[_Candidate], limit: int, share: float, random: Random, taken: Collection[str]) -> list[_Candidate]:
    """Return at most ``limit`` candidates, each of another pattern: the sources and the two signs in turn, best first."""
    queues: dict[tuple[str, str], list[_Candidate]] = {}
    for one in ranked:
        queues.setdefault((one.source, one.strength.kind), []).append(one)
    order = [queues[key] for key in sorted(queues)]
    drawn: list[_Candidate] = []
    seen: set[str] = set(taken)
    while order and len(drawn) < limit:
        for queue in order:
            one = queue.pop(random.randrange(len(queue)) if random.random() < share else 0)
            pattern = _pattern(one, UNDATED)
            names = {pattern_key(pattern), pattern_id(pattern)}
            if names.isdisjoint(seen):
                seen |= names
                drawn.append(one)
            if len(drawn) == limit:
                break
        order = [queue for queue in order if queue]
    return sorted(drawn, key=lambda one: (-one.strength.z, one.phrases))


def _bare(phrase: str) -> PatternV2:
    return PatternV2.model_construct(
        id=phrase, type="good", description="", keywords=[], phrases=[phrase], regex=None, status="provisional", source=""
    )


def _category(one: _Candidate) -> str:
    if all(_PATH.search(phrase) for phrase in one.phrases):
        return "valid_tech_paths" if one.strength.kind == "good" else "bad_story_indicators"
    if one.strength.kind == "bad":
        return "bad_story_indicators"
    is_value = any(_VALUE.search(phrase) for phrase in one.phrases) or any(map(_TELLS_VALUE.search, one.judge_words))
    return "value_phrases" if is_value else "good_story_indicators"


def _pattern(one: _Candidate, at: datetime) -> PatternV2:
    phrases = list(one.phrases)
    pattern = PatternV2(
        id="p_new",
        type=one.strength.kind,
        description=f"says {', '.join(map(repr, phrases))}",
        keywords=phrases,
        phrases=phrases,
        source=f"learned:{one.source}",
        discovered_at=at,
        status="provisional",
        category=_category(one),
    )
    return pattern.model_copy(update={"id": pattern_id(pattern)})


def _proposal(
    one: _Candidate, items: Sequence[GapItem], contrast: Contrast, iteration: int, at: datetime, *, level: float
) -> PatternProposal:
    pattern = _pattern(one, at).model_copy(update={"learned_iter": iteration})
    side = 1 if pattern.type == "good" else -1
    told, places = one.strength, cast("list[int]", one.where.tolist())
    shown = ", ".join(f"'{phrase}'" for phrase in one.phrases)
    scored = "too low" if side > 0 else "too high"
    if level:
        scored += f", beyond the {abs(level):.2f} that most are too {'low' if level > 0 else 'high'},"
    rationale = (
        f"{shown} stands in {told.with_gap} of {told.of_gap} items that the cheap judge scored {scored} and in "
        f"{told.elsewhere} of {told.of_others} others (log odds {told.log_odds:+.2f}, z {told.z:.1f}, chi-square "
        f"{told.chi_square:.1f})"
    )
    if one.judge_words:
        rationale += f"; the expensive judge said: {one.judge_words[0]}"
    return PatternProposal(
        pattern=pattern.model_dump(mode="json"),
        proposed_at=iteration,
        category=pattern.category,
        rationale=rationale,
        provenance={
            "by": one.source,
            "items": [items[place].id for place in places if contrast.signs[place] == side][:_NAMED],
            "judge_words": list(one.judge_words),
            "statistic": told.to_json(),
        },
    )


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
    if not found:
        return []
    return list(merge_proposals(found, known, [item.text for item in items], scores=[item.gap for item in items]).kept)


def _as_set(patterns: PatternSet | Sequence[PatternV2] | Mapping[str, Any] | None) -> PatternSet:
    if isinstance(patterns, PatternSet):
        return patterns
    if isinstance(patterns, Mapping):
        return parse_patterns(dict(patterns), "the given patterns")
    return PatternSet(version="2.0", patterns=list(patterns or ()))


def _by_story(results: Sequence[Any], stories: Sequence[Any]) -> dict[int, Any]:
    """Return the result of each story, by its place."""
    names = [_get(story, "id") for story in stories]
    ids = [_get(result, "story_id") for result in results]
    if all(one is not None for one in (*names, *ids)) and len(set(names)) == len(names):
        place = {str(name): number for number, name in enumerate(names)}
        return {place[str(one)]: result for one, result in zip(ids, results, strict=True) if str(one) in place}
    return dict(enumerate(results[: len(stories)]))


def _item(place: int, story: Any, expensive: Any, cheap: Any, noise: float) -> GapItem | None:
    scores = [_get(one, "gestalt") for one in (expensive, cheap)]
    if not all(isinstance(score, int | float) and not isinstance(score, bool) and math.isfinite(score) for score in scores):
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


def by_terms(asked: ProposalRequest) -> ProposalReply:
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
        fewest=asked.fewest,
    )
    return ProposalReply(proposals=tuple(found))
