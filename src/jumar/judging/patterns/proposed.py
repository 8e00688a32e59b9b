"""A proposal's pattern, in whichever form it was handed in, as one that can fire."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, cast

from pydantic import ValidationError

from jumar.core.text import escape
from jumar.errors import PatternLoadError
from jumar.judging.patterns.matcher import folded, literals
from jumar.judging.patterns.models import PatternProposal, PatternStatus, PatternV2

UNDATED: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""The date of a pattern whose date nobody gave: functions without a clock have no other."""

GOOD_CATEGORIES: Final = ("good_story_indicators", "value_phrases", "valid_tech_paths", "good_indicators", "tech_paths")
BAD_CATEGORIES: Final = ("bad_story_indicators", "bad_indicators")

_TYPES: Final = {"good_pattern": "good", "bad_pattern": "bad", "good": "good", "bad": "bad"}


def pattern_key(pattern: PatternV2) -> str:
    """Return what a pattern says, as one text: its type, its phrases as they are compared, its expression, its feature."""
    said = sorted({folded(one) for one in literals(pattern)})
    more = [f"/{pattern.regex}/"] if pattern.regex is not None else []
    more += [f"{pattern.feature} >= {pattern.at_least!r}"] if pattern.feature is not None else []
    return "\x1f".join((pattern.type, *said, *more))


def pattern_id(pattern: PatternV2) -> str:
    """Return ``p_`` and twelve hexadecimal digits of the hash of :func:`pattern_key`: the same pattern has the same id."""
    return "p_" + hashlib.sha256(pattern_key(pattern).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def as_pattern(
    proposal: PatternProposal | Mapping[str, Any], *, status: PatternStatus = "provisional", at: datetime | None = None
) -> PatternV2:
    """Return the pattern that ``proposal`` (or the mapping inside of one) proposes.

    Next to a :class:`PatternV2`'s own fields ``pattern`` and ``phrase`` are read, a phrase that stands alone, and ``category``,
    which says the type where ``type`` does not (good where neither does). What is missing is made: the id from what the pattern
    says (:func:`pattern_id`), the description from its phrases. ``at`` is its date where it has none; by default 1970. Errors:
    :class:`jumar.errors.PatternLoadError` for one that could never fire, or whose values are out of bounds.
    """
    given = proposal.pattern if isinstance(proposal, PatternProposal) else proposal
    found = {name: value for name, value in given.items() if name not in {"pattern", "phrase", "rationale"} and value is not None}
    category = found.get("category") or (proposal.category if isinstance(proposal, PatternProposal) else None)
    said = given.get("pattern") or given.get("phrase")
    phrases: list[Any] = _listed(found.get("phrases"))
    if said is not None and said not in phrases:
        phrases.append(said)
    keywords = _listed(found.get("keywords")) or phrases
    kind = found.get("type") or ("bad" if category in BAD_CATEGORIES or "negative" in str(category) else "good")
    wanted = {
        "source": "proposed",
        "description": ", ".join(str(keyword) for keyword in keywords) or str(found.get("regex", "")),
        "discovered_at": at or UNDATED,
        **found,
        "id": found.get("id") or "p_new",
        "type": _TYPES.get(str(kind), kind),
        "category": category,
        "phrases": phrases,
        "keywords": keywords,
        "status": status,
    }
    try:
        pattern = PatternV2.model_validate(wanted)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise PatternLoadError(f"a proposed pattern is none: '{where}': {escape(str(first['msg']))}") from None
    if not literals(pattern) and pattern.regex is None and pattern.feature is None:
        raise PatternLoadError(f"the proposed pattern '{escape(pattern.description[:80])}' has neither phrases nor an expression")
    return pattern if found.get("id") else pattern.model_copy(update={"id": pattern_id(pattern)})


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(cast("list[Any]", value)) if isinstance(value, list | tuple) else [value]
