"""Whose word is taken in a run: of its records those that this user's jumar wrote for this very place."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from jumar.core.codec import Fields, decode, encode
from jumar.core.files import read_store_file
from jumar.core.marks import origin
from jumar.core.refusals import is_of_the_machine
from jumar.errors import ForgedError, FormatTooNewError, StoreDamagedError

_WAY: Final = "`jumar cases run --resume` sets it aside and says so"
_WITHOUT: Final = "restore it from a backup, or start another run"


class RunTrust:
    """Reads and encodes the records of the run in ``directory``. ``fields`` are those of its ``run.json``, ``data`` its content.

    ``ours``: the run was begun by this user's jumar on this machine, and what has no mark of it is not taken. Another run is
    taken as it was found. Errors: :class:`StoreDamagedError`.
    """

    def __init__(self, directory: Path) -> None:
        self._above = f"{os.fspath(directory)}/"
        self.path = directory / "run.json"
        self.data = read_store_file(self.path)
        try:
            self.fields = decode(self.data, os.fspath(self.path))
        except FormatTooNewError:
            raise
        except StoreDamagedError as error:
            raise StoreDamagedError(f"{error}; {_WITHOUT}") from error
        self._nonce = str(self.fields.data.get("nonce", ""))
        found = origin(self.data, self.place(self.path))
        if found == "forged":
            raise ForgedError(self.path, _WITHOUT)
        self.ours = found == "ours"

    def place(self, path: Path) -> str:
        """Return what a mark says of a record: an iteration has the same place while it is made and after it was acknowledged."""
        relative = os.fspath(path).removeprefix(self._above)
        return f"{self._nonce}/{relative.replace('/pending/', '/iterations/', 1)}"

    def encode(self, document: Mapping[str, Any], path: Path) -> bytes:
        """Return the record for ``path``, with its seal and mark."""
        return encode(document, sealed=True, place=self.place(path))

    def takes(self, path: Path, data: bytes) -> bool:
        """Return whether ``data``, which lies at ``path``, may be believed to be a jumar's."""
        return not self.ours or origin(data, self.place(path)) == "ours"

    def read(self, path: Path) -> Fields:
        """Return a record that has to be there.

        Errors: :class:`StoreDamagedError`; in a run of ours :class:`ForgedError` for whatever is not a record of ours, but for
        what the machine refuses to read.
        """
        try:
            data = read_store_file(path)
            if self.takes(path, data):
                return decode(data, os.fspath(path))
        except StoreDamagedError as error:
            if not self.ours or is_of_the_machine(error) or isinstance(error, FormatTooNewError):
                raise type(error)(str(error).replace("`jumar verify`", "`jumar cases verify RUN`")) from error
        raise ForgedError(path, _WAY)
