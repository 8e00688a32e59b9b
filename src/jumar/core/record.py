"""Frozen dataclasses as JSON objects, both ways, from what the class itself declares: names, types, defaults.

A field is written under its own name, in the order of the class. One that a file does not have takes its default, or None where
its type allows that, so that a record may get a new field without a new format; otherwise it is an error, as is a value of
another type. Keys that the class does not know are ignored: a newer jumar may have written them.

Types: ``str``, ``int``, ``float`` (finite; a whole number stays one), ``bool``, ``Literal``, ``Any``, records, ``X | None``,
``tuple[X, ...]``, ``tuple[X, Y]``, ``frozenset[X]`` (sorted on disk) and ``Mapping[str, X]``, which is read-only once read.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
import types
import typing
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType, NoneType
from typing import Any, Final, Literal, NamedTuple, Self, TypeVar, Union, cast

from jumar.core.codec import FORMAT, Fields, is_finite

T = TypeVar("T")
_STORED: Final = "jumar.stored"


class _Stored(NamedTuple):
    key: str | None
    write: Callable[[Any], object] | None
    read: Callable[[Fields, str], Any] | None
    omit: bool


def nothing() -> Mapping[str, Any]:
    """Return an empty mapping that nobody can fill: the default of a field."""
    return MappingProxyType({})


def stored(
    key: str | None = None,
    *,
    write: Callable[[Any], object] | None = None,
    read: Callable[[Fields, str], Any] | None = None,
    omit: bool = False,
) -> Mapping[str, Any]:
    """Return the metadata of a field that stands otherwise in JSON than it is declared.

    ``key`` is its name there, ``write`` makes the JSON value, ``read`` gets the object and the key and returns the field's value
    or raises :class:`jumar.errors.StoreDamagedError`. ``omit`` leaves the key out where the value is None.
    """
    return {_STORED: _Stored(key, write, read, omit)}


class Record:
    """Base of a frozen dataclass that stands in JSON."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object, ready for :func:`jumar.core.codec.encode`."""
        return dump(self)

    @classmethod
    def from_json(cls, fields: Fields) -> Self:
        """Return the record that ``fields`` hold. Errors: :class:`jumar.errors.StoreDamagedError` names file and field."""
        return load(cls, fields)


class FileRecord(Record):
    """Base of a record that is a file of its own: its JSON begins with the ``format``, which :func:`~.codec.decode` checks."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        return {"format": FORMAT, **dump(self)}


class _Kind(NamedTuple):
    """How values of one type are read and written.

    ``types`` are those it has in JSON; ``convert`` gets such a value and its place, and returns the field's; ``write`` is the way
    back. None for either: the value stays what it is.
    """

    types: frozenset[type]
    wanted: str
    convert: Callable[[Any, str], Any] | None = None
    write: Callable[[Any], Any] | None = None


class _Slot(NamedTuple):
    name: str
    key: str
    kind: _Kind
    plainly: frozenset[type]  # values of these types need no second look
    default: Callable[[], Any] | None
    read: Callable[[Fields, str], Any] | None
    omit: bool


class _RefusedError(Exception):
    """A value of the right JSON type that holds another: the message is what was wanted."""


def load(record: type[T], fields: Fields, *, without: Collection[str] = ()) -> T:
    """Return the record of this class that ``fields`` hold.

    The fields named in ``without`` are not looked at, and take their defaults. Errors: :class:`jumar.errors.StoreDamagedError`
    names the file and the field.
    """
    values: dict[str, Any] = {}
    data = fields.data
    for slot in _slots(record):
        name, key, kind, plainly, default, read, _omit = slot
        if name in without:
            continue
        if read is not None:
            values[name] = read(fields, key)
        elif key in data:
            value = data[key]
            values[name] = value if type(value) in plainly else _checked(kind, value, key, fields)
        elif default is not None:
            values[name] = default()
        else:
            raise fields.wrong(key, kind.wanted)
    return record(**values)


def _checked(kind: _Kind, value: Any, key: str, fields: Fields) -> Any:
    """Return the value of a field from what JSON has. Errors: :class:`StoreDamagedError`."""
    types, wanted, convert, _write = kind
    if type(value) not in types or (type(value) in _NUMBERS and float in types and not is_finite(value)):
        raise fields.wrong(key, wanted)
    if convert is None or value is None:
        return value
    try:
        return convert(value, f"{fields.where}: {key}")
    except _RefusedError as refused:
        raise fields.wrong(key, str(refused)) from None


def dump(record: object) -> dict[str, Any]:
    """Return the JSON object of a record: its fields in order, tuples as lists, mappings as dicts, sets sorted."""
    data: dict[str, Any] = {}
    for name, key, kind, _plainly, _default, _read, omit in _slots(type(record)):
        value = getattr(record, name)
        if value is not None or not omit:
            data[key] = value if value is None or kind.write is None else kind.write(value)
    return data


@functools.cache
def _slots(record: type) -> tuple[_Slot, ...]:
    hints = typing.get_type_hints(record)
    fields = dataclasses.fields(cast("Any", record))
    return tuple(_slot(field, _kind(hints[field.name])) for field in fields if field.init)


def _slot(field: dataclasses.Field[Any], kind: _Kind) -> _Slot:
    special: _Stored = field.metadata.get(_STORED, _Stored(None, None, None, omit=False))
    default: Callable[[], Any] | None = None
    if field.default_factory is not dataclasses.MISSING:
        default = field.default_factory
    elif field.default is not dataclasses.MISSING:
        default = functools.partial(_same, field.default)
    elif NoneType in kind.types:
        default = functools.partial(_same, None)
    if special.write is not None:
        kind = kind._replace(write=special.write)
    plainly = kind.types & ({NoneType} if kind.convert or float in kind.types else {NoneType, str, int, bool})
    return _Slot(field.name, special.key or field.name, kind, plainly, default, special.read, special.omit)


def _same(value: Any) -> Any:
    return value


_NUMBERS: Final = frozenset({int, float})
_SCALARS: Final[Mapping[object, _Kind]] = {
    str: _Kind(frozenset({str}), "a string"),
    int: _Kind(frozenset({int}), "a whole number"),
    float: _Kind(_NUMBERS, "a finite number"),
    bool: _Kind(frozenset({bool}), "true or false"),
}
_PLURALS: Final = {"a string": "strings", "a whole number": "whole numbers", "a finite number": "numbers", "an object": "objects"}


def _kind(hint: Any) -> _Kind:
    """Return how values of a type are read and written. Errors: ``TypeError`` for a type that no record may have."""
    if hint in _SCALARS:
        return _SCALARS[hint]
    if hint is Any:
        return _Kind(frozenset({str, int, float, bool, list, dict, NoneType}), "JSON", write=plain)
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return _choice(inner)
    if origin in {Union, types.UnionType}:
        return _either(inner)
    if origin is tuple:
        return _pair(inner) if inner[-1] is not Ellipsis else _list(_kind(inner[0]), tuple)
    if origin is frozenset:
        return _list(_kind(inner[0]), frozenset)
    if origin is Mapping:
        return _mapping(_kind(inner[1]))
    if dataclasses.is_dataclass(hint):
        return _nested(cast("type[Any]", hint))
    raise TypeError(f"no record can have a field of type {hint}")


def _choice(choices: tuple[str, ...]) -> _Kind:
    same = {choice: choice for choice in choices}
    wanted = "one of " + ", ".join(choices)

    def convert(value: str, _place: str) -> str:
        if value not in same:
            raise _RefusedError(wanted)
        return same[value]  # the class's own text: of many records it is in memory once

    return _Kind(frozenset({str}), wanted, convert)


def _either(inner: tuple[Any, ...]) -> _Kind:
    choices = [typing.get_args(each) for each in inner if typing.get_origin(each) is Literal]
    kinds = [_kind(each) for each in inner if each is not NoneType and typing.get_origin(each) is not Literal]
    if choices:
        kinds.append(_choice(tuple(itertools.chain.from_iterable(choices))))
    if len(kinds) > 1:
        raise TypeError(f"a field of a record is one type or None, not {inner}")
    kind = kinds[0]
    return kind._replace(types=kind.types | {NoneType})


def _list(item: _Kind, made: type[tuple[Any, ...] | frozenset[Any]]) -> _Kind:
    wanted = f"a list of {_PLURALS.get(item.wanted, item.wanted)}"

    def convert(values: list[Any], place: str) -> Any:
        if not set(map(type, values)) <= item.types or not all(map(is_finite, filter(_is_number, values))):
            raise _RefusedError(wanted)
        if item.convert is None:
            return made(values)
        return made([item.convert(value, f"{place}[{index}]") for index, value in enumerate(values)])

    def write(values: Any) -> list[Any]:
        ordered = sorted(values) if made is frozenset else values
        return list(ordered) if item.write is None else [item.write(value) for value in ordered]

    return _Kind(frozenset({list}), wanted, convert, write)


def _pair(inner: tuple[Any, ...]) -> _Kind:
    """A tuple of so many values, each of its own type."""
    kinds = [_kind(each) for each in inner]
    wanted = "a list of " + " and ".join(kind.wanted for kind in kinds)

    def convert(values: list[Any], place: str) -> tuple[Any, ...]:
        if len(values) != len(kinds):
            raise _RefusedError(wanted)
        fields = Fields({str(index): value for index, value in enumerate(values)}, place)
        return tuple(_member(kind, fields, str(index)) for index, kind in enumerate(kinds))

    def write(values: tuple[Any, ...]) -> list[Any]:
        return [_written(kind, value) for kind, value in zip(kinds, values, strict=True)]

    return _Kind(frozenset({list}), wanted, convert, write)


def _mapping(item: _Kind) -> _Kind:
    def convert(values: dict[str, Any], place: str) -> Mapping[str, Any]:
        fields = Fields(values, place)
        return MappingProxyType({key: _member(item, fields, key) for key in values})

    def write(values: Mapping[str, Any]) -> dict[str, Any]:
        return {key: _written(item, value) for key, value in values.items()}

    return _Kind(frozenset({dict}), "an object", convert, write)


def _member(kind: _Kind, fields: Fields, key: str) -> Any:
    return _checked(kind, fields.data[key], key, fields)


def _written(kind: _Kind, value: Any) -> Any:
    return value if value is None or kind.write is None else kind.write(value)


def _nested(record: type[Any]) -> _Kind:
    def convert(value: dict[str, Any], place: str) -> Any:
        return load(record, Fields(value, place))

    return _Kind(frozenset({dict}), "an object", convert, dump)


def _is_number(value: object) -> bool:
    return type(value) in _NUMBERS


def plain(value: Any) -> Any:
    """Return ``value`` with tuples as lists, mappings as dicts and records as their JSON, all the way down."""
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in cast("list[Any]", value)]
    return dump(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else value


def octal(mode: int) -> str:
    """Return permission bits as JSON has them: ``"0644"``."""
    return f"{mode:04o}"


def read_octal(fields: Fields, key: str) -> int:
    """Return permission bits from JSON. Errors: :class:`jumar.errors.StoreDamagedError`."""
    digits = fields.text(key)
    if not re.fullmatch("[0-7]{1,7}", digits):
        raise fields.wrong(key, "an octal number")
    return int(digits, 8)
