"""All patterns over a text in one iteration.

The automaton works on bytes: the text in lower case, with every character that is not part of a word as a blank, so that a
word boundary is a blank in the phrase itself and ``api`` does not even begin to match in ``capital``. What it finds is
compared with the text as it was: ``time zone`` is neither ``time-zone`` nor two lines. Two lines are two things, such as a title
and its description, or one criterion and the next.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, Final

from jumar.core.lazy import need_extra
from jumar.core.text import escape
from jumar.errors import PatternLoadError
from jumar.judging.patterns.models import PatternSet, PatternV2

MATCHED: Final = frozenset({"active", "provisional"})
"""The statuses of patterns that are looked for."""

_BLANKS: Final = bytes(code if code > 127 or chr(code).isalnum() or code == 0x5F else 0x20 for code in range(256))
_FOREIGN: Final = re.compile("[^\\w\x00-\x7f]+")
_QUICK_BYTES: Final = 1 << 18  # up to here the fastest automaton takes some ten megabytes; beyond, hundreds
_PROGRAM_BYTES: Final = 1 << 23
_MATCHING_BYTES: Final = 1 << 26


def literals(pattern: PatternV2) -> list[str]:
    """Return the phrases that ``pattern`` fires on: its phrases, or its keywords when it has nothing else to fire by.

    Without blanks at their ends; empty ones are left out.
    """
    if pattern.phrases or pattern.regex is not None or pattern.feature is not None:
        return [found for phrase in pattern.phrases if (found := phrase.strip())]
    return [found for keyword in pattern.keywords if (found := keyword.strip())]


def folded(text: str) -> str:
    """Return ``text`` as it is compared.

    Unicode's case folding (ß is ss), letters and their accents in one (NFC), and blanks, tabs and no-break spaces in a row as one
    blank.
    """
    low = text.casefold()
    if low.isascii():
        return _even(low.replace("\t", " "))
    if not unicodedata.is_normalized("NFC", low):
        low = unicodedata.normalize("NFC", low)
    return _even(low.replace("\t", " ").replace("\u00a0", " ").replace("\u202f", " "))


def _even(text: str) -> str:
    while "  " in text:  # several times faster than an expression
        text = text.replace("  ", " ")
    return text


class PatternMatcher:
    """Finds which patterns fire on a text.

    A pattern fires when one of its phrases (its keywords, where it has neither phrases nor an expression) occurs between word
    boundaries, ignoring case, or its RE2 expression matches anywhere, ignoring case. Letters, digits and ``_`` of any script
    make words; a side of a phrase that is punctuation needs no boundary. Phrases and text are compared :func:`folded`, an
    expression sees the text as it is; a phrase does not go on in the next line. ``rejected`` and ``pruned`` patterns never fire.

    The time for a text grows with the text and what fires, hardly with the number of patterns; expressions take linear time.
    An instance is immutable. Errors: :class:`jumar.errors.PatternLoadError` that names the pattern whose expression RE2
    refuses or finds too big; :class:`jumar.errors.MissingExtraError`.
    """

    def __init__(self, patterns: PatternSet | Iterable[PatternV2]) -> None:
        found = patterns.patterns if isinstance(patterns, PatternSet) else list(patterns)
        self.ids: Final = tuple(pattern.id for pattern in found)
        owners: dict[str, list[int]] = {}
        expressions: list[tuple[int, str]] = []
        for index, pattern in enumerate(found):
            if pattern.status not in MATCHED:
                continue
            for phrase in dict.fromkeys(map(folded, literals(pattern))):
                owners.setdefault(phrase, []).append(index)
            if pattern.regex is not None:
                expressions.append((index, pattern.regex))
        self._phrases: Final = list(owners)
        self._owners: Final = list(owners.values())
        self._checks: Final[list[tuple[bytes, int] | None]] = [_check(phrase) for phrase in owners]
        self._find: Final = _automaton(self._phrases) if owners else None
        self._sets: Final = _expression_sets(expressions, self.ids) if expressions else []

    def fired(self, text: str) -> list[int]:
        """Return the positions of the patterns that fire on ``text``, ascending, each once."""
        found: set[int] = set()
        if self._find is not None:
            self._fire_phrases(text, found)
        for one in self._sets:
            found.update(one.fired(text))
        return sorted(found)

    def fired_ids(self, text: str) -> list[str]:
        """Return the ids of the patterns that fire on ``text``, in the order of the patterns."""
        ids = self.ids
        return [ids[index] for index in self.fired(text)]

    def evidence(self, text: str) -> list[tuple[str, str]]:
        """Return ``(pattern id, phrase or expression)`` for everything that fired on ``text``; for people, not for speed."""
        phrases, owners = self._phrases, self._owners
        said = {(index, phrases[number]) for number in self._found(text) for index in owners[number]}
        said.update(each for one in self._sets for each in one.evidence(text))
        return [(self.ids[index], phrase) for index, phrase in sorted(said)]

    def _fire_phrases(self, text: str, found: set[int]) -> None:
        owners = self._owners
        for number in self._found(text):
            found.update(owners[number])

    def _found(self, text: str) -> Iterable[int]:
        """Return the numbers of the phrases that occur in ``text``."""
        if self._find is None:
            return ()
        low = folded(text)
        if low.isascii():
            raw = low.encode("ascii")
            blanked = raw.translate(_BLANKS)
        else:
            raw = low.encode("utf-8", "surrogatepass")
            blanked = _blanked(low)
        checks = self._checks
        found: list[int] = []
        # with one blank in front, so that the first word has its boundary too
        matches: list[tuple[int, int, int]] = self._find(b" %b " % blanked, overlapping=True)
        for number, start, _ in matches:
            check = checks[number]
            if check is None or raw.startswith(check[0], start - check[1]):
                found.append(number)
        return found


def _check(phrase: str) -> tuple[bytes, int] | None:
    """Return what must stand where the automaton found ``phrase``, and how many bytes before that; None for a single word."""
    raw = phrase.encode("utf-8", "surrogatepass")
    return None if b" " not in _blanked(phrase) else (raw, 0 if _is_word(phrase[0]) else 1)


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _blanked(low: str) -> bytes:
    """Return the text with as many blanks as bytes for everything that is not part of a word."""
    plain = _FOREIGN.sub(lambda match: " " * len(match.group().encode("utf-8", "surrogatepass")), low)
    return plain.encode("utf-8").translate(_BLANKS)


def _automaton(phrases: Sequence[str]) -> Any:
    need_extra("judge", "matching patterns", "ahocorasick_rs")
    from ahocorasick_rs import BytesAhoCorasick, Implementation

    wanted = [b"%b%b%b" % (b" " * _is_word(phrase[0]), _blanked(phrase), b" " * _is_word(phrase[-1])) for phrase in phrases]
    quick = sum(map(len, wanted)) <= _QUICK_BYTES
    return BytesAhoCorasick(wanted, implementation=Implementation.DFA if quick else None).find_matches_as_indexes


class _Expressions:
    """Expressions that are matched together."""

    def __init__(self, compiled: Any, expressions: list[tuple[int, str]]) -> None:
        self._compiled = compiled
        self._expressions = expressions

    def evidence(self, text: str) -> list[tuple[int, str]]:
        return [self._expressions[number] for number in self._match(text)]

    def fired(self, text: str) -> list[int]:
        expressions = self._expressions
        return [expressions[number][0] for number in self._match(text)]

    def _match(self, text: str) -> list[int]:
        return self._compiled.Match(_readable(text)) or []


def _readable(text: str) -> str | bytes:
    """Return ``text`` as the library takes it: half of a surrogate pair is no text to it."""
    return text if text.isascii() else text.encode("utf-8", "replace")


def _re2() -> Any:
    import re2  # pyright: ignore[reportMissingTypeStubs]

    return re2


def _expression_sets(expressions: list[tuple[int, str]], ids: Sequence[str]) -> list[_Expressions]:
    need_extra("judge", "matching regular expressions of patterns", "re2")
    library = _re2()
    for index, expression in expressions:
        try:
            library.compile(expression, _options(_PROGRAM_BYTES))
            _together([(index, expression)], _PROGRAM_BYTES)
        except library.error as error:
            raise PatternLoadError(
                f"pattern {escape(ids[index])}: its regex {_short(expression)} is not one of RE2, or too big: {_said(error)}; "
                "RE2 knows no look-around and no back-references"
            ) from error
    return _split(expressions)


def _split(expressions: list[tuple[int, str]]) -> list[_Expressions]:
    """Return as few sets as compile.

    A set whose program takes most of its memory has none left to match with, and says so to nobody but a log of its own: it
    is tried with a small part of what it then gets.
    """
    try:
        _together(expressions, _PROGRAM_BYTES)
    except _re2().error:
        half = len(expressions) // 2
        return [*_split(expressions[:half]), *_split(expressions[half:])]
    return [_Expressions(_together(expressions, _MATCHING_BYTES), expressions)]


def _together(expressions: list[tuple[int, str]], memory: int) -> Any:
    together = _re2().Set.SearchSet(_options(memory))
    for _, expression in expressions:
        together.Add(expression)
    together.Compile()
    return together


def _options(memory: int) -> Any:
    options = _re2().Options()
    options.case_sensitive = False
    options.log_errors = False
    options.max_mem = memory
    return options


def _said(error: Exception) -> str:
    said = error.args[0] if error.args else error
    return escape(said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said))


def _short(text: str) -> str:
    return escape(repr(text if len(text) <= 80 else text[:79] + "…"))
