"""``readability``: whether a text's grade level lies where its readers are.

Both formulas count characters instead of syllables, so that they need no dictionary. They were fitted to English prose and give
US school grades; below some 100 words they are rough.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from jumar.errors import ConfigError
from jumar.loop.scorers.base import Builtin, Options, ScorerRuntime, TextScorer
from jumar.loop.scorers.markdown import prose_blocks
from jumar.model.protocols import Scorer
from jumar.processes.usage import ScoreValue

_WORD: Final = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
_SENTENCE_END: Final = re.compile(r"(?<![.!?…。！？])[.!?…。！？]+[\"'’”)\]]*(?:\s+|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextCounts:
    """What the formulas are made of. A heading, a list item and a paragraph end a sentence."""

    words: int
    sentences: int
    letters: int
    digits: int


def count_text(text: str) -> TextCounts:
    """Count the prose of a Markdown or plain text; code, tables, addresses and markup are left out."""
    words = sentences = letters = digits = 0
    for block in prose_blocks(text):
        for sentence in _SENTENCE_END.split(block):
            found = _WORD.findall(sentence)
            if found:
                sentences += 1
                words += len(found)
                letters += sum(char.isalpha() for word in found for char in word)
                digits += sum(char.isdigit() for word in found for char in word)
    return TextCounts(words=words, sentences=sentences, letters=letters, digits=digits)


def _coleman_liau(counts: TextCounts) -> float:
    """Return 0.0588 L − 0.296 S − 15.8, with letters and sentences for each 100 words.

    Coleman, Liau: A computer readability formula designed for machine scoring. Journal of Applied Psychology 60 (1975) 283–284.
    """
    return 0.0588 * (100 * counts.letters / counts.words) - 0.296 * (100 * counts.sentences / counts.words) - 15.8


def _ari(counts: TextCounts) -> float:
    """Return 4.71 characters/words + 0.5 words/sentences − 21.43; letters and digits are characters.

    Smith, Senter: Automated Readability Index. AMRL-TR-66-220, Wright-Patterson Air Force Base (1967).
    """
    characters = counts.letters + counts.digits
    return 4.71 * (characters / counts.words) + 0.5 * (counts.words / counts.sentences) - 21.43


FORMULAS: Final[Mapping[str, Callable[[TextCounts], float]]] = MappingProxyType({"coleman-liau": _coleman_liau, "ari": _ari})


def band_score(grade: float, low: float, high: float, falloff: float) -> float:
    """Return 1 from ``low`` to ``high``, falling in a straight line to 0 at a distance of ``falloff`` grades."""
    distance = max(low - grade, grade - high, 0.0)
    return max(0.0, 1.0 - distance / falloff)


def _build(dimension: str, options: Options, runtime: ScorerRuntime) -> Scorer:
    del runtime  # it runs nothing
    formula = options.choice("formula", tuple(FORMULAS))
    low, high = options.band("target", (8.0, 12.0))
    falloff = options.number("falloff", 8.0)
    if not falloff:
        raise ConfigError(f"{options.where}: option 'falloff' should be above 0 grades")

    def measure(text: str) -> ScoreValue:
        counts = count_text(text)
        if counts.words == 0:
            return ScoreValue(score=None, invalid="there are no words to measure")
        grade = FORMULAS[formula](counts)
        reason = f"grade {grade:.1f} ({formula}), wanted {low:g}–{high:g}"
        return ScoreValue(score=band_score(grade, low, high, falloff), reason=reason)

    return TextScorer(dimension, "readability", options.paths(), measure)


READABILITY = Builtin(build=_build, options=("path", "formula", "target", "falloff"), dimension="readability")
