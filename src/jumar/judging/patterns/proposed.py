"""A proposal's pattern, in whichever form it was handed in, as one that can fire."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, cast

from pydantic import ValidationError

from jumar.core.text import escape
from jumar.errors import PatternLoadError
from jumar.judging.patterns.matcher import PatternMatcher, folded, literals
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


GOOD_FROM: Final = 4.0
"""The gestalt from which the expensive judge finds an item good: the first design's target of quality."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationRule:
    """When a provisional pattern is committed or rejected. Errors: ValueError for a value that is out of range.

    Committed: ``commit_tested`` items were tested and at least ``commit_accuracy`` of them agreed. Rejected:
    ``reject_tested``, and less than ``reject_accuracy``.
    """

    commit_tested: int = 10
    commit_accuracy: float = 0.7
    reject_tested: int = 5
    reject_accuracy: float = 0.3

    def __post_init__(self) -> None:
        for name in ("commit_tested", "reject_tested"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} = {getattr(self, name)} should be at least 1")
        if not (0 <= self.reject_accuracy <= self.commit_accuracy <= 1):
            raise ValueError(
                f"reject_accuracy = {self.reject_accuracy} and commit_accuracy = {self.commit_accuracy} should be from 0 to 1, "
                "the first one not above the other"
            )

    def decide(self, proposal: PatternProposal) -> PatternProposal:
        """Return a provisional ``proposal`` with the status that its counters earn it; any other as it is."""
        if proposal.status != "provisional":
            return proposal
        if proposal.stories_tested >= self.commit_tested and proposal.accuracy >= self.commit_accuracy:
            return proposal.model_copy(update={"status": "validated"})
        if proposal.stories_tested >= self.reject_tested and proposal.accuracy < self.reject_accuracy:
            return proposal.model_copy(update={"status": "rejected"})
        return proposal


def signal_matches_expensive(kind: str, gestalt: float, *, good_from: float = GOOD_FROM) -> bool:
    """Return whether the expensive judge agrees with the signal of a ``good`` or ``bad`` pattern.

    A good one says that the item is good, which the judge does from ``good_from`` on; a bad one says that it is not.
    """
    return (gestalt >= good_from) == (kind == "good")


def validate_provisional_patterns(
    patterns: Iterable[PatternProposal | Mapping[str, Any]],
    stories: Sequence[Any],
    expensive_results: Sequence[Any],
    *,
    rule: ValidationRule | None = None,
    good_from: float = GOOD_FROM,
) -> list[PatternProposal]:
    """Return the proposals with their counters moved on by these items, and what became of them.

    Each provisional one is tested on each item that has a score. Its prediction is correct when *fired* and *the judge agrees*
    are both true or both false: it fired on an item that the judge finds as the pattern says (:func:`signal_matches_expensive`),
    or it did not fire on one that the judge finds otherwise. The pattern sees the item's text only; the judge's words play no
    part.

    ``stories`` are items, stories or mappings with their fields; ``expensive_results`` are results or mappings with
    ``gestalt``. They belong together by ``story_id`` and ``id`` where every one has it, else by place, as far as the shorter
    list goes. A result without a finite gestalt of at least 1 (an unscored item) tests nothing. Proposals are models or
    mappings; those that are given are not changed.

    Errors: :class:`jumar.errors.PatternLoadError` for a proposal whose pattern could never fire, ValueError for one that is
    none, :class:`jumar.errors.MissingExtraError`.
    """
    proposals = [
        pattern if isinstance(pattern, PatternProposal) else PatternProposal.model_validate(pattern) for pattern in patterns
    ]
    pairs = _paired(stories, expensive_results)
    tested = [place for place, one in enumerate(proposals) if one.status == "provisional"]
    kinds: list[str] = []
    fired_good: list[int] = []
    fired_bad: list[int] = []
    if tested and pairs:
        made = [as_pattern(proposals[place]).model_copy(update={"id": str(place)}) for place in tested]
        kinds = [one.type for one in made]
        fired_good, fired_bad = _counts(PatternMatcher(made), pairs, good_from, len(made))
    good = sum(gestalt >= good_from for _, gestalt in pairs)
    found = list(proposals)
    for number, place in enumerate(tested):
        proposal = proposals[place]
        if pairs:
            right, wrong, silent = (
                (fired_good[number], fired_bad[number], len(pairs) - good)
                if kinds[number] == "good"
                else (fired_bad[number], fired_good[number], good)
            )
            # of the items on which the signal would be wrong, those on which it did not fire
            correct = right + silent - wrong
            proposal = proposal.model_copy(
                update={
                    "stories_tested": proposal.stories_tested + len(pairs),
                    "correct_predictions": proposal.correct_predictions + correct,
                }
            )
        found[place] = (rule or ValidationRule()).decide(proposal)
    return found


def _counts(
    matcher: PatternMatcher, pairs: Sequence[tuple[str, float]], good_from: float, size: int
) -> tuple[list[int], list[int]]:
    """Return on how many good items each pattern fired, and on how many others."""
    on_good, on_bad = [0] * size, [0] * size
    for text, gestalt in pairs:
        counts = on_good if gestalt >= good_from else on_bad
        for index in matcher.fired(text):
            counts[index] += 1
    return on_good, on_bad


def _paired(stories: Sequence[Any], results: Sequence[Any]) -> list[tuple[str, float]]:
    """Return text and gestalt of the items that have both."""
    names = [_get(story, "id") for story in stories]
    ids = [_get(result, "story_id") for result in results]
    if all(one is not None for one in (*names, *ids)) and len(set(names)) == len(names):
        known = {str(name): story for name, story in zip(names, stories, strict=True)}
        both = [(known[str(one)], result) for one, result in zip(ids, results, strict=True) if str(one) in known]
    else:
        both = list(zip(stories, results, strict=False))
    return [(text_of(story), float(score)) for story, result in both if _is_score(score := _get(result, "gestalt"))]


def text_of(story: Any) -> str:
    """Return what patterns see of an item, a story or a mapping: ``text``, or title, description and criteria, a line each."""
    text = _get(story, "text")
    if isinstance(text, str):
        return text
    criteria: Any = _get(story, "acceptance_criteria") or ()
    parts = [_get(story, "title"), _get(story, "description"), *criteria]
    return "\n".join(str(part) for part in parts if part)


def _is_score(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 1.0


def _get(record: Any, name: str) -> Any:
    return cast("Mapping[str, Any]", record).get(name) if isinstance(record, Mapping) else getattr(record, name, None)
