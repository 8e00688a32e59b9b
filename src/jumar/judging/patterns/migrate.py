"""From the narrative patterns of format 1 to patterns that can fire. Nothing of the old file is lost."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, cast

from pydantic import ValidationError

from jumar.core.text import escape
from jumar.errors import PatternLoadError
from jumar.judging.patterns.matcher import PatternMatcher
from jumar.judging.patterns.models import FORMAT_VERSION, PatternSet, PatternV1, PatternV2
from jumar.judging.patterns.phrases import derive_phrases, extract_keywords
from jumar.judging.patterns.reading import check_version, refuse_not_finite, shown

_OWN: Final = frozenset({"version", "patterns", "service_insights", "tech_validation", "scoping_rules", "last_updated"})
_NEW: Final = (
    *("keywords", "phrases", "regex", "category", "weight", "status", "frequency"),  # what migration gives
    *("accuracy", "times_fired", "learned_iter"),
)
"""Fields of format 2.0 for which a pattern of format 1 may have a value of its own."""

_ANY: Final = {
    "id": "p",
    "type": "good",
    "description": "",
    "keywords": list[str](),
    "source": "",
    "discovered_at": "1970-01-01T00:00:00Z",
}
_PATH: Final = re.compile(r"(?<![\w.:/-])/?((?:[\w.@-]+/)+)([\w.@-]+\.(\w{1,5}))(?![\w/])")
_CODE: Final = frozenset(
    """
    c cc cpp cs css go h hpp html java js json jsx kt md mjs php py pyi rb rs scss sh sql swift toml ts tsx vue yaml yml
    """.split()  # noqa: SIM905 - a list of words is read as one
)


def migrate_existing_patterns(legacy: Mapping[str, Any], *, where: str = "the legacy patterns") -> dict[str, Any]:
    """Return a file of format 1 as one of format 2.0: plain JSON values that :class:`PatternSet` accepts.

    Per pattern, type, description, example, source and ``discovered_at`` stay as they were, whatever else it has stays too, and
    it gets an id (``p_001``, …), keywords, phrases, a weight of 1 and the status ``provisional``; ``frequency`` says how many
    patterns of the file have the same type and the same words. Where a pattern has a value of its own for one of these it is
    used; one that format 2.0 does not allow, an id that another one has, and the status ``active``, which has yet to be earned,
    stand under the pattern's ``v1`` instead. A pattern that says nothing has neither keywords nor phrases, and never fires.

    ``service_insights`` stands word for word under ``tech_validation``, with the paths and extensions that it really names
    beside it, joined with a ``tech_validation`` of the file's own; ``scoping_rules`` and sections that are not known here stay as
    they are. ``where`` is the file's name for messages.

    Errors: :class:`jumar.errors.PatternLoadError` for what is no file of format 1, with the pattern and the field, for a number
    that is not finite, and where ``tech_validation`` contradicts ``service_insights``;
    :class:`jumar.errors.MissingExtraError`.
    """
    patterns = _checked(legacy, where)
    insights: Any = legacy.get("service_insights", {})
    if not isinstance(insights, dict):
        raise PatternLoadError(f"{where}: service_insights is {shown(insights)}; give an object with a list for each service")
    services = [name for name in cast("dict[str, Any]", insights) if name.strip()]
    said = Counter(_wording(pattern) for pattern in patterns)
    document: dict[str, Any] = {
        "version": FORMAT_VERSION,
        "last_updated": legacy.get("last_updated"),
        "patterns": [
            _migrated(pattern, name, services, said[_wording(pattern)])
            for name, pattern in zip(_names(patterns), patterns, strict=True)
        ],
        "tech_validation": _joined(
            legacy.get("tech_validation") or {}, _technical(cast("dict[str, Any]", insights)), f"{where}: tech_validation"
        ),
        "scoping_rules": legacy.get("scoping_rules", []),
        **{name: value for name, value in legacy.items() if name not in _OWN},
    }
    try:
        PatternSet.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise PatternLoadError(f"{where}: {escape(field)} is {shown(first['input'])}: {first['msg']}") from error
    return document


def _checked(legacy: Any, where: str) -> list[dict[str, Any]]:
    if not isinstance(legacy, dict):
        raise PatternLoadError(f"{where}: not a file of format 1: {shown(legacy)} instead of an object with patterns")
    document = cast("dict[str, Any]", legacy)
    given = document.get("version", "1.0")
    version = str(given) if isinstance(given, str | int | float) and not isinstance(given, bool) else ""
    if version.split(".")[0] != "1":
        check_version({"version": version}, where)
        if version in {"2", FORMAT_VERSION}:
            raise PatternLoadError(
                f"{where}: is of format {version} already, there is nothing to migrate; "
                "`jumar patterns check` says whether it is valid"
            )
        raise PatternLoadError(f"{where}: version is {shown(given)}; what can be migrated is of version 1.0")
    refuse_not_finite(document, where)
    found: Any = document.get("patterns")
    if not isinstance(found, list):
        raise PatternLoadError(f"{where}: 'patterns' is {'missing' if found is None else shown(found)}; give a list")
    for number, pattern in enumerate(cast("list[Any]", found), start=1):
        try:
            PatternV1.model_validate(pattern)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            field = ".".join(map(str, first["loc"])) or "it"
            what = "is missing" if first["type"] == "missing" else f"is {shown(first['input'])}: {first['msg']}"
            raise PatternLoadError(f"{where}: pattern {number}: {escape(field)} {what}") from error
    return cast("list[dict[str, Any]]", found)


def _wording(pattern: Mapping[str, Any]) -> tuple[str, str]:
    return pattern["type"], " ".join(re.findall(r"\w+", pattern["description"].lower()))


def _names(patterns: list[dict[str, Any]]) -> list[str]:
    """Return an id for each pattern: its own, or one by its place that no other has."""
    own = [pattern.get("id") for pattern in patterns]
    taken = {name for name in own if isinstance(name, str)}
    used: set[str] = set()
    found: list[str] = []
    for number, given in enumerate(own, start=1):
        name = given if isinstance(given, str) else ""
        if not name.strip() or name in used:
            name = f"p_{number:03d}"
            while name in taken:
                name += "_"
            taken.add(name)
        used.add(name)
        found.append(name)
    return found


def _migrated(pattern: dict[str, Any], name: str, services: list[str], frequency: int) -> dict[str, Any]:
    description: str = pattern["description"]
    derived = derive_phrases(description, names=services)
    keywords = extract_keywords(description, names=services)
    # without phrases it would fire on single keywords, and those of a sentence about nothing in particular are common words
    whole = description.strip().lower()
    found: dict[str, Any] = {
        "keywords": keywords,
        "phrases": derived.phrases or [keyword for keyword in keywords if " " in keyword] or ([whole] if whole else []),
        "regex": derived.regex,
        "category": ", ".join(derived.concepts) or None,
        "weight": 1.0,
        "status": "provisional",
        "frequency": frequency,
    }
    own = {field: pattern[field] for field in _NEW if pattern.get(field) not in (None, "", [])}
    usable = {field: value for field, value in own.items() if _is_usable(field, value)}
    aside = {field: value for field, value in own.items() if field not in usable}
    if "id" in pattern and pattern["id"] != name:
        aside["id"] = pattern["id"]
    rest = {field: value for field, value in pattern.items() if field not in _NEW}
    key = "v1"
    while key in rest:
        key += "_"
    return {
        "source": "scoping_validation",
        **rest,
        "id": name,
        "type": "good" if pattern["type"] == "good_pattern" else "bad",
        **found,
        **usable,
        **({key: aside} if aside else {}),
    }


def _is_usable(field: str, value: Any) -> bool:
    if field == "status" and value == "active":
        return False
    if field in {"keywords", "phrases"} and not any(isinstance(one, str) and one.strip() for one in value):
        return False
    try:
        # as JSON, in which a date is a text, and a number in a text is none
        one = PatternV2.model_validate_json(json.dumps({**_ANY, field: value}), strict=True)
        if field == "regex":
            PatternMatcher([one])
    except (ValidationError, PatternLoadError):
        return False
    return True


def _joined(own: Any, found: Any, place: str) -> Any:
    """Return both values as one. Errors: :class:`PatternLoadError` when they contradict each other."""
    if own == found or not found:
        return own
    if own is None:
        return found
    if isinstance(own, dict) and isinstance(found, dict):
        one, other = cast("dict[str, Any]", own), cast("dict[str, Any]", found)
        shared = {key: _joined(one[key], other[key], f"{place}.{escape(key)}") for key in one if key in other}
        return {**one, **other, **shared}
    if isinstance(own, list) and isinstance(found, list):
        known = cast("list[Any]", own)
        return [*known, *(each for each in cast("list[Any]", found) if each not in known)]
    said = shown(cast("object", own)), shown(cast("object", found))
    raise PatternLoadError(f"{place} is {said[0]}, and service_insights says {said[1]}; keep one of the two")


def _technical(insights: dict[str, Any]) -> dict[str, Any]:
    """Return the insights, and the beginnings of paths by service and the extensions that their findings name."""
    paths: dict[str, Counter[str]] = {}
    endings: Counter[str] = Counter()
    names = {name.lower(): name for name in insights}
    for said in _texts(insights):
        for folders, _, ending in _PATH.findall(said):
            if ending.lower() not in _CODE:
                continue
            endings[f".{ending.lower()}"] += 1
            service, _, below = folders.partition("/")
            first = below.partition("/")[0]
            if service.lower() in names and first:
                paths.setdefault(names[service.lower()], Counter())[f"{first}/"] += 1
    return {
        "valid_repo_paths": {name: _by_count(found) for name, found in sorted(paths.items())},
        "valid_extensions": _by_count(endings),
        "service_insights": insights,
    }


def _by_count(found: Counter[str]) -> list[str]:
    return [name for name, _ in sorted(found.items(), key=lambda item: (-item[1], item[0]))]


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    below = list(cast("dict[str, Any]", value).values()) if isinstance(value, dict) else value
    return [text for one in cast("list[Any]", below) for text in _texts(one)] if isinstance(below, list) else []
