"""The first design's cheap evaluator, told again: the slow and obvious reference of the story rubric."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["SEED_ACTIONS", "SEED_PHRASES", "components_as_first_designed", "score_as_first_designed"]

SEED_ACTIONS = ("add", "fix", "update", "improve", "enable", "implement")
SEED_PHRASES = ("user can", "users will", "allows", "enables", "improves", "reduces", "saves", "prevents")


def _title(title: str) -> float:
    begins = [word for word in SEED_ACTIONS if title.lower()[: len(word)] == word]
    return float(0 < len(title) <= 80 and bool(begins))


def _criteria(count: int) -> float:
    table = {0: 0.0, 1: 0.2, 2: 0.6} | dict.fromkeys(range(3, 8), 1.0) | dict.fromkeys(range(8, 11), 0.6)
    return table.get(count, 0.3)


def _area(area: str, paths: Mapping[str, Sequence[str]]) -> float:
    if area == "":
        return 0.0
    repository = next((name for name in paths if name in area), None)
    if repository is not None:
        return 1.0 if [one for one in paths[repository] if one in area] else 0.5
    return 0.7 if re.findall(r"\w+/\w+\.(?:py|ts|tsx|js|jsx)", area) else 0.2


def score_as_first_designed(story: Mapping[str, Any], paths: Mapping[str, Sequence[str]] | None = None) -> dict[str, Any]:
    """Return raw score, gestalt (not rounded) and reasons."""
    scores = components_as_first_designed(story, paths)
    raw = 0.0
    for score in scores.values():
        raw += score
    return {
        "raw_score": raw,
        "gestalt": 1.0 + (raw / 5.0) * 4.0,
        "reasons": [name for name, score in scores.items() if score > 0.5],
    }


def components_as_first_designed(story: Mapping[str, Any], paths: Mapping[str, Sequence[str]] | None = None) -> dict[str, float]:
    """Return the score of each component, by the reason that it gives."""
    description, criteria = story.get("description", ""), story.get("acceptance_criteria", [])
    return {
        "good_title": _title(story.get("title", "")),
        "good_ac": _criteria(len(criteria)),
        "good_tech": _area(story.get("technical_area") or "", paths or {}),
        "clear_user_value": float(any(phrase in description.lower() for phrase in SEED_PHRASES)),
        "appropriate_scope": float(50 <= len(description) <= 2000 and 2 <= len(criteria) <= 10),
    }
