"""From the judges' results on all items to one answer for the loop: parts from 0 to 1, and the judgement that stays on record.

An item that is empty counts as the lowest score: were it left out, an agent could raise the mean by emptying its worst items. A
judge that did not answer for too many items, or stopped for want of money, says nothing about the candidate.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import Any, Final, Literal

from jumar.core.files import UnreadableFileError
from jumar.core.text import escape, plural, shortened
from jumar.errors import ItemError
from jumar.judging.asking.settings import MAX_UNSCORED
from jumar.judging.asking.summary import Evaluation
from jumar.judging.auto.results import AutoEvaluation
from jumar.judging.cheap.panels import StoryPanel, TextPanel
from jumar.judging.component_health import check_cheap_evaluator, check_expensive_evaluator
from jumar.judging.dual import CheapResult, DualEvaluation
from jumar.judging.gap import GAP_TARGET, QUALITY_TARGET
from jumar.judging.items.item import Item
from jumar.judging.items.records import read_items
from jumar.judging.models import CheapModeResult, ExpensiveModeResult, Story, Unscored
from jumar.judging.patterns.models import PatternSet
from jumar.judging.rubric import StoryRubric, TextRubric
from jumar.model.judgement import AutoDecisions, EvaluatorMode, JudgedItem, Judgement
from jumar.model.protocols import Evaluated
from jumar.processes.written_files import FILE_LIMIT, find_files, read_regular

_WORST: Final = 10  # items on record
_FINDINGS: Final = 10  # weaknesses and missing signals on record
_WORDS: Final = 5  # weaknesses of one item
_LONG: Final = 300  # characters of one
_NAME: Final = 200  # characters of an id
_LOWEST: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What was found about the items: ``read`` are those that are not ``empty``, and what each list of results is about.

    ``lacks`` and ``missing`` are the cheap judge's words, by item and over all of them. ``recorded`` is what goes into a
    judgement as it is: names and digests, costs of a try that was cut off.
    """

    mode: EvaluatorMode
    read: tuple[Item, ...]
    empty: tuple[str, ...] = ()
    expensive: Evaluation | None = None
    cheap: tuple[CheapResult, ...] | None = None
    dual: DualEvaluation | None = None
    auto: AutoEvaluation | None = None
    patterns: int = 0
    lacks: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    missing: tuple[str, ...] = ()
    recorded: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def items(self) -> int:
        return len(self.read) + len(self.empty)

    @property
    def scores(self) -> dict[str, float]:
        """The gestalt of every item that was read and scored by the judge that counts."""
        if self.auto is not None:
            return {item.id: item.score for item in self.auto.outcome.items if item.score is not None}
        results: Sequence[Any] = self.expensive.results if self.expensive is not None else self.cheap or ()
        return {
            result.story_id: result.gestalt for result in results if isinstance(result, CheapModeResult | ExpensiveModeResult)
        }

    @property
    def kinds(self) -> dict[str, int]:
        """Items without a score of that judge by kind; empty ones are ``abstained``."""
        results: Sequence[Any] = self.expensive.results if self.expensive is not None else self.cheap or ()
        found = Counter[str](str(result.kind) for result in results if isinstance(result, Unscored))
        if self.empty:
            found["abstained"] += len(self.empty)
        return dict(found)


def summarise(found: Findings) -> Evaluated:
    """Return the answer for the loop; ``broken`` when too few items were scored to say anything about all of them."""
    judgement = _judgement(found)
    why = _unusable(found)
    if why is not None:
        return Evaluated(broken=why, judgement=judgement)
    gestalt = judgement.gestalt or _LOWEST
    parts = {"gestalt": min(1.0, max(0.0, (gestalt - 1.0) / 4.0)), **_parts(found)}
    return Evaluated(parts=MappingProxyType(parts), reason=_reason(judgement, len(found.empty)), judgement=judgement)


def unreliable(found: Findings, why: str) -> Evaluated:
    """Return that the judge gave up; what was found until then is on record, with what it cost."""
    return Evaluated(broken=why, judgement=_judgement(found))


def _unusable(found: Findings) -> str | None:
    if found.expensive is not None and found.expensive.stopped is not None:
        return f"the judge was not asked about every item: {found.expensive.stopped}"
    left = len(found.read) - len(found.scores)
    if left > MAX_UNSCORED * len(found.read) or (found.read and not found.scores):
        results: Sequence[Any] = found.expensive.results if found.expensive is not None else found.cheap or ()
        last = next(result.message for result in reversed(results) if isinstance(result, Unscored))
        kinds = ", ".join(f"{count} {kind}" for kind, count in found.kinds.items())
        return f"only {len(found.scores)} of {plural(len(found.read), 'item')} were scored ({kinds}); the last: {last}"
    return None


def _judgement(found: Findings) -> Judgement:
    scores = [*found.scores.values(), *(_LOWEST for _ in found.empty)]
    words = _by_item(found)
    base = Judgement(
        mode=found.mode,
        items=found.items,
        scored=len(found.scores),
        gestalt=_average(found, scores),
        unscored=MappingProxyType(found.kinds),
        flags=_flags(found),
        targets=MappingProxyType({"gestalt": QUALITY_TARGET, "gap": GAP_TARGET}),
        worst=_worst(found, words),
        missing=_cut(_missing(found)),
        weaknesses=_cut(_reflections(found, words)),
        cost_usd=0.0,
    )
    base = replace(base, **_paid(found), **_gap(found), auto=_decided(found))
    return replace(base, **found.recorded)


def _average(found: Findings, scores: Sequence[float]) -> float | None:
    """Return the mean of the scores; in mode auto that of the judge's scores, which are corrected for, with the empty items."""
    corrected = None if found.auto is None else found.auto.outcome.average
    if corrected is None:
        return fmean(scores) if scores else None
    empty = len(found.empty)
    return (corrected.estimate * corrected.items + _LOWEST * empty) / (corrected.items + empty)


def _decided(found: Findings) -> AutoDecisions | None:
    """Return what mode auto did with the items; the interval is that of the average with the empty items."""
    auto = found.auto
    if auto is None:
        return None
    outcome, average = auto.outcome, auto.outcome.average
    interval = None
    if average is not None and average.interval is not None:
        empty, items = len(found.empty), average.items
        low, high = ((end * items + _LOWEST * empty) / (items + empty) for end in average.interval)
        interval = (low, high)
    promise = outcome.guarantee
    return AutoDecisions(
        line=auto.rules.line,
        cheaply=outcome.cheaply,
        audited=outcome.audited,
        escalated=outcome.escalated,
        undecided=outcome.undecided,
        above=outcome.above,
        below=outcome.below,
        calls_saved=auto.calls_saved,
        cost_saved_usd=auto.cost_saved_usd,
        interval=interval,
        promised=promise.promised,
        wrong=promise.wrong,
        wrong_at_most=promise.upper,
        held=promise.held,
        rest_asked=auto.rest_asked,
        verdict=auto.trust.proof.verdict,
        reasons=auto.trust.reasons,
    )


def _paid(found: Findings) -> dict[str, Any]:
    spent = found.expensive
    if spent is None:
        return {}
    names = ("cost_usd", "known_cost_usd", "input_tokens", "output_tokens", "calls", "cached", "judge")
    return {name: getattr(spent, name) for name in names}


def _gap(found: Findings) -> dict[str, Any]:
    dual = found.dual
    if found.auto is not None and found.auto.outcome.average is not None:
        return {"cheap": found.auto.outcome.average.cheap}
    if dual is None:
        return {}
    verdict = None if dual.tracking is None else dual.tracking.verdict
    return {
        "cheap": dual.summary.cheap_avg,
        "gap": dual.summary.gap,
        "abs_gap": dual.summary.abs_gap_mean,
        "tracks": None if verdict in {None, "not_proven"} else verdict == "tracks",
    }


def _flags(found: Findings) -> tuple[str, ...]:
    flags = [] if found.expensive is None else check_expensive_evaluator(found.expensive.results).flags
    if found.mode == "cheap" and found.cheap:
        flags = check_cheap_evaluator(found.cheap, patterns=found.patterns).flags
    if found.auto is not None and found.auto.trust.reasons:
        flags = [*flags, "audits_failed" if found.auto.rest_asked else "proof_not_trusted"]
    return tuple(flags)


def _by_item(found: Findings) -> dict[str, tuple[str, ...]]:
    """Return what each scored item lacks: in the judge's words, or in those of the rules where no judge was asked."""
    if found.expensive is None:
        return dict(found.lacks)
    return {result.story_id: _words(result) for result in found.expensive.results if isinstance(result, ExpensiveModeResult)}


def _words(result: ExpensiveModeResult) -> tuple[str, ...]:
    named = tuple(weakness.strip() for weakness in result.weaknesses if weakness.strip())
    if named:
        return named
    return tuple(part for part in re.split(r"(?<=[.!?])\s+", result.reasoning.strip()) if part)[:1]


def _worst(found: Findings, words: Mapping[str, tuple[str, ...]]) -> tuple[JudgedItem, ...]:
    beside = {result.story_id: result.cheap.gestalt for result in found.dual.results} if found.dual is not None else {}
    empty = [JudgedItem(id=name[:_NAME], gestalt=None, weaknesses=("it is empty",)) for name in found.empty]
    ranked = sorted(found.scores.items(), key=lambda pair: pair[1])
    scored = [
        JudgedItem(
            id=name[:_NAME],
            gestalt=score,
            cheap=beside.get(name),
            weaknesses=tuple(shortened(text, _LONG) for text in words.get(name, ())[:_WORDS]),
        )
        for name, score in ranked
    ]
    return tuple([*empty, *scored][:_WORST])


def _missing(found: Findings) -> list[str]:
    """Return what the rules do not find; in dual mode what the judge saw and the rules did not, largest gap first."""
    if found.dual is None:
        return list(found.missing)
    lines: list[str] = []
    for one in found.dual.summary.large:
        if one.missed:
            words = f" (in the text: {', '.join(one.phrases)})" if one.phrases else ""
            lines.append(f"{one.story_id[:_NAME]}, gap {one.gap:+.2f}: {shortened(one.missed[0], _LONG)}{words}")
    return lines


def _reflections(found: Findings, words: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Return the weaknesses of the items, the lowest item's first; of rules alone, what they miss over all items."""
    lines = [f"{name[:_NAME]}: it is empty" for name in found.empty]
    if found.expensive is None:
        return [*lines, *found.missing]
    single = found.items == 1
    for name, _ in sorted(found.scores.items(), key=lambda pair: pair[1]):
        lines += [text if single else f"{name[:_NAME]}: {text}" for text in words.get(name, ())[:_WORDS]]
    return list(dict.fromkeys(lines))


def _cut(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(shortened(" ".join(line.split()), _LONG + _NAME) for line in lines[:_FINDINGS])


def _parts(found: Findings) -> dict[str, float]:
    """Return the means of the cheap judge's parts over the items that have them; an empty item has 0 in each."""
    values: dict[str, list[float]] = {}
    for one in found.cheap or ():
        if isinstance(one, CheapModeResult):
            for name, score in one.sub_scores.items():
                values.setdefault(name, []).append(score)
    return {name: sum(scores) / (len(scores) + len(found.empty)) for name, scores in values.items()}


def _reason(judged: Judgement, empty: int) -> str:
    who = judged.mode if judged.judge is None else f"{judged.mode}: {judged.judge}"
    words = [f"overall score {judged.gestalt:.2f} of 5 over {plural(judged.items, 'item')} ({who})"]
    left = judged.items - judged.scored - empty
    if empty:
        words.append(f"{empty} empty, counted as 1")
    if left:
        words.append(f"{left} not scored")
    if judged.cheap is not None and judged.gap is not None:
        words.append(f"cheap {judged.cheap:.2f}, gap {judged.gap + 0.0:+.2f}")
    return "; ".join(words)


_RECORDS: Final = frozenset({".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet"})
_NUMBERED: Final = re.compile(r"(?:line|element|row)-\d+")


def collect_items(
    workdir: Path,
    patterns: Collection[str],
    *,
    among: Collection[str] = (),
    fields: Mapping[str, str] | None = None,
    kind: Literal["story"] | None = None,
) -> list[Item] | None:
    """Return the items of all files that ``patterns`` name, in the order of their paths; None when there is no file.

    Records are read from JSON Lines, JSON, CSV, TSV and Parquet; any other file is one item, its id its relative path. Records
    without ids are called ``line-N``, with the file in front where there are several. Errors:
    :class:`jumar.processes.written_files.UnreadableFileError` for a file that must not be read, or more than 16 MiB together;
    :class:`jumar.errors.ItemError` for records that cannot be read, and for two items with one id.
    """
    files = dict.fromkeys(path for pattern in patterns for path in find_files(workdir, pattern, among=among))
    found: list[Item] = []
    read = 0
    left = FILE_LIMIT
    several = sum(path.suffix.lower() in _RECORDS for path in files) > 1
    for path in files:
        name = path.relative_to(workdir).as_posix()
        try:
            content = read_regular(path, limit=left)
        except FileNotFoundError:
            continue
        except UnreadableFileError as error:
            raise UnreadableFileError(f"'{escape(name)}' {error}") from error
        read += 1
        left -= len(content)
        if path.suffix.lower() not in _RECORDS:
            found.append(_text_item(name, content, kind))
        elif content.strip():
            found += [_named(item, name, several=several) for item in read_items(path, fields, kind=kind)]
    _refuse_twins(found)
    return found if read else None


def _text_item(name: str, content: bytes, kind: Literal["story"] | None) -> Item:
    text = content.decode("utf-8-sig", "replace").replace("\r\n", "\n")
    if kind == "story":
        return Item.of(Story(id=name, title="", description=text.strip(), acceptance_criteria=[]), source=name)
    return Item(name, text.strip(), source=name)


def _named(item: Item, file: str, *, several: bool) -> Item:
    """Return the item with the file in its id where that was made up and other files count from 1, too."""
    if not several or not _NUMBERED.fullmatch(item.id):
        return item
    name = f"{file}:{item.id}"
    story = None if item.story is None else item.story.model_copy(update={"id": name})
    return replace(item, id=name, story=story)


def _refuse_twins(items: list[Item]) -> None:
    twins = [name for name, count in Counter(item.id for item in items).items() if count > 1]
    if twins:
        where = ", ".join(escape(item.source) for item in items if item.id == twins[0])
        raise ItemError(f"two items have the id '{escape(twins[0])}' ({where}); every item needs its own")


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
    applied = {contribution.name for contribution in result.contributions}
    return [
        code
        for name, code in zip(panel.names, panel.codes, strict=True)
        if name in applied and weights.get(name, own[name]) > 0 and code not in result.reasons
    ]


def is_learned(patterns: PatternSet) -> bool:
    """Whether a set came out of learning: whoever knows its patterns writes them, or avoids them, and improves nothing."""
    return patterns.scorecard() is not None or any(pattern.learned_iter is not None for pattern in patterns.patterns)


def weaknesses_of(result: CheapModeResult, rubric: StoryRubric | TextRubric, patterns: PatternSet | None) -> tuple[str, ...]:
    """Return what one item lacks, and which active bad patterns it shows, in words; of a learned set it tells no patterns."""
    words = wanted(rubric)
    said = {} if patterns is None or is_learned(patterns) else {pattern.id: pattern.description for pattern in patterns.patterns}
    bad = [contribution for contribution in result.contributions if contribution.points < 0 and contribution.name in said]
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
