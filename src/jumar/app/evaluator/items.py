"""The items that an evaluator of the loop judges: records in files that the candidate made, and whole texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

from jumar.core.files import UnreadableFileError
from jumar.core.text import escape
from jumar.errors import ItemError
from jumar.judging.items.item import Item
from jumar.judging.items.records import read_items
from jumar.judging.models import Story
from jumar.processes.written_files import FILE_LIMIT, find_files, read_regular

__all__ = ["collect_items"]

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
