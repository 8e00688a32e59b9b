"""The cheap judge: a rubric and patterns; no network, no clock, no randomness. Same input, same scores, to the last bit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from jumar.errors import ConfigError, ItemError
from jumar.judging.cheap.evidence import PatternEvidence
from jumar.judging.cheap.panels import StoryPanel, TextPanel
from jumar.judging.cheap.scoring import AppliedScorecard, CheapReading, CheapScorer
from jumar.judging.items.item import Item
from jumar.judging.models import CheapModeResult, Story, Unscored
from jumar.judging.patterns.models import PatternSet, Scorecard
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
        self.patterns = _pattern_set(patterns_path)
        self.rubrics = _rubrics(rubric)
        known = self.patterns or PatternSet(version="2.0", patterns=[])
        self.evidence = PatternEvidence(known) if known.patterns else None
        weights = known.scoring_weights
        self.card: Scorecard | None = known.scorecard()
        _check_kind(self.card, self.rubrics, chosen=rubric is not None)
        applied = None if self.card is None else AppliedScorecard(self.card, self.evidence)
        scorers = {rubric.kind: _scorer(rubric, known, self.evidence, applied) for rubric in self.rubrics}
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

    def evaluate_item(self, item: Item, *, parts: bool = True) -> CheapModeResult | Unscored:
        """Return an item's score with everything that led to it, or ``Unscored`` when there is nothing to judge."""
        reading = self.read(item)
        return reading if isinstance(reading, Unscored) else self.result(reading, parts=parts)

    def evaluate(
        self, items: Iterable[Item | Story | Mapping[str, Any]], *, parts: bool = True
    ) -> Iterator[CheapModeResult | Unscored]:
        """Yield a result for each item, in their order; nothing is kept.

        An item is an :class:`Item`, a :class:`Story`, or a mapping: one with ``text`` and, where they are known, ``id``,
        ``prompt``, ``context`` and ``group``, or else the fields of a story. Without an id it is called ``item-N``, counted from
        1. Sub-scores take about as long as the score itself; ``parts=False`` leaves them out. Errors:
        :class:`jumar.errors.ItemError` for a mapping that is neither, and for a field of the wrong type.
        """
        return (self.evaluate_item(_item(item, number), parts=parts) for number, item in enumerate(items, 1))

    def evaluate_story(self, story: Mapping[str, Any] | Story) -> CheapModeResult | Unscored:
        """Return a story's score. Of a mapping only what is there counts: a missing field is empty.

        Errors: :class:`jumar.errors.ItemError` for a field of the wrong type.
        """
        return self.evaluate_item(Item.of(story if isinstance(story, Story) else _story(story, 0)))


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
    items = (Item.of(one if isinstance(one, Story) else _story(one, number)) for number, one in enumerate(stories, 1))
    results = list(evaluator.evaluate(items))
    scored = [result for result in results if isinstance(result, CheapModeResult)]
    return {
        "mode": "cheap",
        "gestalt_avg": sum(one.gestalt for one in scored) / len(scored) if scored else None,
        "story_count": len(stories),
        "individual_scores": [one.model_dump() for one in scored],
        "unscored": [
            result.model_dump(include={"story_id", "kind", "message"}) for result in results if isinstance(result, Unscored)
        ],
    }


def _item(given: Item | Story | Mapping[str, Any], number: int) -> Item:
    if isinstance(given, Item):
        return given
    if isinstance(given, Story):
        return Item.of(given)
    if "text" not in given:
        if not {"title", "description", "acceptance_criteria"} & given.keys():
            raise ItemError(f"item {number}: it has no 'text', and none of a story's title, description and acceptance_criteria")
        return Item.of(_story({"id": f"item-{number}", **given}, number), group=_text(given, "group", number) or None)
    texts = {name: _text(given, name, number) for name in ("id", "text", "prompt", "context", "group")}
    named = texts["id"] or f"item-{number}"
    return Item(named, texts["text"], prompt=texts["prompt"], context=texts["context"], group=texts["group"] or None)


def _text(given: Mapping[str, Any], name: str, number: int) -> str:
    value = given.get(name)
    if value is not None and not isinstance(value, str):
        raise ItemError(f"item {number}: {name}: give a text, not {type(value).__name__}")
    return value or ""


def _pattern_set(given: str | Path | PatternSet | None) -> PatternSet | None:
    if given is None or isinstance(given, PatternSet):
        return given
    from jumar.judging.patterns.storage import load_pattern_set

    return load_pattern_set(Path(given))


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


def _scorer(
    rubric: AnyRubric, known: PatternSet, evidence: PatternEvidence | None, applied: AppliedScorecard | None
) -> CheapScorer:
    panel = (
        StoryPanel(rubric, known.tech_validation, known.value_phrases)
        if isinstance(rubric, StoryRubric)
        else TextPanel(rubric, known.value_phrases)
    )
    return CheapScorer(rubric, panel, evidence, known.scoring_weights, applied)


def _story(fields: Mapping[str, Any], number: int) -> Story:
    from pydantic import ValidationError

    empty: dict[str, Any] = {"title": "", "description": "", "acceptance_criteria": []}
    given = {name: value for name, value in fields.items() if value is not None}
    try:
        return Story.model_validate({"id": f"story-{number}" if number else "", **empty, **given})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ItemError(f"story {number or ''}".rstrip() + f": {where}: {first['msg'][:1].lower()}{first['msg'][1:]}") from None
