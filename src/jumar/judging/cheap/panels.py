"""The components of a score, of stories (five, and INVEST by rules) and of texts (eight). All are from 0.0 to 1.0."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from typing import ClassVar, Final

from jumar.judging.cheap.evidence import View
from jumar.judging.cheap.phrases import TextParts, content_words, count_phrases, find_words, has_phrase, take_apart, value_scorer
from jumar.judging.items.item import Item
from jumar.judging.models import Story
from jumar.judging.patterns.models import TechValidation, ValuePhrase
from jumar.judging.rubric import (
    HedgingRules,
    LengthRules,
    OverlapRules,
    ReasoningRules,
    RepetitionRules,
    SentenceRules,
    SpecificityRules,
    StoryRubric,
    StructureRules,
    TextRubric,
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


class StoryPanel:
    """Scores stories by a rubric and what a patterns file knows about code and user value.

    INVEST is after Bill Wake, "INVEST in Good Stories, and SMART Tasks" (2003). A rule sees words, not meaning: each letter is a
    sign, none is a proof.
    """

    names: ClassVar[tuple[str, ...]] = StoryRubric.COMPONENTS
    codes: ClassVar[tuple[str, ...]] = ("good_title", "good_ac", "good_tech", "clear_user_value", "appropriate_scope")

    def __init__(self, rubric: StoryRubric, tech: TechValidation, phrases: Sequence[ValuePhrase]) -> None:
        self._rubric = rubric
        words = "|".join(re.escape(word.lower()) for word in rubric.title_quality.action_words)
        # an action word may be inflected (adds, fixes, updated, adding) and then has to end: Address does not begin with add
        self._begins = re.compile(rf"(?:{words})(?:s|es|d|ed|ing)?(?!\w)" if words else "(?!)").match
        rules, first = rubric.tech_specificity, tech.valid_repo_paths
        others = {name: paths for name, paths in rules.repositories.items() if name not in first}
        self._repositories = [(name, tuple(paths)) for name, paths in (*first.items(), *others.items()) if name]
        endings = dict.fromkeys(ending.lstrip(".") for ending in (*rules.extensions, *tech.valid_extensions))
        extensions = "|".join(re.escape(ending) for ending in endings if ending)
        # the extension has to end there: app/data.json is no .js file
        self._is_file = re.compile(rf"\w+/\w+\.(?:{extensions})(?!\w)" if extensions else "(?!)").search
        self._technical = functools.lru_cache(maxsize=4096)(self._score_area)  # a product has few areas
        self._value = value_scorer(rubric.user_focus, phrases)

    def mute(self, item: Item) -> str | None:
        """Return why there is nothing to judge, None where there is."""
        story = item.story
        if story is None:
            return "it is no story: title and acceptance_criteria are missing"
        parts = (*story.acceptance_criteria, story.description, story.title, story.technical_area or "")
        return None if any(map(str.strip, parts)) else "title, description, criteria and technical area are all empty"

    def scores(self, item: Item) -> tuple[float | None, ...] | str:
        """Return the components' scores in the order of ``names``, or why there are none."""
        story, mute = item.story, self.mute(item)
        if mute is not None or story is None:
            return mute or ""
        count = len(_saying(story.acceptance_criteria))
        return (
            self._score_title(story.title),
            self._score_criteria(count),
            self._technical(story.technical_area),
            self._value(story.description.lower()),
            self._score_scope(len(story.description), count),
        )

    def _score_title(self, title: str) -> float:
        """Return 1.0 for a title that is short enough and begins with an action word, else 0.0."""
        return 1.0 if title and len(title) <= self._rubric.title_quality.longest and self._begins(title.lower()) else 0.0

    def _score_criteria(self, count: int) -> float:
        """Return the score of so many criteria, 0.0 for none."""
        rules = self._rubric.ac_count
        if count == 0:
            return 0.0
        if count > rules.most:
            return rules.over
        if rules.best_from <= count <= rules.best_to:
            return 1.0
        return rules.one if count == 1 else rules.near

    def _score_area(self, area: str | None) -> float:
        """Return the score of a technical area, 0.0 where nothing is said. Case counts.

        The first repository that the area names decides: ``known_path`` with one of its paths, else ``known_repository``. Both
        count only between word boundaries: ``aero`` is not in ``aerospace/packages/``.
        """
        rules = self._rubric.tech_specificity
        if not area:
            return 0.0
        for name, paths in self._repositories:
            if name in area and has_phrase(area, name):
                return rules.known_path if any(has_phrase(area, path) for path in paths if path) else rules.known_repository
        return rules.file if self._is_file(area) else rules.other

    def _score_scope(self, length: int, criteria: int) -> float:
        """Return 1.0 where the description's length in characters and the number of criteria are within bounds, else 0.0."""
        rules = self._rubric.scope_check
        fits = rules.shortest <= length <= rules.longest and rules.fewest_criteria <= criteria <= rules.most_criteria
        return 1.0 if fits else 0.0

    def view(self, item: Item, scores: Sequence[float | None]) -> View:
        """Return what named indicators look at."""
        story = item.story or Story(id="", title="", description="", acceptance_criteria=[])
        area, value, scope = (score or 0.0 for score in scores[2:])
        return View(story.title, story.description, _saying(story.acceptance_criteria), len(story.services), area, value, scope)

    def parts(self, item: Item, scores: Sequence[float | None]) -> dict[str, float]:
        """Return the sub-scores by name.

        ``story_quality`` is the mean of title, criteria and user value; ``tech_accuracy`` the technical area; ``actionability``
        the mean of title, checkable criteria and scope; ``invest`` the mean of its letters:

        *independent* 1 unless the story names something that has to come first; *negotiable* 1 unless it prescribes the solution;
        *valuable* the score of user value; *estimable* the mean of technical area and criteria; *small* 1 within the upper
        bounds; *testable* the share of criteria that say something checkable: a number, a condition, or what has to be seen.
        """
        if item.story is None:
            return {}
        title, count, area, value, scope = (score or 0.0 for score in scores)
        rules, told = self._rubric.scope_check, item.text.lower()
        criteria = _saying(item.story.acceptance_criteria)
        testable = _checkable(criteria) / len(criteria) if criteria else 0.0
        independent = 0.0 if _says(told, _DEPENDS_IN, _DEPENDS) else 1.0
        negotiable = 0.0 if _says(told, _PRESCRIBES_IN, _PRESCRIBES) else 1.0
        estimable = (area + count) / 2.0
        small = 1.0 if len(item.story.description) <= rules.longest and len(criteria) <= rules.most_criteria else 0.0
        return {
            "story_quality": (title + count + value) / 3.0,
            "tech_accuracy": area,
            "actionability": (title + testable + scope) / 3.0,
            # in this order: other sums may differ in their last bit
            "invest": (independent + negotiable + value + estimable + small + testable) / 6.0,
            "invest_independent": independent,
            "invest_negotiable": negotiable,
            "invest_valuable": value,
            "invest_estimable": estimable,
            "invest_small": small,
            "invest_testable": testable,
        }


def _saying(criteria: list[str]) -> list[str]:
    """Return the criteria that say anything; blank ones do not count."""
    return [criterion for criterion in criteria if criterion and not criterion.isspace()]


def _checkable(criteria: Sequence[str]) -> int:
    """Return how many criteria have a digit or one of the words; a word with punctuation right after it is another word."""
    none_of, digit, count = _CHECKABLE.isdisjoint, _DIGIT.search, 0
    for criterion in criteria:
        if not none_of(criterion.lower().split()) or digit(criterion) is not None:
            count += 1
    return count


def _says(told: str, hints: Sequence[str], phrases: Sequence[str]) -> bool:
    """Return whether one of ``phrases`` is there; without any of ``hints``, which are parts of them, there is no need to look."""
    for hint in hints:  # faster than any() of a generator, and most texts have none
        if hint in told:
            return any(has_phrase(told, phrase) for phrase in phrases)
    return False


_ENTRY = re.compile(r"^[ \t]*(?:[-*•+]|\d{1,3}[.)])[ \t]+(\S.*)$", re.MULTILINE)
_CODE = re.compile(r"`[^`\n]+`")
_NAME_INSIDE = re.compile(r"[A-Z](?<=[\w,;:] .)[^\W\d_]+(?!\w)")  # the letter first, which is quickly looked for


def score_specificity(parts: TextParts, rules: SpecificityRules) -> float:
    """Return the share of specific words / ``enough``, at most 1.0; 0.0 without words.

    Specific is a word with a digit, one of ``long`` letters or more, a capitalised one that does not begin a sentence, and each
    passage in backticks.
    """
    if not parts.words:
        return 0.0
    long = rules.long
    if parts.text.isascii() and _DIGIT.search(parts.text) is None:
        specific = sum(map(long.__le__, map(len, parts.words)))
    else:
        specific = sum([len(word) >= long or (not word.isalpha() and any(map(str.isdigit, word))) for word in parts.words])
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
    asked = _asked(prompt, rules.letters)
    if not asked:
        return None
    said = content_words(parts.words, rules.letters)
    if not said:
        return 0.0
    return min(1.0, len(asked & said) / min(len(asked), len(said)) / rules.enough)


@functools.lru_cache(maxsize=256)  # the items of a group share their prompt, and usually follow each other
def _asked(prompt: str, letters: int) -> set[str]:
    return content_words(find_words(prompt), letters)


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
    # of other letters the case of one may depend on what follows it
    words = " ".join(parts.words).lower().split(" ") if parts.text.isascii() else [word.lower() for word in parts.words]
    different = len(set(zip(words, words[1:], words[2:], strict=False))) / (len(words) - 2)
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

    def view(self, item: Item, scores: Sequence[float | None]) -> View:
        """Return what named indicators look at."""
        del scores
        return View("", item.text, _ENTRY.findall(item.text), 0, 0.0, self._value(item.text.lower()), None)

    def parts(self, item: Item, scores: Sequence[float | None]) -> dict[str, float]:
        """Return the components' scores by name: a text's parts are its components."""
        del item
        return {name: score for name, score in zip(self.names, scores, strict=True) if score is not None}


def _lowered(phrases: Sequence[str]) -> tuple[str, ...]:
    return tuple(phrase.lower() for phrase in phrases)
