"""Words of English: how common one is, and the forms it takes.

How common: the frequency list of 82,834 words that symspellpy ships (Google Books n-grams, cut to the words of SCOWL). The
forms are made by the rules of regular inflection and kept when the list knows them and Snowball gives them the same stem, so
that nothing is invented: ``token`` has ``tokens``, not ``tokenes``.
"""

from __future__ import annotations

import math
from functools import cache
from importlib.resources import files
from typing import Any

from jumar.core.extras import need_extra

FUNCTION_WORDS = frozenset(
    """
    a about above across after again against all already also although am an and any are as at be because been before
    being below between both but by can could did do does doing done down during each either even every few for from
    further had has have having he hence her here his how however i if in into is it its itself just less like many may me
    might more most much must my neither no nor not of off on once one only onto or other our out over own per rather same
    shall she should since so some still such than that the their them then there these they this those though through
    thus to too two under unless until up upon us very via vs was we were what when where whether which while who whom
    whose why will with within without would yet you your e.g i.e etc don't doesn't isn't aren't didn't won't can't it's
    that's
    """.split()  # noqa: SIM905 - a list of words is read as one
)
_TELLING = 14.5  # bits: "validate" says as much as "validation", "explore" less than "exploration"
_VOWELS = frozenset("aeiou")
_DERIVED = (("ization", "ize"), ("isation", "ise"), ("ation", "ate"), ("ation", "e"), ("ation", ""), ("ion", "e"), ("ion", ""))


@cache
def _frequencies() -> tuple[dict[str, int], float]:
    need_extra("judge", "deriving phrases from descriptions", "symspellpy", "snowballstemmer")
    import symspellpy  # pyright: ignore[reportMissingTypeStubs]

    text = files(symspellpy).joinpath("frequency_dictionary_en_82_765.txt").read_text(encoding="utf-8-sig")
    found = {word: int(count) for word, _, count in (line.partition(" ") for line in text.splitlines())}
    return found, float(sum(found.values()))


@cache
def _stemmer() -> Any:
    import snowballstemmer  # pyright: ignore[reportMissingTypeStubs]

    return snowballstemmer.stemmer("english")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


@cache
def stem(word: str) -> str:
    """Return Snowball's stem of a lower-case word."""
    found: str = _stemmer().stemWord(word)
    return found


@cache
def bits(word: str) -> float:
    """Return the information of a word's most common form, in bits: about 5 for ``the``, 16 for the 5,000th; 30 when unknown."""
    known, total = _frequencies()
    most = max((known.get(form, 0) for form in inflected(word)), default=0)
    return min(30.0, -math.log2(most / total)) if most else 30.0


@cache
def inflected(word: str) -> tuple[str, ...]:
    """Return the regular forms of a lower-case word, itself first: plural, third person, past, participle, and their base."""
    known, _ = _frequencies()
    own = stem(word)
    found = dict.fromkeys([word])
    for base in _bases(word):
        for form in _of(base):
            if form in known and stem(form) == own:
                found[form] = None
    if word not in known and word.isalpha() and not word.endswith("s"):
        found[word + "s"] = None  # a technical word is a noun
    return tuple(found)


@cache
def forms(word: str) -> tuple[str, ...]:
    """Return :func:`inflected`, and of a noun of action (``validation``) the forms of its verb, in British spelling too."""
    known, _ = _frequencies()
    found = dict.fromkeys(inflected(word))
    for ending, replaced in _DERIVED:
        verb = word.removesuffix(ending) + replaced
        if word.endswith(ending) and len(verb) > 4 and bits(verb) >= _TELLING and verb in known and stem(verb) == stem(word):
            found.update(dict.fromkeys(inflected(verb)))
    for form in list(found):
        other = form.replace("iz", "is") if "iz" in form[3:] else form
        if other in known:
            found[other] = None
    return tuple(found)


@cache
def compound(word: str) -> tuple[str, str] | None:
    """Return the two common words that a rare one is made of: ``timezone`` is ``time zone``; None when it is not.

    Of several cuts the one whose rarer part is most common.
    """
    known, _ = _frequencies()
    if bits(word) < 17 or len(word) < 7:
        return None
    cuts = [(word[:at], word[at:]) for at in range(3, len(word) - 2)]
    good = [cut for cut in cuts if all(part in known and bits(part) < 14.5 and len(part) > 2 for part in cut)]
    return max(good, key=lambda cut: min(known[part] for part in cut), default=None)


def _bases(word: str) -> list[str]:
    found = [word]
    for ending, replacements in (
        ("ies", ("y",)),
        ("es", ("", "e")),
        ("s", ("",)),
        ("ied", ("y",)),
        ("ed", ("", "e")),
        ("ing", ("", "e")),
    ):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            cut = word.removesuffix(ending)
            found += [cut + replaced for replaced in replacements]
            if ending in {"ed", "ing"} and cut[-1] == cut[-2]:
                found.append(cut[:-1])
    return found


def _of(base: str) -> list[str]:
    if len(base) < 2:
        return [base]
    last = base[-1]
    found = [base, base + "s"]
    if base.endswith(("s", "x", "z", "ch", "sh")):
        found.append(base + "es")
    if last == "y" and base[-2] not in _VOWELS:
        return [*found, base[:-1] + "ies", base[:-1] + "ied", base + "ing"]
    if last == "e":
        return [*found, base + "d", base[:-1] + "ing"]
    found += [base + "ed", base + "ing"]
    if last not in _VOWELS and base[-2] in _VOWELS:
        found += [base + last + "ed", base + last + "ing"]
    return found
