"""What somebody could do to a real item to have it score higher, without making it better. Pure.

One list serves two ends. The probes (:mod:`jumar.learning.proof.probes`) try a finished set with it; the guard of a fit
(:mod:`jumar.learning.scorecard.pool`) foresees the same attacks, with other words and other chance, so that points are not
given for what anybody can append.

An attack adds what a pattern or a feature counts and a reader has no use for, in a small and in a large amount; it hands in the
prompt or the context as the answer; it says everything twice, in another order, or denies it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from jumar.judging.items.item import Item

FEW: Final = 3
MANY: Final = 25
"""The small and the large amount of what is appended."""

CHUNK: Final = 20
"""Phrases that are stuffed at a time: a text that holds more of them is no text."""

_SENTENCE: Final = re.compile(r"(?<=[.!?…])\s+")
_PARTED: Final = re.compile(r"((?<=[.!?…])\s+)")
_VERB: Final = re.compile(
    r"\b(is|are|was|were|am|can|could|will|would|should|must|may|might|has|have|had|do|does|did)\b(?!\s+not\b)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackMeans:
    """What an attack works with: sentences about nothing, long words, how to deny (after a verb, in front of a sentence).

    ``many`` is the large amount; 25, unless a set asks for more of something.
    """

    filler: tuple[str, ...]
    long_words: tuple[str, ...]
    after_verb: str
    in_front: str
    many: int = MANY

    @property
    def words(self) -> tuple[str, ...]:
        """Words of the sentences, without their marks."""
        return _words(self.filler)


@functools.lru_cache(maxsize=16)  # a long list asks for a word a line, of hundreds of items
def _words(sentences: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(re.findall(r"[A-Za-z]+", " ".join(sentences)))


Attack = Callable[[Item, AttackMeans, Random], Item]


def with_text(item: Item, change: Callable[[str], str]) -> Item:
    """Return ``item`` with its text changed; of a story the description."""
    if item.story is None:
        return replace(item, text=change(item.text))
    story = item.story.model_copy(update={"description": change(item.story.description)})
    return replace(Item.of(story, group=item.group, source=item.source), prompt=item.prompt, context=item.context)


def stuffings(phrases: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return which phrases are stuffed, by how it is told: all of them, and where they are many, the first and each chunk."""
    count = len(phrases)
    found = {f"all {count:,} phrases": tuple(phrases)} if phrases else {}
    if count > CHUNK:
        found |= {f"the {end:,} heaviest phrases": tuple(phrases[:end]) for end in _doubled(count)}
        starts = range(CHUNK, count, CHUNK)
        found |= {f"phrases {one + 1:,} to {min(one + CHUNK, count):,}": tuple(phrases[one : one + CHUNK]) for one in starts}
    return found


def _doubled(count: int) -> list[int]:
    """Return amounts below ``count``, each twice the one before."""
    found = [CHUNK]
    while 2 * found[-1] < count:
        found.append(2 * found[-1])
    return found


def stuffed(item: Item, phrases: Sequence[str], draw: Random) -> Item:
    """Return ``item`` with the phrases that are not there, in no sentence that would mean anything."""

    def change(text: str) -> str:
        low = text.casefold()
        missing = [phrase for phrase in phrases if phrase.casefold() not in low]
        draw.shuffle(missing)
        return f"{text} {', '.join(missing)}." if missing else text

    return with_text(item, change)


def _text(change: Callable[[str, AttackMeans, Random], str]) -> Attack:
    return lambda item, means, draw: with_text(item, lambda text: change(text, means, draw))


def _padded(text: str, means: AttackMeans, draw: Random) -> str:
    """Make the text about twice as long with sentences about nothing."""
    added: list[str] = []
    while sum(len(one) + 1 for one in added) < len(text):
        added.append(means.filler[draw.randrange(len(means.filler))])
    return " ".join((text, *added)) if text.strip() else text


def _other_order(parts: list[str], draw: Random) -> list[str]:
    """Return the parts in another order, where there is one."""
    if len(set(parts)) < 2:
        return parts
    made = list(parts)
    while made == parts:
        draw.shuffle(made)
    return made


def _denied(sentence: str, means: AttackMeans) -> str:
    """Say of a sentence that it is not so. English: after a verb, else in front."""
    if not sentence.strip():
        return sentence
    found = _VERB.search(sentence)
    if found is not None:
        return f"{sentence[: found.end()]} {means.after_verb}{sentence[found.end() :]}"
    return f"{means.in_front} {sentence[:1].lower()}{sentence[1:]}"


def _appended(
    piece: Callable[[AttackMeans, Random], str], between: str = " ", before: str = " "
) -> Callable[[int | None], Attack]:
    """Return what appends a number of pieces; None is as many as the means say."""

    def of(count: int | None) -> Attack:
        def change(text: str, means: AttackMeans, draw: Random) -> str:
            return text + before + between.join(piece(means, draw) for _ in range(means.many if count is None else count))

        return _text(change)

    return of


def _word(means: AttackMeans, draw: Random) -> str:
    return draw.choice(means.words).lower()


_PIECES: Final[Mapping[str, Callable[[int | None], Attack]]] = {
    "list_entries": _appended(lambda means, draw: f"- {_word(means, draw)}", "\n", "\n"),
    "numbers": _appended(lambda _, draw: str(draw.randrange(10, 10_000))),
    "questions": _appended(lambda _means, _draw: "?", "", ""),
    "exclamations": _appended(lambda _means, _draw: "!", "", ""),
    "commas": _appended(lambda means, draw: f"{_word(means, draw)},"),
    "quotes": _appended(lambda means, draw: f'"{_word(means, draw)}"'),
    "code": _appended(lambda means, draw: f"`{_word(means, draw)}`"),
    "paragraphs": _appended(lambda means, draw: f"{_word(means, draw)}.", "\n\n", "\n\n"),
    "names": _appended(lambda means, draw: _word(means, draw).capitalize()),
    "long_words": _appended(lambda means, draw: draw.choice(means.long_words)),
    "short_words": _appended(lambda _, draw: draw.choice(("a", "it", "of", "so", "to", "up"))),
}


def _of_source(source: str, made: Callable[[str, str], str]) -> Attack:
    """Return what makes a text of the item's prompt or context; where there is none, nothing."""

    def attack(item: Item, _means: AttackMeans, _draw: Random) -> Item:
        given = str(getattr(item, source))
        return with_text(item, lambda text: made(text, given)) if given.strip() else item

    return attack


def _first_half(text: str) -> str:
    words = text.split()
    return " ".join(words[: max(1, len(words) // 2)])


_COPIES: Final[Mapping[str, Callable[[str, str], str]]] = {
    "appended": lambda text, given: f"{text} {given}",
    "copied": lambda _text, given: given,
    "half_copied": lambda _text, given: _first_half(given),
}

ATTACKS: Final[Mapping[str, Attack]] = {
    "padding": _text(_padded),
    "repetition": _text(lambda text, _means, _draw: f"{text} {text}" if text.strip() else text),
    "shuffled_sentences": _text(
        lambda text, _, draw: " ".join(_other_order([one for one in _SENTENCE.split(text) if one], draw))
    ),
    "shuffled_words": _text(lambda text, _means, draw: " ".join(_other_order(text.split(), draw))),
    "negation": _text(lambda text, means, _: "".join(_denied(sentence, means) for sentence in _PARTED.split(text))),
    **{f"few_{name}": of(FEW) for name, of in _PIECES.items()},
    **{f"many_{name}": of(None) for name, of in _PIECES.items()},
    **{f"{source}_{name}": _of_source(source, made) for source in ("prompt", "context") for name, made in _COPIES.items()},
}
"""The attacks by name, but for stuffing, which needs the phrases of a set: an item, means and chance → the item attacked."""

WORD_CHOICE: Final = frozenset(
    f"{amount}_{kind}" for amount in ("few", "many") for kind in ("names", "long_words", "short_words")
)
"""The attacks that add ordinary words of some kind. They are probed, and a fit does not foresee them.

What a mark, a number, a line of a list or a copy adds, no reader takes for content. Words are what a text is written in: a fit
that may not reward whoever adds a long word may not look at the length of words at all, and much of what judges go by is there.
"""
