"""The cheap judge: a rubric and patterns; no network, no clock, no randomness. Same input, same scores, to the last bit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from jumar.errors import ConfigError
from jumar.judging.cheap.evidence import PatternEvidence
from jumar.judging.cheap.panels import StoryPanel, TextPanel
from jumar.judging.cheap.scoring import AppliedScorecard, CheapReading, CheapScorer, Details
from jumar.judging.items.item import Item, as_item, as_story
from jumar.judging.models import CheapModeResult, Story, Unscored
from jumar.judging.patterns.coverage import Coverage, count_coverage
from jumar.judging.patterns.matcher import MATCHED
from jumar.judging.patterns.models import PatternSet, Scorecard
from jumar.judging.patterns.storage import load_pattern_set
from jumar.judging.rubric import Rubric, StoryRubric, TextRubric, builtin_rubric

AnyRubric = StoryRubric | TextRubric
RubricChoice = AnyRubric | Literal["story", "text"] | None


class CheapModeEvaluator:
    """Scores items by a rubric and a set of patterns, from 1 to 5.

    ``patterns_path`` is a patterns file, a :class:`jumar.judging.patterns.PatternSet`, or None for the rubric alone.
    ``rubric`` is ``"story"``, ``"text"`` or a rubric; None takes ``story`` for stories and ``text`` for other items. Weights,
    value phrases and paths of the patterns count before those of the rubric; :attr:`unused_weights` are those that no rubric
    here knows.

    A set with a ``calibration`` of the kind ``"scorecard"`` scores by its patterns alone: :attr:`card` is it, None where there is
    none. It says which kind of items it was fitted on; one of the other kind is ``Unscored``.

    Errors: :class:`jumar.errors.PatternLoadError` for a file that is missing or damaged, or a feature that nobody knows;
    :class:`jumar.errors.ConfigError` for a rubric of another kind than the set is calibrated for.
    """

    def __init__(self, patterns_path: str | Path | PatternSet | None = None, *, rubric: RubricChoice = None) -> None:
        given = patterns_path
        self.patterns = load_pattern_set(given) if isinstance(given, str | Path) else given
        self.rubrics = _rubrics(rubric)
        known = self.patterns or PatternSet(version="2.0", patterns=[])
        self.evidence = PatternEvidence(known) if known.patterns else None
        weights = known.scoring_weights
        self.card: Scorecard | None = known.scorecard()
        _check_kind(self.card, self.rubrics, chosen=rubric is not None)
        applied = None if self.card is None else AppliedScorecard(self.card, self.evidence)
        scorers: dict[str, CheapScorer] = {}
        for one in self.rubrics:
            panel = (
                StoryPanel(one, known.tech_validation, known.value_phrases)
                if isinstance(one, StoryRubric)
                else TextPanel(one, known.value_phrases)
            )
            scorers[one.kind] = CheapScorer(one, panel, self.evidence, weights, applied)
        self._of_stories = scorers.get("story") or scorers["text"]
        self._of_texts = scorers.get("text") or scorers["story"]
        used = {name for scorer in scorers.values() for name in scorer.weights}
        self.unused_weights = tuple(name for name in weights if name not in used)

    def read(self, item: Item) -> CheapReading | Unscored:
        """Return an item's score without the details of a report, which take longer than the score; :meth:`result` adds them."""
        return (self._of_texts if item.story is None else self._of_stories).read(item)

    def result(self, reading: CheapReading, *, parts: bool = True, most: int | None = None) -> CheapModeResult:
        """Return a reading with what each component and pattern gave, and the sub-scores unless ``parts`` is False.

        ``most``: only so many of what was given, those that moved the score most.
        """
        return (self._of_texts if reading.item.story is None else self._of_stories).result(reading, parts=parts, most=most)

    def details(self, reading: CheapReading) -> Details:
        """Return what :meth:`result` says besides the score, as it is counted."""
        return (self._of_texts if reading.item.story is None else self._of_stories).details(reading)

    def evaluate_item(self, item: Item, *, parts: bool = True) -> CheapModeResult | Unscored:
        """Return an item's score with everything that led to it, or ``Unscored`` when there is nothing to judge."""
        reading = self.read(item)
        return reading if isinstance(reading, Unscored) else self.result(reading, parts=parts)

    def evaluate(
        self, items: Iterable[Item | Story | Mapping[str, Any]], *, parts: bool = True
    ) -> Iterator[CheapModeResult | Unscored]:
        """Yield a result for each item, in their order; nothing is kept.

        An item is what :func:`jumar.judging.items.item.as_item` takes. Without an id it is called ``item-N``, counted from 1.
        Sub-scores take about as long as the score itself; ``parts=False`` leaves them out. Errors:
        :class:`jumar.errors.ItemError` for a mapping that is no item.
        """
        return (self.evaluate_item(as_item(item, number), parts=parts) for number, item in enumerate(items, 1))

    def evaluate_story(self, story: Mapping[str, Any] | Story) -> CheapModeResult | Unscored:
        """Return a story's score. Of a mapping only what is there counts: a missing field is empty.

        Errors: :class:`jumar.errors.ItemError` for a field of the wrong type.
        """
        return self.evaluate_item(Item.of(story if isinstance(story, Story) else as_story(story, "story")))


def evaluate_cheap(
    stories: Sequence[Mapping[str, Any] | Story],
    patterns_path: str | Path | PatternSet | None = None,
    *,
    rubric: RubricChoice = None,
) -> dict[str, Any]:
    """Return the scores of stories as one document, of plain values.

    ``mode`` is ``"cheap"``; ``gestalt_avg`` the mean in full precision, None when nothing was scored; ``story_count`` is of all;
    ``individual_scores`` a dictionary a scored story, in their order, with the fields of :class:`CheapModeResult`; ``unscored``
    the others with their kind and message. A story without an id is called ``story-N``, counted from 1.
    Errors: those of :class:`CheapModeEvaluator` and of :meth:`CheapModeEvaluator.evaluate_story`.
    """
    evaluator = CheapModeEvaluator(patterns_path, rubric=rubric)
    made = (
        story if isinstance(story, Story) else as_story({"id": f"story-{number}", **story}, f"story {number}")
        for number, story in enumerate(stories, 1)
    )
    results = list(evaluator.evaluate(made))
    scored = [result for result in results if isinstance(result, CheapModeResult)]
    return {
        "mode": "cheap",
        "gestalt_avg": sum(result.gestalt for result in scored) / len(scored) if scored else None,
        "story_count": len(stories),
        "individual_scores": [result.model_dump() for result in scored],
        "unscored": [
            result.model_dump(include={"story_id", "kind", "message"}) for result in results if isinstance(result, Unscored)
        ],
    }


def measure_items(patterns: PatternSet, items: Iterable[Item]) -> Coverage:
    """Return what ``patterns`` do on ``items``: what fires is what the cheap judge reports; nothing on what it cannot score.

    Errors: those of :class:`CheapModeEvaluator`; :class:`jumar.errors.MissingExtraError`.
    """
    evaluator = CheapModeEvaluator(patterns)
    live = [index for index, pattern in enumerate(patterns.patterns) if pattern.status in MATCHED]
    readings = map(evaluator.read, items)
    return count_coverage(
        patterns, ([] if isinstance(each, Unscored) else [live[index] for index in each.fired] for each in readings)
    )


def _rubrics(given: RubricChoice) -> tuple[AnyRubric, ...]:
    if given is None:
        return builtin_rubric("story"), builtin_rubric("text")
    return (given if isinstance(given, Rubric) else builtin_rubric(given),)


def _check_kind(card: Scorecard | None, rubrics: Sequence[AnyRubric], *, chosen: bool) -> None:
    if card is None or card.rubric is None or not chosen:
        return
    for rubric in rubrics:
        if rubric.kind != card.rubric:
            raise ConfigError(
                f"the patterns are calibrated for items of the kind '{card.rubric}', and the rubric '{rubric.name}' is of the "
                f"kind '{rubric.kind}': take a rubric of the kind '{card.rubric}', or patterns that were learned with this one"
            )
