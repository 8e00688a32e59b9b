"""Whose word is taken: of the files of a loop those that this user's jumar wrote for this very place."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

from jumar.core import files
from jumar.core.codec import FORMAT, encode
from jumar.core.files import read_store_file
from jumar.core.marks import origin, remarked
from jumar.errors import ForgedError, OtherKeyError, StoreDamagedError

FROM_ELSEWHERE: Final = (
    "what is recorded of this loop was written on another machine, by another user or by an older jumar: it is believed as it "
    "lies"
)
"""What a person is told of a loop that is not :attr:`MarkTrust.ours`."""

_LOOP_JSON: Final = "loop.json"
_VOUCHED: Final = "vouched.json"
_MADE_WHOLE: Final = frozenset({"iterations", "checks"})
_PARTS: Final = ("artifacts", "manifest.json", "metrics.json", "stage.json")
_NOT_OURS: Final = frozenset({"artifacts", "logs", "quarantine", "scratch"})  # no records lie there


def place_of(nonce: str, path: str | os.PathLike[str]) -> str:
    """Return what a mark says of the file at ``path``: the loop, by its nonce, and its name with that of the directory around it.

    A snapshot has the same place while it waits and after it was acknowledged; a loop that is copied or renamed keeps its places.
    """
    parent, name = os.fspath(path).split("/")[-2:]
    return f"{nonce}/{name}" if name == _LOOP_JSON else f"{nonce}/{parent}/{name}"


class MarkTrust:
    """Reads the files of the loop with this ``nonce``, whose ``loop.json`` is ``data``.

    ``ours``: the loop was begun by this user's jumar on this machine, and what has no mark of a jumar is not taken. Another loop
    is taken as it was found.
    """

    def __init__(self, nonce: str, path: Path, data: bytes) -> None:
        self.nonce = nonce
        found = origin(data, place_of(nonce, path))
        if found == "forged":
            raise ForgedError(path, "restore it from a backup, or begin another loop with `jumar run --new`")
        self.ours = found == "ours"

    def read(self, path: str | Path) -> bytes:
        """Return the content of a file that has to be there.

        Errors: :class:`jumar.errors.StoreDamagedError`, its kinds :class:`ForgedError` for a file that is not jumar's, and
        :class:`OtherKeyError`.
        """
        try:
            data = read_store_file(path)
        except StoreDamagedError as error:
            irregular = os.path.islink(path) or (os.path.exists(path) and not os.path.isfile(path))
            if self.ours and (irregular or _is_bare(Path(path))):
                raise ForgedError(Path(path)) from error
            raise
        if not self.takes(path, data):
            raise OtherKeyError(Path(path)) if self._foreign(path, data) else ForgedError(Path(path))
        return data

    def takes(self, path: str | Path, data: bytes) -> bool:
        """Return whether ``data``, which lies at ``path``, may be believed to be a jumar's.

        The mark of a key that is not here proves nothing, so that in a loop of ours it is none.
        """
        return not self.ours or origin(data, place_of(self.nonce, path)) == "ours"

    def believe(self, directory: Path) -> int:
        """Give our mark to what bears another key's below ``directory``, the loop's: a person's word, under the lock.

        Returns how many files there were. Errors: :class:`jumar.errors.StoreWriteError`.
        """
        believed = 0
        for relative, entry in files.walk(directory, prune=lambda path: path.rsplit("/", 2)[-2] in _NOT_OURS):
            data = files.content_of(entry.path) if relative.endswith(".json") and "/" in relative else None
            if data is not None and self._foreign(relative, data):
                with files.as_write_error("write", Path(entry.path)):
                    files.replace_file(Path(entry.path), remarked(data, place_of(self.nonce, relative)))
                believed += 1
        return believed

    def _foreign(self, path: str | Path, data: bytes) -> bool:
        return self.ours and origin(data, place_of(self.nonce, path)) == "elsewhere"

    def vouch(self, folder: Path, place: str) -> None:
        """Keep beside the files below ``folder``, which a later iteration reads again, what they are now.

        Errors: :class:`jumar.errors.StoreWriteError`.
        """
        path = folder / _VOUCHED
        with files.as_write_error("write", path):
            files.replace_file(path, encode({"format": FORMAT, "files": _digests(folder)}, exact=True, place=self._of(place)))

    def vouches(self, folder: Path, place: str) -> bool:
        """Return whether the files below ``folder`` are what they were when jumar vouched for them, or nobody can tell."""
        if not self.ours:
            return True
        data = files.content_of(folder / _VOUCHED) or b""
        if origin(data, self._of(place)) != "ours":
            return False
        return json.loads(data)["files"] == _digests(folder)

    def _of(self, place: str) -> str:
        return f"{self.nonce}/{place}/{_VOUCHED}"


def _is_bare(path: Path) -> bool:
    """Whether what ``path`` should lie in is named like an iteration or a copy, and is none: jumar makes those whole."""
    unit = path.parent
    if unit.parent.name not in _MADE_WHOLE or not os.path.lexists(unit):
        return False
    return not any(os.path.lexists(unit / part) for part in _PARTS)


def _digests(folder: Path) -> dict[str, str]:
    found = ((relative, entry) for relative, entry in files.walk(folder) if entry.is_file(follow_symlinks=False))
    return {os.fspath(relative): files.digest_of(Path(entry.path)) for relative, entry in found if entry.name != _VOUCHED}
