"""From a sentence to what a text would say: literal phrases, and sometimes an expression.

A sentence such as "Include error handling within the same vertical slice" never occurs in a story, nor do all its keywords
together. What does occur is what the sentence is *about*. Four sources, all from the pattern's own wording:

1. terms that stay whole: names, acronyms, identifiers, files;
2. nouns that are rare in English, in every form;
3. pairs of words side by side (a function word between them is skipped), in every form and with the usual joints, when together
   they carry enough information; words of judgement ("correctly identifies", "keep in one story") are not about anything;
4. the concepts of ``concepts.toml`` that the sentence names, in the words that a story has for them.

What the sentence negates ("no backend changes") is looked for negated, and calls up no concept.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any, Final

from jumar.core.lazy import need_extra

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


def content_of(phrase: str) -> tuple[int, int, int]:
    """Return how much a phrase says, to compare by: words that mean something, then as few others as can be, then letters."""
    words = phrase.split()
    empty = sum(word in FUNCTION_WORDS for word in words)
    return len(words) - empty, -empty, len(phrase)


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


_LONGEST: Final = 3  # words of a keyword
_READ: Final = 20_000  # characters; a description is some hundred

_TERM: Final = re.compile(
    r"""
      (?:/?[\w.-]+/)+[\w.-]*\w(?:\.\w{1,5})?      # a path
    | \b[\w-]+\.(?:pyi?|tsx?|jsx?|php|rb|go|rs|java|json|ya?ml|toml|md|sql|html|css|sh)\b   # a file
    | \b[A-Za-z_]\w*(?=\(\))                      # a call
    | \b[a-z]+[a-z0-9]*(?:[A-Z][a-z0-9]*)+\b      # camelCase
    | \b[A-Z][a-z0-9]+(?:[A-Z]+[a-z0-9]*)+\b      # CamelCase, OAuth
    | \b[a-z]\w*_\w+\b                            # snake_case
    | \b[A-Z]{2,}(?:\d+)?(?=s?\b)                 # an acronym
    | (?<=[\w,;(:→>-]\s)[A-Z][a-z]{3,}\b          # a name inside a sentence
    """,
    re.VERBOSE,
)
_NOT_TERMS: Final = frozenset(
    {"AC", "ACS", "NOT", "AND", "OR", "ALL", "NO", "ONE", "TWO", "SPLIT", "KEEP", "ONLY", "MUST", "ALREADY"}
)


def domain_terms(text: str, names: Iterable[str] = ()) -> list[str]:
    """Return what must stay whole, in the order of the text, as it is written there, each once.

    That is paths, file names, calls, CamelCase, snake_case, acronyms, capitalised names inside a sentence, and whichever of
    ``names`` (of services, say) stand in the text between word boundaries, ignoring case.
    """
    found = [(match.start(), match.group().rstrip(".,-")) for match in _TERM.finditer(text)]
    for name in names:
        found += [(match.start(), name) for match in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)]
    kept: dict[str, str] = {}
    for _, term in sorted(found):
        if len(term) > 1 and term.upper() not in _NOT_TERMS and not term.replace("/", "").replace(".", "").isdigit():
            kept.setdefault(term.lower(), term)
    return list(kept.values())


def extract_keywords(text: str, *, limit: int = 8, names: Iterable[str] = ()) -> list[str]:
    """Return at most ``limit`` keywords of ``text`` in lower case, the most telling first; none for a text without words.

    First come :func:`domain_terms`, as many as half of the limit, then what YAKE (Campos et al. 2020) finds in up to three
    words. The same text has the same keywords, on every machine. Only the first 20,000 characters are read. Errors:
    :class:`jumar.errors.MissingExtraError`; ValueError for a limit below 1.
    """
    if limit < 1:
        raise ValueError(f"limit is {limit}; ask for at least 1 keyword")
    read = text[:_READ]
    terms = [term.lower() for term in domain_terms(read, names)]
    found = dict.fromkeys(terms[: max(1, limit // 2)])
    scored: list[tuple[str, Any]] = _extractor().extract_keywords(" ".join(read.split()))
    ranked = sorted(((round(float(score), 9), keyword.lower()) for keyword, score in scored), key=lambda one: one[0])
    for keyword in [keyword for _, keyword in ranked] + terms:
        if len(found) == limit:
            break
        if not any(re.search(rf"(?<!\w){re.escape(keyword)}(?!\w)", known) for known in found):
            found[keyword] = None
    return list(found)


@cache
def _extractor() -> Any:
    need_extra("judge", "extracting keywords", "yake")
    import yake  # pyright: ignore[reportMissingTypeStubs]

    return yake.KeywordExtractor(lan="en", n=_LONGEST, dedupLim=0.9, top=20)


_RARE: Final = 15.5  # bits: about the 4,500th word of English and beyond
_PAIR: Final = 23.0  # bits of both words: "error message" has 24, "use data" 20
_MOST_PAIRS: Final = 12
_MOST_CONCEPTS: Final = 2
_FORMS: Final = 5  # of a word within a pair

_CLAUSE: Final = re.compile(r"[.,;:!?()\[\]\"“”→]+|\s[-–—]+\s|--")
_WORD: Final = re.compile(r"[A-Za-z][\w'’-]*")
_NEGATORS: Final = {"no": 3, "without": 3, "not": 1, "never": 1, "avoid": 1, "don't": 1, "doesn't": 2, "non": 1}
"""How many words after it a negator reaches."""

_WANTING: Final = frozenset(
    ["affect", "change", "involve", "involving", "need", "needing", "require", "requiring", "touch", "touching"]
)
"""After these it reaches their object too: "doesn't require backend changes"."""

_JUDGING: Final = frozenset(
    """accurate acceptable acceptance account accurately actual add address affect align all appropriate area aspect attempt avoid
    based belong boundary bounded bring broad bundle call case cause chain change claim clarity clean clear cleanly clearly code
    coherent cohesive combine compare comparison complete completely completeness complex component concern confine consistent
    constrain contain context correct correctly cover create criteria cross current define dependent describe detail different
    direct directly distinct document easy enable enhancement ensure entire entirely establish even evidence exact exactly example
    exclude exist existence existing explicit explicitly feature file find fix flow focus focused follow full function
    functionality fundamental generate good group happy hypothesis ideal identical identify impact implement implementation
    improvement include incorrect independent individual inform instead intentional investigate investigation involve involvement
    isolate issue item keep know large layer leave leverage limit line list live localized location logic logical make mention
    minimal minor missing mix mixing modification modify multiple name natural necessary need new number one only opposed own part
    path pattern piece place point primary primarily problem proper properly propose provide purely quick reason recognize reduce
    reference relate related relevant remain report require requirement resolve respect result right root same scenario scope
    scoped section separate separately serve set share show similar simple single size slice small solution span specific
    specifically specificity split start state stay step stories story strong structure subtask suggest support symptom target
    task technical test tie together touch trace truly try type underlying understand unify unnecessary unrelated use user valid
    value verifiable verification verify vertical well where work working wrong""".split()  # noqa: SIM905 - a list of words is read as one
)
"""Words that say how a pattern judges, or that stand in every rule about stories. They are no topic by themselves."""

_LINKING: Final = frozenset(
    ["a", "an", "at", "between", "by", "for", "from", "in", "into", "its", "of", "on", "the", "to", "with", "within"]
)
"""Words that may stand inside a pair; on the two sides of "and" there are two subjects."""

_NO_NOUN: Final = ("ly", "able", "ible", "ive", "ous", "ful", "less", "ed", "ing", "al", "ic", "est", "ant")


@dataclass(frozen=True, slots=True)
class Derived:
    """What a description is looked for by. ``concepts`` names those of ``concepts.toml`` that apply."""

    phrases: list[str]
    regex: str | None
    concepts: list[str]


@dataclass(frozen=True, slots=True)
class _Concept:
    name: str
    when: frozenset[tuple[str, ...]]
    says: tuple[str, ...]
    regex: str | None


def derive_phrases(description: str, *, names: Iterable[str] = ()) -> Derived:
    """Return the phrases, in lower case, and the expression by which ``description`` can be found in a text.

    ``names`` (of services) stay whole where they stand in it. The same description has the same phrases. Errors:
    :class:`jumar.errors.MissingExtraError`.
    """
    found: dict[str, None] = {}
    terms = domain_terms(description, names)
    whole = {term.lower() for term in terms}
    services = {name.lower() for name in names}
    for term in terms:
        if term.lower() in services or not term.isalpha() or bits(term.lower()) >= _RARE:  # ONLY, not a name
            found.update(dict.fromkeys(_of_term(term)))
    concepts: list[_Concept] = []
    pairs = 0
    for clause in _CLAUSE.split(description):
        words = [word.lower().replace("’", "'") for word in _WORD.findall(clause)]
        negated = _negated(words)
        for position, word in enumerate(words):
            if position not in negated and word not in whole and _is_rare_noun(word):
                found.update(dict.fromkeys(_of_noun(word)))
        for first, second in _neighbours(words):
            if pairs < _MOST_PAIRS and _tells(words[first], words[second]):
                pairs += 1
                found.update(dict.fromkeys(_of_pair(words[first], words[second], negated={first, second} & negated)))
        concepts += [one for one in _concepts_of(words, negated) if one not in concepts]
    concepts = concepts[:_MOST_CONCEPTS]
    for concept in concepts:
        found.update(dict.fromkeys(concept.says))
    expressions = [concept.regex for concept in concepts if concept.regex is not None]
    return Derived(list(found), "|".join(expressions) or None, [concept.name for concept in concepts])


def _negated(words: list[str]) -> frozenset[int]:
    reached: set[int] = set()
    for position, word in enumerate(words):
        if word in _NEGATORS:
            content = [at for at in range(position + 1, len(words)) if words[at] not in FUNCTION_WORDS]
            reach = _NEGATORS[word]
            if content and words[content[0]] in _WANTING:
                reach += 2
            reached.update(content[:reach])
    return frozenset(reached)


def _is_judging(word: str) -> bool:
    return word in _JUDGING or any(stem(word) == one for one in _judging_stems() if word[:3] == one[:3])


@cache
def _judging_stems() -> frozenset[str]:
    return frozenset(map(stem, _JUDGING))


def _is_rare_noun(word: str) -> bool:
    plain = word.removesuffix("'s")
    return (
        len(plain) > 2
        and plain.isalpha()
        and plain not in FUNCTION_WORDS
        and not plain.endswith(_NO_NOUN)
        and not _is_judging(plain)
        and bits(plain) >= _RARE
    )


def _of_term(term: str) -> list[str]:
    low = term.lower()
    found = [low]
    if "/" in low and "." in low.rsplit("/", 1)[-1]:
        found.append(low.rsplit("/", 1)[-1])
    if term.isupper() and term.isalpha():
        found.append(low + "s")
    return found


def _of_noun(word: str) -> list[str]:
    plain = word.removesuffix("'s")
    found = list(forms(plain))
    parts = compound(plain)
    if parts is not None:
        found += [joint.join((parts[0], form)) for form in forms(parts[1])[:2] for joint in (" ", "-")]
    return found


def _neighbours(words: list[str]) -> list[tuple[int, int]]:
    """Return the positions of content words that follow each other, with one function word between them at most."""
    content = [position for position, word in enumerate(words) if word not in FUNCTION_WORDS and len(word) > 1]
    return [
        (one, other) for one, other in pairwise(content) if other - one == 1 or (other - one == 2 and words[one + 1] in _LINKING)
    ]


def _tells(one: str, other: str) -> bool:
    if stem(one) == stem(other) or (_is_judging(one) and _is_judging(other)):
        return False
    # a judgement beside a topic says no more than the topic, unless it is the head: "service boundary", "error case"
    if _is_judging(one) or (_is_judging(other) and bits(one) < 12):
        return False
    return bits(one) + bits(other) >= _PAIR


def _of_pair(one: str, other: str, *, negated: set[int]) -> list[str]:
    """Return both words in their forms, side by side, hyphenated, and the other way round: ``handling of errors``."""
    first, second = forms(one)[:_FORMS], forms(other)[:_FORMS]
    side = [f"{left} {right}" for left in first for right in second]
    if negated:
        return [f"{negator} {phrase}" for phrase in side for negator in ("no", "without", "without any")]
    side += [f"{one}-{form}" for form in second]
    if other.endswith(("ing", "ion", "ment", "ance")) and not _is_judging(other):  # "error handling" is "handle the errors"
        nouns = first[:2]
        side += [f"{other} of {joint}{noun}" for noun in nouns for joint in ("", "the ")]
        side += [f"{verb} {joint}{noun}" for verb in second for noun in nouns for joint in ("", "the ", "an ", "my ", "all ")]
    return side


def _concepts_of(words: list[str], negated: frozenset[int]) -> list[_Concept]:
    """Return the concepts that are named outside a negation, in the order of their naming."""
    stems = [stem(word) for word in words]
    pieces = [tuple(stem(part) for part in word.split("-")) if "-" in word else (stems[at],) for at, word in enumerate(words)]
    found: dict[int, list[_Concept]] = {}
    for concept in _concepts():
        for at in range(len(words)):
            if at in negated:
                continue
            ahead = tuple(stems[at : at + 2])
            if {pieces[at], ahead, (stems[at],)} & concept.when:
                found.setdefault(at, []).append(concept)
                break
    return [concept for at in sorted(found) for concept in found[at]]


@cache
def _concepts() -> tuple[_Concept, ...]:
    document = tomllib.loads(files("jumar.judging.patterns").joinpath("concepts.toml").read_text(encoding="utf-8"))
    return tuple(
        _Concept(
            name,
            frozenset(tuple(stem(part) for part in re.split(r"[ -]", trigger)) for trigger in one["when"]),
            tuple(dict.fromkeys([*one.get("exactly", ()), *(form for phrase in one["says"] for form in _said(phrase))])),
            one.get("regex"),
        )
        for name, one in document.items()
    )


def _said(phrase: str) -> list[str]:
    """Return a phrase in the forms of its first word when that is a verb, of its last word otherwise."""
    words = phrase.split(" ")
    if len(words) == 1:
        return list(inflected(phrase)) if phrase.isalpha() else [phrase]
    found = [phrase]
    if words[1] in FUNCTION_WORDS:  # "log in", "depend on"
        found += [" ".join((form, *words[1:])) for form in inflected(words[0])[1:]]
    elif words[-1] not in FUNCTION_WORDS:
        found += [" ".join((*words[:-1], form)) for form in inflected(words[-1])[1:2]]
    return found
