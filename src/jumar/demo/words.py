"""Words, sentences and terms of a text in whatever language it is written.

The condenser and the measures share this file, so that both count the same things. It knows no vocabulary but the commonest
English function words; in other languages the words that carry no meaning are found in the text itself, as those that are
short and stand in many of its sentences. Scripts without spaces between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese) are
read as overlapping pairs of characters, the usual stand-in for words where no dictionary is at hand.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable

__all__ = ["OPENS_A_BLOCK", "UNSPACED", "content", "count_words", "fold", "function_words", "split_sentences", "tokens"]

UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""The inside of a character class: scripts that are written without spaces between words."""

OPENS_A_BLOCK = re.compile(r"\s*(?:(?:[-*+•·‣–—]|#{1,6}|\(?\d{1,3}[.)])(?:\s|$)|[>|=~<]|-{2,}|`{3}|\.\. |\[[^\]]*\]:)")
"""What a reader of markdown takes for more than words at the beginning of a line: no line and no sentence is to begin so."""

_WORD = re.compile(r"\d+(?:[.,:/\-]\d+)*%?|\w+(?:['’.\-]\w+)*")
_UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
_HIRAGANA = re.compile("[\u3040-\u309f]")

_END = re.compile(r"([.!?…]+[\"'”’»)\]*_]*)(?=\s)|([。！？｡]+[」』”’）\"']*)")
_LEADING_NUMBER = re.compile(r"(?:^|[.!?:]\s)[\s(\[*_]*\d{1,3}$")
_WHOLE = re.compile(r"`+[^`]*`+|\[[^\[\]]*\]\([^()]*\)")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[\"'“‘])(?:[A-Za-z]|(?:[A-Za-z]\.)+[A-Za-z]|Mr|Mrs|Ms|Dr|Prof|St|Nos?|Fig|Eq|Sec|Ch|Vol|pp?|cf|vs|al|ca|approx|resp|incl|esp"
    r"|z\.B|d\.h|u\.a|bzw|ggf|usw|etc|viz|ed|eds|rev|ver)$",
    re.IGNORECASE,
)

_ENGLISH = frozenset(
    """a about above after again against all almost also although always am among an and another any are aren't as at
    away back be became because become been before being below between both but by came can can't cannot come
    could did didn't do does doesn't doing don't done down during each either else enough even ever every few
    first for from further get gets getting give given go goes going gone got had has have haven't having he her
    here hers him his how however i i'm if in instead into is isn't it it's its itself just keep know let like
    likely made make makes making many may maybe me might more most much must my need needs neither never no nor
    not nothing now of off often on once one only onto or other others our out over own per perhaps put quite
    rather really said same say see seem seems several shall she should since so some something sometimes still
    such take than that that's the their them then there therefore these they they're thing things this those
    though through thus to too toward two under until up upon us use used using usually very want was way we
    we're well went were what whatever when where whether which while who whole whom whose why will with within
    without won't would yes yet you you'll you're your yours yourself""".split()  # noqa: SIM905  (a list of this length is read as prose)
)


def tokens(text: str) -> list[str]:
    """Return the words and numbers of ``text`` in order, as written; pairs of characters where no spaces separate words."""
    if text.isascii() or not _UNSPACED_RUN.search(text):
        return _WORD.findall(text)
    found: list[str] = []
    position = 0
    for run in _UNSPACED_RUN.finditer(text):
        found += _WORD.findall(text, position, run.start())
        characters = run.group()
        found += [characters[i : i + 2] for i in range(max(1, len(characters) - 1))]
        position = run.end()
    found += _WORD.findall(text, position)
    return found


def count_words(text: str) -> int:
    """Return the length of ``text`` in words; two characters of a script without spaces count as one word."""
    if text.isascii():
        return len(_WORD.findall(text))
    unspaced = [len(run) for run in _UNSPACED_RUN.findall(text)]
    spaced = _WORD.findall(_UNSPACED_RUN.sub(" ", text)) if unspaced else _WORD.findall(text)
    return len(spaced) + sum((length + 1) // 2 for length in unspaced)


@functools.lru_cache(maxsize=1 << 16)
def fold(word: str) -> str:
    """Return ``word`` without case, possessive and plain English plural, so that its forms count as one term."""
    low = word.lower().replace("’", "'").removesuffix("'s")
    if len(low) > 4 and low.isascii() and low.endswith("s") and not low.endswith(("ss", "us", "is")):
        return low[:-3] + "y" if low.endswith("ies") else low[:-1]
    return low


def function_words(sentences: Iterable[str]) -> frozenset[str]:
    """Return the folded words of ``sentences`` that hold a sentence together rather than say something.

    These are the commonest English ones, and in any language the words of at most five letters that stand in every eighth
    sentence or more. The second rule needs 16 sentences before it says anything.
    """
    spread: Counter[str] = Counter()
    total = 0
    for sentence in sentences:
        total += 1
        spread.update({fold(word) for word in tokens(sentence) if len(word) <= 5})
    if total < 16:
        return _ENGLISH
    return _ENGLISH | {word for word, seen in spread.items() if seen * 8 >= total and not word[0].isdigit()}


def content(text: str, functional: frozenset[str]) -> list[str]:
    """Return the folded terms of ``text`` in order, repetitions included, without ``functional`` words.

    Words of one or two small letters, and pairs of characters with Japanese Hiragana in them (endings and particles), are
    left out.
    """
    terms: list[str] = []
    for word in tokens(text):
        term = fold(word)
        if term in functional:
            continue
        if (len(word) > 2 or not word.islower()) if word.isascii() else not _HIRAGANA.search(word):
            terms.append(term)
    return terms


def split_sentences(text: str) -> list[str]:
    """Split running text (one paragraph, line ends already spaces) into its sentences, each stripped; empty text has none.

    A full stop ends nothing after an abbreviation, an initial or a leading number, before a small letter or what would be
    a list mark, and inside a code span or a link.
    """
    found: list[str] = []
    start = 0
    whole = [match.span() for match in _WHOLE.finditer(text)] if "`" in text or "[" in text else []
    for match in _END.finditer(text):
        end = match.end()
        while whole and whole[0][1] <= match.start():
            del whole[0]
        if whole and whole[0][0] < match.start() and end < whole[0][1]:
            continue
        if match.group(2) is None and not _ends_here(text, start, match.start(), end):
            continue
        found.append(text[start:end].strip())
        start = end
    rest = text[start:].strip()
    if rest:
        found.append(rest)
    return found


def _ends_here(text: str, start: int, stop: int, end: int) -> bool:
    after = text[end : end + 20].lstrip()
    following = after[:1]
    if not following:
        return True
    if OPENS_A_BLOCK.match(after):
        return False
    if text[stop] == "." and _LEADING_NUMBER.search(text[max(start, stop - 12) : stop]):
        return False
    if text[stop] == "." and _ABBREVIATION.search(text[max(start, stop - 12) : stop]):
        return False
    return not following.islower() or text[stop] in "!?"
