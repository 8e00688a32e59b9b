"""What the cheap judge looks for, in words that an agent can act on: the reason codes alone say little."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from jumar.core.text import plural
from jumar.judging.cheap.story_panel import StoryPanel
from jumar.judging.cheap.text_panel import TextPanel
from jumar.judging.models import CheapModeResult
from jumar.judging.patterns.models import PatternSet
from jumar.judging.rubric import StoryRubric, TextRubric

__all__ = ["is_learned", "missing_overall", "wanted", "weaknesses_of"]

_NAMED = 3  # ids behind a finding


def wanted(rubric: StoryRubric | TextRubric) -> dict[str, str]:
    """Return what each reason code of ``rubric`` asks for, in the order of its components."""
    if isinstance(rubric, StoryRubric):
        title, count, value, scope = rubric.title_quality, rubric.ac_count, rubric.user_focus, rubric.scope_check
        words = (
            f"a title of at most {title.longest} characters that begins with a verb ({', '.join(title.action_words[:6])})",
            f"{count.best_from} to {count.best_to} acceptance criteria",
            "a technical area: a repository with a path in it, or a file",
            f"what the user gains, in the description ({', '.join(value.phrases[:4])})",
            f"{scope.shortest} to {scope.longest} characters, {scope.fewest_criteria} to {scope.most_criteria} criteria",
        )
        return dict(zip(StoryPanel.codes, words, strict=True))
    words = (
        f"{rubric.length.enough} to {rubric.length.most} words",
        "sentences, lists and paragraphs, and an end that is not cut off",
        "numbers, names and exact terms",
        "no sequence of words said again and again",
        "the words of the question",
        f"no hedging ({', '.join(rubric.hedging.phrases[:3])})",
        f"sentences of {rubric.sentences.shortest:g} to {rubric.sentences.longest:g} words",
        f"reasons and examples ({', '.join(rubric.reasoning.phrases[:3])})",
    )
    return dict(zip(TextPanel.codes, words, strict=True))


def _missing_codes(result: CheapModeResult, rubric: StoryRubric | TextRubric, weights: Mapping[str, float]) -> list[str]:
    """Return the reasons that an item does not give, of components that apply to it and count."""
    panel = StoryPanel if isinstance(rubric, StoryRubric) else TextPanel
    own: dict[str, float] = rubric.weights.model_dump()
    applied = {one.name for one in result.contributions}
    return [
        code
        for name, code in zip(panel.names, panel.codes, strict=True)
        if name in applied and weights.get(name, own[name]) > 0 and code not in result.reasons
    ]


def is_learned(patterns: PatternSet) -> bool:
    """Whether a set came out of learning: whoever knows its patterns writes them, or avoids them, and improves nothing."""
    return patterns.scorecard() is not None or any(one.learned_iter is not None for one in patterns.patterns)


def weaknesses_of(result: CheapModeResult, rubric: StoryRubric | TextRubric, patterns: PatternSet | None) -> tuple[str, ...]:
    """Return what one item lacks, and which active bad patterns it shows, in words; of a learned set it tells no patterns."""
    words = wanted(rubric)
    said = {} if patterns is None or is_learned(patterns) else {one.id: one.description for one in patterns.patterns}
    bad = [one for one in result.contributions if one.points < 0 and one.name in said]
    shows = [f"shows {one.name} ({said[one.name] or 'a bad pattern'})" for one in bad]
    return (*shows, *(f"lacks {code} ({words[code]})" for code in _missing_codes(result, rubric, _weights(patterns))))


def missing_overall(
    results: Iterable[tuple[CheapModeResult, StoryRubric | TextRubric]], patterns: PatternSet | None
) -> tuple[str, ...]:
    """Return what items lack, each with how many and which, the most frequent first."""
    lacking: dict[tuple[str, str], list[str]] = {}
    total: Counter[str] = Counter()
    for result, rubric in results:
        total[rubric.kind] += 1
        words = wanted(rubric)
        for code in _missing_codes(result, rubric, _weights(patterns)):
            lacking.setdefault((rubric.kind, f"{code}: {words[code]}"), []).append(result.story_id)
    ranked = sorted(lacking.items(), key=lambda pair: -len(pair[1]))
    return tuple(f"{text} – lacking in {_of(ids, total[kind])}" for (kind, text), ids in ranked)


def _of(ids: Sequence[str], total: int) -> str:
    shown = ", ".join(ids[:_NAMED]) + (", …" if len(ids) > _NAMED else "")
    return f"{len(ids)} of {plural(total, 'item')} ({shown})"


def _weights(patterns: PatternSet | None) -> Mapping[str, float]:
    return {} if patterns is None else patterns.scoring_weights
