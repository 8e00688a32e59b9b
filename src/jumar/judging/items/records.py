"""Items from files: any record through a map of fields, each checked, each named by file and line when it is wrong."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from jumar.core.text import escape, nearest
from jumar.errors import ItemError, UsageError
from jumar.judging.items.item import Item
from jumar.judging.items.sources import LIMIT, Chunk, decode, decode_plainly, read_chunks
from jumar.judging.models import Story

if TYPE_CHECKING:
    from pydantic import ValidationError

_STORY_FIELDS: Final = tuple(Story.model_fields)
_LISTS: Final = ("acceptance_criteria", "services", "source_conversations")
FIELDS: Final = ("id", "text", "prompt", "context", "group", *_STORY_FIELDS[1:])
"""The names that ``--field NAME=KEY`` knows."""

_GROUP_MARK: Final = re.compile(r"#(\w+)#\s*")


def field_map(given: Iterable[str]) -> dict[str, str]:
    """Return ``NAME=KEY`` options as a mapping. Errors: :class:`jumar.errors.UsageError`."""
    found: dict[str, str] = {}
    for option in given:
        name, equals, key = option.partition("=")
        if not equals or not name or not key:
            raise UsageError(f"--field {escape(option)}: write NAME=KEY, such as text=answer")
        if name not in FIELDS:
            raise UsageError(
                f"--field {escape(option)}: no field '{escape(name)}'{nearest(name, FIELDS)}; known: {', '.join(FIELDS)}"
            )
        if name in found:
            raise UsageError(f"--field: '{name}' is given twice")
        found[name] = key
    return found


@dataclass(frozen=True, slots=True)
class ItemReader:
    """Turns records into items. ``fields`` maps our names to the records' keys; ``numbered`` says that records have no id.

    ``kind`` ``"story"`` makes an item of every record as a story; None takes a record that has title and acceptance criteria as
    one, unless ``fields`` maps ``text``.
    """

    fields: Mapping[str, str]
    kind: Literal["story"] | None = None
    numbered: bool = False

    def begin(self, chunk: Chunk) -> ItemReader:
        """Return the reader for the file that begins with ``chunk``: its first record says whether there are ids.

        Errors: :class:`jumar.errors.ItemError` for a mapped key that the first record lacks.
        """
        number, record = chunk.records[0]
        if chunk.origin == "lines":
            if self.fields:
                raise ItemError(f"{chunk.file}: lines of text have no fields; leave --field out")
            return self
        where = chunk.where(number)
        first = decode(record, where) if isinstance(record, bytes) else record
        lacks = [(name, key) for name, key in self.fields.items() if key not in first]
        if lacks and chunk.origin == "json":
            name, key = lacks[0]
            near = nearest(key, list(first))
            raise ItemError(f"{where}: no '{escape(key)}', which --field maps to {name}{near}; there are: {_keys(first)}")
        return ItemReader(self.fields, self.kind, numbered=self._key("id") not in first)

    def items(self, chunk: Chunk) -> list[Item]:
        """Return a chunk's items, in their order. Errors: :class:`jumar.errors.ItemError` that names the line and the field."""
        if chunk.origin == "lines":
            return [self._line(record, number, chunk) for number, record in chunk.records if isinstance(record, bytes)]
        made: list[Item] = []
        for number, record in chunk.records:
            where = f"{chunk.file}, {chunk.word} {number}"
            plain = decode_plainly(record) if isinstance(record, bytes) else None
            if plain is not None:
                with contextlib.suppress(ItemError):  # what it says is said of what the other one reads
                    made.append(self._item(plain, self._id(plain, number, chunk.word, where), where, table=False))
                    continue
            found = decode(record, where) if isinstance(record, bytes) else record
            made.append(self._item(found, self._id(found, number, chunk.word, where), where, table=chunk.origin == "table"))
        return made

    def _key(self, name: str) -> str:
        return self.fields.get(name, name)

    def _id(self, record: Mapping[str, Any], number: int, word: str, where: str) -> str:
        key = self.fields.get("id", "id")
        value = record.get(key)
        if self.numbered:
            if value is not None:
                raise ItemError(
                    f"{where}: has '{escape(key)}', the first record has not; give all of them one, or --field id=KEY"
                )
            return f"{word}-{number}"
        if isinstance(value, str) and value and not value.isspace():
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if key not in record or value is None:
            raise ItemError(
                f"{where}: '{escape(key)}' is missing; name the key of the id: --field id=KEY. There are: {_keys(record)}"
            )
        shown = "empty" if isinstance(value, str) else f"{_shown(value)}, not a text or a whole number"
        raise ItemError(f"{where}: '{escape(key)}' is {shown}; every item needs an id of its own")

    def _item(self, record: Mapping[str, Any], item_id: str, where: str, *, table: bool) -> Item:
        group = self._optional(record, "group", where)
        if self._is_story(record):
            return Item.of(self._story(record, item_id, where, table=table), group=group, source=where)
        key = self._key("text")
        text = record.get(key)
        if key not in record:
            raise ItemError(
                f"{where}: '{escape(key)}' is missing, and there is no 'title' with 'acceptance_criteria', which make a story; "
                f"name the key of the text: --field text=KEY. There are: {_keys(record)}"
            )
        if text is not None and not isinstance(text, str):
            raise ItemError(f"{where}: '{escape(key)}' is {_shown(text)}; give a text")
        prompt = self._optional(record, "prompt", where) or ""
        return Item(item_id, text or "", prompt=prompt, group=group, source=where, context=self._context(record, where))

    def _context(self, record: Mapping[str, Any], where: str) -> str:
        """Return the context. A key of this name that nobody mapped may be anything: only a text is taken."""
        if "context" not in self.fields and not isinstance(record.get("context"), str):
            return ""
        return self._optional(record, "context", where) or ""

    def _is_story(self, record: Mapping[str, Any]) -> bool:
        if self.kind == "story":
            return True
        if "text" in self.fields:
            return False
        return self._key("title") in record and self._key("acceptance_criteria") in record

    def _optional(self, record: Mapping[str, Any], name: str, where: str) -> str | None:
        value = record.get(self.fields.get(name, name))
        if value is None or isinstance(value, str):
            return value or None
        if name == "group" and isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        raise ItemError(f"{where}: '{escape(self._key(name))}' is {_shown(value)}; give a text")

    def _story(self, record: Mapping[str, Any], item_id: str, where: str, *, table: bool) -> Story:
        from pydantic import ValidationError

        fields = {name: record[key] for name in _STORY_FIELDS[1:] if (key := self.fields.get(name, name)) in record}
        if table:
            fields |= {name: fields.get(name) or "" for name in ("title", "description")}
            fields |= {name: _listed(fields.get(name) or []) for name in _LISTS}
        for name in ("services", "source_conversations"):
            if name in fields and fields[name] is None:
                del fields[name]
        fields["id"] = item_id
        try:
            return Story.model_validate(fields)
        except ValidationError as error:
            raise ItemError(f"{where}: {self._explain(error, record)}") from None

    def _explain(self, error: ValidationError, record: Mapping[str, Any]) -> str:
        missing = [str(one["loc"][0]) for one in error.errors(include_url=False) if one["type"] == "missing"]
        if missing:
            named = ", ".join(f"'{escape(self._key(name))}'" for name in missing)
            verb = "is" if len(missing) == 1 else "are"
            return f"{named} {verb} missing; map other names with --field {missing[0]}=KEY. There are: {_keys(record)}"
        first = error.errors(include_url=False)[0]
        name, *inside = first["loc"]
        place = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in inside)
        wanted = "a list of texts" if name in _LISTS and not inside else "a text"
        return f"'{escape(self._key(str(name)))}'{place} is {_shown(first['input'])}; give {wanted}"

    def _line(self, record: bytes, number: int, chunk: Chunk) -> Item:
        where = chunk.where(number)
        try:
            line = record.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            raise ItemError(f"{where}: not UTF-8 at byte {error.start + 1} of the line") from None
        mark = _GROUP_MARK.match(line)
        text = line[mark.end() :] if mark else line
        item_id, group = f"{chunk.file}:{number}", mark[1] if mark else None
        if self.kind == "story":
            return Item.of(Story(id=item_id, title="", description=text, acceptance_criteria=[]), group=group, source=where)
        return Item(item_id, text, group=group, source=where)


class SeenIds:
    """Which ids there were, as eight bytes of a hash each: a million take 17 MB, in a set 120.

    A table with open addressing, at most half full; 0 is a free place. Two ids of a million share a hash once in forty million
    files.
    """

    def __init__(self) -> None:
        self._table = array("Q", bytes(8 << 10))
        self._count = 0

    def add(self, items: Iterable[tuple[str, str]]) -> None:
        """Add ``(id, where)``. Errors: :class:`jumar.errors.ItemError` for an id that was there before."""
        for item_id, where in items:
            digest = hashlib.blake2b(item_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            if not _put(self._table, int.from_bytes(digest, "little") or 1):
                raise ItemError(
                    f"{where}: the id '{escape(item_id)}' was there before; every item needs its own, or --field id=KEY"
                )
            self._count += 1
            if 2 * self._count > len(self._table):
                wider = array("Q", bytes(8)) * (2 * len(self._table))
                for key in self._table:
                    if key:
                        _put(wider, key)
                self._table = wider


def _put(table: array[int], key: int) -> bool:
    """Put ``key`` into the first free place from where it belongs; False when it is there already."""
    mask = len(table) - 1
    at = key & mask
    while there := table[at]:
        if there == key:
            return False
        at = (at + 1) & mask
    table[at] = key
    return True


def read_items(
    path: Path, fields: Mapping[str, str] | None = None, *, kind: Literal["story"] | None = None, limit: int = LIMIT
) -> Iterator[Item]:
    """Yield the items of a file or a folder, in their order, with no more than a chunk of them in memory.

    Formats are those of :func:`jumar.judging.items.sources.read_chunks`. Without any id in the file, items are called ``line-N``
    (``element-N``, ``row-N``). A record is at most ``limit`` bytes. Errors: :class:`jumar.errors.ItemError` that names file, line
    and field; without any item nothing is yielded.
    """
    reader: ItemReader | None = None
    seen = SeenIds()
    for chunk in read_chunks(path, limit=limit):
        if reader is None:
            reader = ItemReader(fields or {}, kind).begin(chunk)
        items = reader.items(chunk)
        seen.add((item.id, item.source) for item in items)
        yield from items


def _listed(value: Any) -> Any:
    """Return a cell as a list: a JSON array as it is, else its lines; ``[ ] task`` begins no array. Lists of Parquet stay."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(value)
    return [line.strip() for line in value.splitlines() if line.strip()]


def _keys(record: Mapping[str, Any]) -> str:
    names = [escape(str(name))[:40] for name in record]
    return ", ".join(names[:12]) + (", …" if len(names) > 12 else "") if names else "no keys at all"


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    words = {str: "text", dict: "an object", list: "a list", int: "a number", float: "a number"}
    kind = words.get(type(value), type(value).__name__)  # pyright: ignore[reportUnknownArgumentType]
    return f"{kind} ({escape(repr(value))[:40]})" if isinstance(value, str | int | float) else kind
