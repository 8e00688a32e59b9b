"""Reading JSON that may be damaged: typed fields, and errors that name the file and the field.

Persisted files are plain JSON with an integer ``format``. Names of files may hold bytes that are not UTF-8; Python carries them
as lone surrogates, and ``json`` writes them as escapes, so that they survive a round trip.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from jumar.core.marks import MARK, mark
from jumar.core.redaction import current, redacted_json
from jumar.errors import FormatTooNewError, StoreDamagedError

FORMAT = 1
_SEAL = "seal"
_PIECE = 1_000
_SEALED = re.compile(rb'"seal": ?"([0-9a-f]{64})"')
_TAIL = 400  # bytes that hold seal and mark

EXACT = frozenset(
    {
        *("path", "target", "artifacts", "artifacts_modified", "artifacts_detail", "removed", "changed", "entries", "moves"),
        *("snapshot_path", "content_hash", "workdir", "loop_id", "nonce", "commits", "config", "storage_path", "inputs"),
        *("seal", "artifacts_seal", "snapshot"),
    }
)
"""Keys whose values say where something is, or which: they stay what they are, or would point to nothing."""


def encode(
    data: Mapping[str, Any],
    *,
    compact: bool = False,
    sealed: bool = False,
    exact: bool = False,
    place: str | None = None,
    default: Callable[[Any], Any] | None = None,
) -> bytes:
    """Return ``data`` as JSON bytes with a final line feed. NaN and infinities are refused with ``ValueError``.

    Secrets are taken out of every text but those below a key of :data:`EXACT`; with ``exact``, of none. ``sealed`` adds a digest
    of the content, by which :func:`broken_seal` tells a file that was changed after it was written; ``place`` adds the mark of
    :mod:`jumar.core.marks`, by which it is told who wrote it. ``default`` gives the JSON of what is none, one at a time.
    """
    if not exact:
        data = _without_secrets(data)
    if sealed:
        data = {**data, _SEAL: _digest(data, default)}
    file = io.BytesIO()
    for part in _parts(data, default) if compact else [json.dumps(data, allow_nan=False, indent=2)]:
        file.write(part.encode("ascii"))
    file.write(b"\n")
    if place is not None:
        mark(file, place)
    return file.getvalue()


def _parts(data: Mapping[str, Any], default: Callable[[Any], Any] | None, *, sort_keys: bool = False) -> Iterator[str]:
    """Yield JSON without white space; tuples of very many in pieces, or that of a large tree would be in memory several times."""
    dumps = json.JSONEncoder(allow_nan=False, separators=(",", ":"), sort_keys=sort_keys, default=default).encode
    long = {key for key, value in data.items() if isinstance(value, tuple) and len(cast("tuple[Any]", value)) > _PIECE}
    if not long:
        yield dumps(data)
        return
    before = "{"
    for key in sorted(data) if sort_keys else data:
        yield f"{before}{dumps(key)}:"
        before = ","
        for at in range(0, len(data[key]) if key in long else 0, _PIECE):
            yield ("," if at else "[") + dumps(data[key][at : at + _PIECE])[1:-1]
        yield "]" if key in long else dumps(data[key])
    yield "}"


def _without_secrets(data: Mapping[str, Any]) -> Mapping[str, Any]:
    redactor = current()
    # one search through all of it is much quicker than one through each text
    inexact = {name: value for name, value in data.items() if name not in EXACT}
    if not redactor.finds(json.dumps(inexact, allow_nan=False, separators=(",", ":")).encode("ascii")):
        return data
    clean: Mapping[str, Any] = redacted_json(data, redactor.redact, EXACT)
    return clean


def _digest(data: Mapping[str, Any], default: Callable[[Any], Any] | None = None) -> str:
    """Return the SHA-256 of the content, whatever its layout: keys sorted, no white space."""
    digest = hashlib.sha256()
    for part in _parts(data, default, sort_keys=True):
        digest.update(part.encode("ascii"))
    return digest.hexdigest()


def broken_seal(data: Mapping[str, Any]) -> str | None:
    """Return why the content of a sealed file is not what was written, or None when it is.

    It guards against accidents, not forgers: :func:`jumar.core.marks.origin` does.
    """
    seal = data.get(_SEAL)
    if seal is None:
        return "has no seal: it was not written by jumar, or was changed since"
    content = {key: value for key, value in data.items() if key not in {_SEAL, MARK}}
    return None if seal == _digest(content) else "was changed after it was written: its content does not match its seal"


def seal_of(data: bytes) -> str:
    """Return the seal in the bytes of a sealed file, which stands at its end; empty where there is none."""
    found = _SEALED.findall(data[-_TAIL:])
    return found[-1].decode() if found else ""


def decode(data: bytes, where: str, *, versioned: bool = True) -> Fields:
    """Read one JSON object. ``where`` is the file's path, for messages. Errors: :class:`StoreDamagedError`."""
    try:
        parsed: object = json.loads(data)
    except (ValueError, RecursionError) as error:
        detail = str(error) if data.strip() else "the file is empty"
        raise StoreDamagedError(f"{where}: not readable as JSON ({detail}); `jumar verify` lists what is damaged") from error
    if not isinstance(parsed, dict):
        raise StoreDamagedError(f"{where}: expected a JSON object, found {type(parsed).__name__}")
    fields = Fields(cast("dict[str, Any]", parsed), where)
    if versioned:
        found = fields.integer("format")
        if found > FORMAT:
            raise FormatTooNewError(
                f"{where}: format {found} was written by a newer jumar; this one reads up to {FORMAT}. Upgrade jumar."
            )
    return fields


def is_finite(value: float) -> bool:
    """Return whether ``value`` is finite. An integer that no float can hold is not: it could not be compared with one."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def flat(data: Any, prefix: str = "") -> dict[str, Any]:
    """Return nested objects as one, by dotted names: for telling what differs between two configurations. Tuples become lists."""
    if isinstance(data, Mapping) and data:
        found: dict[str, Any] = {}
        for key, value in cast("Mapping[str, Any]", data).items():
            found |= flat(value, f"{prefix}.{key}" if prefix else str(key))
        return found
    return {prefix: list(cast("tuple[Any, ...]", data)) if isinstance(data, tuple) else data}


class Fields:
    """Typed access to a JSON object; a missing or mistyped field is a :class:`StoreDamagedError` that names it."""

    def __init__(self, data: Mapping[str, Any], where: str) -> None:
        self.data = data
        self.where = where

    def wrong(self, name: str, wanted: str) -> StoreDamagedError:
        """Return the error for a field that is missing or not what was ``wanted``."""
        found = "missing" if name not in self.data else f"{self.data[name]!r:.60}"
        return StoreDamagedError(f"{self.where}: field '{name}' should be {wanted}, is {found}")

    def text(self, name: str) -> str:
        value = self.data.get(name)
        if not isinstance(value, str):
            raise self.wrong(name, "a string")
        return value

    def text_or_none(self, name: str) -> str | None:
        return None if self.data.get(name) is None else self.text(name)

    def integer(self, name: str) -> int:
        value = self.data.get(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.wrong(name, "a whole number")
        return value

    def integer_or_none(self, name: str) -> int | None:
        return None if self.data.get(name) is None else self.integer(name)

    def number(self, name: str) -> float:
        """Integers stay integers, so that scores written by other tools come back as they were."""
        value = self.data.get(name)
        if not isinstance(value, int | float) or isinstance(value, bool) or not is_finite(value):
            raise self.wrong(name, "a finite number")
        return value

    def number_or_none(self, name: str) -> float | None:
        return None if self.data.get(name) is None else self.number(name)

    def boolean(self, name: str) -> bool:
        value = self.data.get(name)
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return value

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        value = self.text(name)
        if value not in choices:
            raise self.wrong(name, "one of " + ", ".join(choices))
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.data.get(name, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in cast("list[object]", value)):
            raise self.wrong(name, "a list of strings")
        return tuple(cast("list[str]", value))

    def numbers(self, name: str) -> dict[str, float]:
        section = self.section(name)
        return {key: section.number(key) for key in section.data}

    def section(self, name: str) -> Fields:
        value = self.data.get(name)
        if not isinstance(value, dict):
            raise self.wrong(name, "an object")
        return Fields(cast("dict[str, Any]", value), f"{self.where}: {name}")

    def section_or_none(self, name: str) -> Fields | None:
        return None if self.data.get(name) is None else self.section(name)

    def sections(self, name: str) -> tuple[Fields, ...]:
        value = self.data.get(name, [])
        if not isinstance(value, list):
            raise self.wrong(name, "a list of objects")
        items = cast("list[object]", value)
        if not all(isinstance(item, dict) for item in items):
            raise self.wrong(name, "a list of objects")
        return tuple(Fields(cast("dict[str, Any]", item), f"{self.where}: {name}[{index}]") for index, item in enumerate(items))
