"""The items that an evaluator of the loop judges: records in files that the candidate made, and whole texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

from jumar.core.files import UnreadableFileError
from jumar.core.text import escape, plural
from jumar.errors import ItemError
from jumar.judging.cheap.panels import StoryPanel, TextPanel
from jumar.judging.items.item import Item
from jumar.judging.items.records import read_items
from jumar.judging.models import CheapModeResult, Story
from jumar.judging.patterns.models import PatternSet
from jumar.judging.rubric import StoryRubric, TextRubric
from jumar.processes.written_files import FILE_LIMIT, find_files, read_regular

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
