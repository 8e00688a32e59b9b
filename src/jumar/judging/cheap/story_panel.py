"""The five components of a story's score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from jumar.judging.cheap.criteria import count_criteria, criteria_scorer
from jumar.judging.cheap.detectors import Judged
from jumar.judging.cheap.invest import Known, sub_scores
from jumar.judging.cheap.scope import scope_scorer
from jumar.judging.cheap.technical import technical_scorer
from jumar.judging.cheap.title import title_scorer
from jumar.judging.cheap.value import value_scorer
from jumar.judging.items.item import Item
from jumar.judging.models import Story
from jumar.judging.patterns.models import TechValidation, ValuePhrase
from jumar.judging.rubric import StoryRubric

__all__ = ["StoryPanel"]


class StoryPanel:
    """Scores stories by a rubric and what a patterns file knows about code and user value."""

    names: ClassVar[tuple[str, ...]] = StoryRubric.COMPONENTS
    codes: ClassVar[tuple[str, ...]] = ("good_title", "good_ac", "good_tech", "clear_user_value", "appropriate_scope")

    def __init__(self, rubric: StoryRubric, tech: TechValidation, phrases: Sequence[ValuePhrase]) -> None:
        self._title = title_scorer(rubric.title_quality)
        self._criteria = criteria_scorer(rubric.ac_count)
        self._technical = technical_scorer(rubric.tech_specificity, tech)
        self._value = value_scorer(rubric.user_focus, phrases)
        self._scope = scope_scorer(rubric.scope_check)
        self._bounds = rubric.scope_check

    def mute(self, item: Item) -> str | None:
        """Return why there is nothing to judge, None where there is."""
        return _mute(item.story, 0 if item.story is None else count_criteria(item.story.acceptance_criteria))

    def scores(self, item: Item) -> tuple[float | None, ...] | str:
        """Return the components' scores in the order of ``names``, or why there are none."""
        story = item.story
        count = 0 if story is None else count_criteria(story.acceptance_criteria)
        mute = _mute(story, count)
        if mute is not None or story is None:
            return mute or ""
        return (
            self._title(story.title),
            self._criteria(count),
            self._technical(story.technical_area),
            self._value(story.description.lower()),
            self._scope(len(story.description), count),
        )

    def judged(self, item: Item, scores: Sequence[float | None]) -> Judged:
        """Return what named indicators rest on."""
        del item
        return Judged(scores[2] or 0.0, scores[3] or 0.0, scores[4])

    def parts(self, item: Item, scores: Sequence[float | None]) -> dict[str, float]:
        """Return the sub-scores by name."""
        if item.story is None:
            return {}
        title, count, area, value, scope = (score or 0.0 for score in scores)
        criteria = item.story.acceptance_criteria
        if count_criteria(criteria) < len(criteria):
            criteria = [one for one in criteria if one and not one.isspace()]
        fits = len(item.story.description) <= self._bounds.longest and len(criteria) <= self._bounds.most_criteria
        known = Known(title, count, area, value, scope, len(criteria), 1.0 if fits else 0.0)
        return sub_scores(item.text.lower(), criteria, known)


def _mute(story: Story | None, criteria: int) -> str | None:
    if story is None:
        return "it is no story: title and acceptance_criteria are missing"
    if criteria or story.description.strip() or story.title.strip() or (story.technical_area or "").strip():
        return None
    return "title, description, criteria and technical area are all empty"
