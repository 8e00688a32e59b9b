"""Keywords of a text: YAKE's, and the terms of the trade that must stay whole (names, paths, identifiers)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from jumar.core.extras import need_extra

__all__ = ["domain_terms", "extract_keywords"]

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
