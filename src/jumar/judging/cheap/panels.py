"""The components of a score, of stories (five, and INVEST by rules) and of texts (eight). All are from 0.0 to 1.0."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Sequence
from typing import ClassVar, Final, NamedTuple

from jumar.judging.cheap.evidence import Judged
from jumar.judging.cheap.phrases import TextParts, content_words, count_phrases, has_phrase, take_apart, value_scorer
from jumar.judging.items.item import Item
from jumar.judging.models import Story
from jumar.judging.patterns.models import TechValidation, ValuePhrase
from jumar.judging.rubric import (
    CriteriaRules,
    HedgingRules,
    LengthRules,
    OverlapRules,
    ReasoningRules,
    RepetitionRules,
    ScopeRules,
    SentenceRules,
    SpecificityRules,
    StoryRubric,
    StructureRules,
    TechnicalRules,
    TextRubric,
    TitleRules,
    ValueRules,
)

_DEPENDS: Final = ("depends on", "depend on", "dependent on", "blocked by", "prerequisite", "waits for", "waiting for")
_DEPENDS_IN: Final = ("depend", "blocked", "prereq", "wait")
_PRESCRIBES: Final = ("must use", "exactly as in", "pixel perfect", "pixel-perfect", "```")
_PRESCRIBES_IN: Final = ("must use", "exactly as", "pixel", "```")
_CHECKABLE: Final = frozenset(
    {
        *("given", "when", "then", "should", "must", "shall", "can", "cannot", "if", "only", "never", "always", "exactly"),
        *("show", "shows", "return", "returns", "display", "displays", "receive", "receives", "see", "sees"),
        *("fail", "fails", "error", "errors", "within", "least", "most"),
    }
)
_DIGIT: Final = re.compile(r"\d")


class Known(NamedTuple):
    """What is known already: the components' scores, the number of criteria, and whether the story is small (1.0 or 0.0)."""

    title: float
    criteria_score: float
    area: float
    value: float
    scope: float
    criteria: int
    small: float


def sub_scores(told: str, criteria: Sequence[str], known: Known) -> dict[str, float]:
    """Return the parts by name. ``told`` is all of the story, in lower case.

    ``story_quality`` is the mean of title, criteria and user value; ``tech_accuracy`` is the technical area; ``actionability``
    the mean of title, checkable criteria and scope; ``invest`` the mean of its letters:

    *independent* 1 unless the story names something that has to come first; *negotiable* 1 unless it prescribes the solution;
    *valuable* the score of user value; *estimable* the mean of technical area and criteria; *small* 1 within the upper bounds;
    *testable* the share of criteria that say something checkable: a number, a condition, or what has to be seen.
    """
    checkable = _checkable(criteria) / known.criteria if known.criteria else 0.0
    independent = 0.0 if _says(told, _DEPENDS_IN, _DEPENDS) else 1.0
    negotiable = 0.0 if _says(told, _PRESCRIBES_IN, _PRESCRIBES) else 1.0
    estimable = (known.area + known.criteria_score) / 2.0
    return {
        "story_quality": (known.title + known.criteria_score + known.value) / 3.0,
        "tech_accuracy": known.area,
        "actionability": (known.title + checkable + known.scope) / 3.0,
        "invest": (independent + negotiable + known.value + estimable + known.small + checkable) / 6.0,
        "invest_independent": independent,
        "invest_negotiable": negotiable,
        "invest_valuable": known.value,
        "invest_estimable": estimable,
        "invest_small": known.small,
        "invest_testable": checkable,
    }


def _checkable(criteria: Sequence[str]) -> int:
    """Return how many criteria have a digit or one of the words; a word with punctuation right after it is another word."""
    found, none_of, digit = 0, _CHECKABLE.isdisjoint, _DIGIT.search
    for criterion in criteria:
        if not none_of(criterion.lower().split()) or digit(criterion):
            found += 1
    return found


def _says(told: str, hints: Sequence[str], phrases: Sequence[str]) -> bool:
    """Return whether one of ``phrases`` is there; without any of ``hints``, which are parts of them, there is no need to look."""
    for hint in hints:
        if hint in told:
            return any(has_phrase(told, phrase) for phrase in phrases)
    return False


def file_pattern(rules: TechnicalRules, known: TechValidation) -> re.Pattern[str]:
    r"""Return the expression for a path to a source file, ``\w+/\w+\.EXTENSION``; the extension has to end there.

    ``app/data.json`` is no ``.js`` file.
    """
    extensions = dict.fromkeys(one.lstrip(".") for one in (*rules.extensions, *known.valid_extensions))
    words = "|".join(re.escape(extension) for extension in extensions if extension)
    return re.compile(rf"\w+/\w+\.(?:{words})(?!\w)" if words else r"(?!)")


def technical_scorer(rules: TechnicalRules, known: TechValidation) -> Callable[[str | None], float]:
    """Return the function that scores a technical area, from 0.0 (nothing said) to 1.0. Case counts.

    The first repository that the area names decides: ``known_path`` with one of its paths, else ``known_repository``. Both
    count only between word boundaries: ``aero`` is not in ``aerospace/packages/``.
    """
    first = known.valid_repo_paths
    repositories: dict[str, Sequence[str]] = {
        **first,
        **{name: one for name, one in rules.repositories.items() if name not in first},
    }
    named = [(name, tuple(paths)) for name, paths in repositories.items() if name]
    is_file = file_pattern(rules, known).search

    @functools.lru_cache(maxsize=4096)  # a product has few areas
    def score(area: str | None) -> float:
        if not area:
            return 0.0
        for name, paths in named:
            if name in area and has_phrase(area, name):
                return rules.known_path if any(has_phrase(area, path) for path in paths if path) else rules.known_repository
        return rules.file if is_file(area) else rules.other

    return score


def title_scorer(rules: TitleRules) -> Callable[[str], float]:
    """Return the function that scores a title: 1.0 or 0.0.

    An action word may be inflected by ``s``, ``es``, ``d``, ``ed`` or ``ing`` (adds, fixes, updated, adding) and then has to end:
    ``Address`` does not begin with ``add``. An empty title gives 0.0.
    """
    words = "|".join(re.escape(word.lower()) for word in rules.action_words)
    begins = re.compile(rf"(?:{words})(?:s|es|d|ed|ing)?(?!\w)").match if words else None
    longest = rules.longest

    def score(title: str) -> float:
        return 1.0 if begins is not None and title and len(title) <= longest and begins(title.lower()) else 0.0

    return score


def scope_scorer(rules: ScopeRules) -> Callable[[int, int], float]:
    """Return the function from the description's length in characters and the number of criteria to 1.0 or 0.0."""

    def score(length: int, criteria: int) -> float:
        fits = rules.shortest <= length <= rules.longest and rules.fewest_criteria <= criteria <= rules.most_criteria
        return 1.0 if fits else 0.0

    return score


def count_criteria(criteria: Sequence[str]) -> int:
    """Return how many criteria say anything; blank ones do not count."""
    count = len(criteria)
    for criterion in criteria:
        if not criterion or criterion.isspace():
            count -= 1
    return count


def criteria_scorer(rules: CriteriaRules) -> Callable[[int], float]:
    """Return the function from the number of criteria to a score from 0.0 (none) to 1.0."""
    by_count = [_score(rules, count) for count in range(rules.most + 1)]

    def score(count: int) -> float:
        return by_count[count] if count < len(by_count) else rules.over

    return score


def _score(rules: CriteriaRules, count: int) -> float:
    if count == 0:
        return 0.0
    if rules.best_from <= count <= rules.best_to:
        return 1.0
    return rules.one if count == 1 else rules.near


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
            criteria = [criterion for criterion in criteria if criterion and not criterion.isspace()]
        fits = len(item.story.description) <= self._bounds.longest and len(criteria) <= self._bounds.most_criteria
        known = Known(title, count, area, value, scope, len(criteria), 1.0 if fits else 0.0)
        return sub_scores(item.text.lower(), criteria, known)


def _mute(story: Story | None, criteria: int) -> str | None:
    if story is None:
        return "it is no story: title and acceptance_criteria are missing"
    if criteria or story.description.strip() or story.title.strip() or (story.technical_area or "").strip():
        return None
    return "title, description, criteria and technical area are all empty"


_CODE = re.compile(r"`[^`\n]+`")
_NAME_INSIDE = re.compile(r"(?<=[\w,;:] )[A-Z][^\W\d_]+(?!\w)")


def score_specificity(parts: TextParts, rules: SpecificityRules) -> float:
    """Return the share of specific words / ``enough``, at most 1.0; 0.0 without words.

    Specific is a word with a digit, one of ``long`` letters or more, a capitalised one that does not begin a sentence, and each
    passage in backticks.
    """
    if not parts.words:
        return 0.0
    long = rules.long
    specific = sum(1 for word in parts.words if len(word) >= long or (not word.isalpha() and any(map(str.isdigit, word))))
    specific += sum(1 for name in _NAME_INSIDE.findall(parts.text) if len(name) < long)
    if "`" in parts.text:
        specific += len(_CODE.findall(parts.text))
    return min(1.0, specific / len(parts.words) / rules.enough)


def score_overlap(parts: TextParts, prompt: str, rules: OverlapRules) -> float | None:
    """Return the overlap coefficient of the words of text and prompt / ``enough``, at most 1.0.

    That is the number of words in both / the smaller number of different words, after Szymkiewicz and Simpson: it serves a long
    prompt with a short text (a summary) and the other way round (an answer). None where the prompt has no word of that length:
    nothing can be said. 0.0 where only the text has none.
    """
    asked = content_words(take_apart(prompt).words, rules.letters) if prompt else set[str]()
    if not asked:
        return None
    said = content_words(parts.words, rules.letters)
    if not said:
        return 0.0
    return min(1.0, len(asked & said) / min(len(asked), len(said)) / rules.enough)


def score_hedging(parts: TextParts, rules: HedgingRules) -> float:
    """Return 1 − hedges in 100 words / ``most``, at least 0.0; 0.0 without words. Phrases count between word boundaries."""
    if not parts.words:
        return 0.0
    hedges = count_phrases(parts.lowered, rules.phrases)
    return max(0.0, 1.0 - 100.0 * hedges / len(parts.words) / rules.most)


def score_reasoning(parts: TextParts, rules: ReasoningRules) -> float:
    """Return the number of different phrases found / ``enough``, at most 1.0."""
    found = sum(1 for phrase in rules.phrases if phrase in parts.lowered and has_phrase(parts.lowered, phrase))
    return min(1.0, found / rules.enough)


_ENDS = (".", "!", "?", "…", ":", ")", "]", '"', "”", "'", "’", "`", "*", "|", ">", "。")


def score_length(parts: TextParts, rules: LengthRules) -> float:
    """Return log(1 + n) / log(1 + enough) for n words up to ``enough``, 1.0 to ``most``, then down to ``over`` at twice that."""
    count = len(parts.words)
    if count < rules.enough:
        return math.log1p(count) / math.log1p(rules.enough)
    if count <= rules.most:
        return 1.0
    return 1.0 - (1.0 - rules.over) * min(1.0, (count - rules.most) / rules.most)


def score_structure(parts: TextParts, rules: StructureRules) -> float:
    """Return the mean of whether the text ends as a whole one does, and of its units / ``units``; 0.0 without words."""
    if not parts.words:
        return 0.0
    units = parts.sentences + parts.entries + parts.paragraphs - 1
    whole = parts.text.rstrip().endswith(_ENDS)
    return 0.5 * whole + 0.5 * min(1.0, units / rules.units)


def score_sentences(parts: TextParts, rules: SentenceRules) -> float:
    """Return 1.0 where a sentence has ``shortest`` to ``longest`` words on average, 0.0 at none and at twice ``longest``."""
    if not parts.sentences:
        return 0.0
    mean = len(parts.words) / parts.sentences
    if mean < rules.shortest:
        return mean / rules.shortest
    return max(0.0, 1.0 - max(0.0, mean - rules.longest) / rules.longest)


def score_repetition(parts: TextParts, rules: RepetitionRules) -> float:
    """Return how far the share of different sequences of three words is from ``worst`` (0.0) towards 1 (1.0).

    A text of one or two words has nothing to repeat, 1.0; one without words has 0.0.
    """
    if len(parts.words) < 3:
        return 1.0 if parts.words else 0.0
    words = [word.lower() for word in parts.words]
    sequences = list(zip(words, words[1:], words[2:], strict=False))
    different = len(set(sequences)) / len(sequences)
    return max(0.0, (different - rules.worst) / (1.0 - rules.worst))


class TextPanel:
    """Scores texts by a rubric. Learned value phrases only serve the named indicators: a text need not speak of users."""

    names: ClassVar[tuple[str, ...]] = TextRubric.COMPONENTS
    codes: ClassVar[tuple[str, ...]] = (
        "good_length",
        "clear_structure",
        "specific",
        "little_repetition",
        "on_topic",
        "confident",
        "readable_sentences",
        "gives_reasons",
    )

    def __init__(self, rubric: TextRubric, phrases: Sequence[ValuePhrase]) -> None:
        self._rubric = rubric
        self._hedging = rubric.hedging.model_copy(update={"phrases": _lowered(rubric.hedging.phrases)})
        self._reasoning = rubric.reasoning.model_copy(update={"phrases": _lowered(rubric.reasoning.phrases)})
        self._value = value_scorer(ValueRules(), phrases)

    def mute(self, item: Item) -> str | None:
        """Return why there is nothing to judge, None where there is."""
        return None if item.text else "the text is empty"

    def scores(self, item: Item) -> tuple[float | None, ...] | str:
        """Return the components' scores in the order of ``names``, None where one cannot tell, or why there are none."""
        mute = self.mute(item)
        if mute is not None:
            return mute
        rubric, parts = self._rubric, take_apart(item.text)
        return (
            score_length(parts, rubric.length),
            score_structure(parts, rubric.structure),
            score_specificity(parts, rubric.specificity),
            score_repetition(parts, rubric.repetition),
            score_overlap(parts, item.prompt, rubric.overlap),
            score_hedging(parts, self._hedging),
            score_sentences(parts, rubric.sentences),
            score_reasoning(parts, self._reasoning),
        )

    def judged(self, item: Item, scores: Sequence[float | None]) -> Judged:
        """Return what named indicators rest on."""
        del scores
        return Judged(0.0, self._value(item.text.lower()), None)

    def parts(self, item: Item, scores: Sequence[float | None]) -> dict[str, float]:
        """Return the components' scores by name: a text's parts are its components."""
        del item
        return {name: score for name, score in zip(self.names, scores, strict=True) if score is not None}


def _lowered(phrases: Sequence[str]) -> tuple[str, ...]:
    return tuple(phrase.lower() for phrase in phrases)
