"""The lines of ``--per-item``, of a chunk at a time: the bytes of ``json.dumps``, without an object for each contribution."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Sequence
from json.encoder import encode_basestring
from typing import Any, Final

from jumar.judging.cheap.evaluator import CheapModeEvaluator
from jumar.judging.cheap.scoring import CheapReading
from jumar.judging.items.sources import quick_json
from jumar.judging.models import Unscored

_ODD: Final = ("e", "n", "0.0000")
"""What is in numbers that Python may write otherwise: those below 0.0001 and from 1e16 on, and what is no number."""


def number_texts(values: Sequence[float]) -> list[str]:
    """Return each number as ``json.dumps`` writes it. Errors: ValueError for one that is not finite."""
    quick = quick_json()
    if quick is None or not values:
        return json.dumps(values, allow_nan=False)[1:-1].split(", ")
    whole: str = quick.dumps(values).decode()
    texts = whole[1:-1].split(",")
    if not _is_odd(whole):
        return texts
    return [json.dumps(value, allow_nan=False) if _is_odd(text) else text for value, text in zip(values, texts, strict=True)]


def _is_odd(text: str) -> bool:
    return any(sign in text for sign in _ODD)


@functools.lru_cache(1 << 16)  # ids and descriptions of patterns, and codes
def _quoted(text: str) -> str:
    return _template(text)


def _template(text: str) -> str:
    """Return JSON of a text in which numbers will be put for ``%s``."""
    return encode_basestring(text).replace("%", "%%")


@functools.lru_cache(1 << 16)
def _contribution(name: str) -> str:
    return f'{{"name": {_quoted(name)}, "points": %s, "share": %s}}'


@functools.lru_cache(64)
def _named(names: tuple[str, ...]) -> str:
    return "{" + ", ".join(f"{_quoted(name)}: %s" for name in names) + "}"


def row_lines(evaluator: CheapModeEvaluator, readings: Iterable[CheapReading | Unscored]) -> str:
    """Return a line for each reading, each with its end."""
    numbers: list[float] = []
    put: Callable[[float], None] = numbers.append
    rows = [_unscored(one) if isinstance(one, Unscored) else _scored(one, evaluator, put, numbers.extend) for one in readings]
    return "".join(rows) % tuple(number_texts(numbers)) if numbers else "".join(rows) % ()


def _scored(
    reading: CheapReading,
    evaluator: CheapModeEvaluator,
    put: Callable[[float], None],
    put_all: Callable[[Iterable[float]], None],
) -> str:
    details = evaluator.details(reading)
    put(reading.gestalt)
    put(reading.raw)
    given: list[str] = []
    for name, points, share in details.contributions:
        given.append(_contribution(name))
        put(points)
        put(share)
    scores = details.sub_scores
    put_all(scores.values())
    return (
        f'{{"id": {_template(reading.item.id)}, "cheap": %s, "expensive": null, "gap": null, '
        f'"reasons": [{", ".join(map(_quoted, details.reasons))}], '
        f'"patterns_matched": [{", ".join(map(_quoted, details.matched))}], "patterns_missed": [], "raw_score": %s, '
        f'"contributions": [{", ".join(given)}], "sub_scores": {_named(tuple(scores))}, "unscored": null}}\n'
    )


def _unscored(result: Unscored) -> str:
    row: dict[str, Any] = {
        "id": result.story_id,
        "cheap": None,
        "expensive": None,
        "gap": None,
        "reasons": [],
        "patterns_matched": [],
        "patterns_missed": [],
        "raw_score": None,
        "contributions": [],
        "sub_scores": {},
        "unscored": {"kind": result.kind, "message": result.message},
    }
    return json.dumps(row, ensure_ascii=False).replace("%", "%%") + "\n"
