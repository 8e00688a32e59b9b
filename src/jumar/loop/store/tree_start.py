"""What lay in a tree when the loop began: kept in the loop's ``recheck/``, a file a tree."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from jumar.core import files
from jumar.core.codec import FORMAT, encode
from jumar.loop.store.integrity.trust import MarkTrust, place_of
from jumar.loop.store.layout import LoopPaths


@dataclass(slots=True)
class TreeStart:
    """One tree: its root's device and inode, the stamps of all that was in no snapshot, and what the start's checks changed.

    A directory in ``touched`` ends with a slash, and stands for all below it. None: they have not run. ``lost``: agents have
    worked in it, and nobody knows any more how it was.
    """

    root: tuple[int, int]
    entries: dict[str, str]
    touched: frozenset[str] | None = None
    lost: bool = False

    @classmethod
    def read(cls, paths: LoopPaths, trust: MarkTrust, tree: str) -> TreeStart | None:
        """Return what was kept of the tree of this name; None where nothing was, or nothing that jumar wrote."""
        path = _file(paths, tree)
        content = files.content_of(path)
        if content is None or not trust.takes(path, content):
            return None
        try:
            document = cast("dict[str, Any]", json.loads(content))
            entries = cast("dict[str, str]", json.loads(zlib.decompress(b64decode(document["entries"]))))
            device, inode = document["root"]
            touched = document["touched"]
            return cls((device, inode), entries, None if touched is None else frozenset(touched))
        except (zlib.error, ValueError, KeyError, TypeError):
            return None

    def write(self, paths: LoopPaths, trust: MarkTrust, tree: str) -> None:
        """Keep it. Errors: :class:`jumar.errors.StoreWriteError`."""
        document: dict[str, Any] = {"format": FORMAT, "root": self.root}
        document["touched"] = None if self.touched is None else sorted(self.touched)
        document["entries"] = b64encode(zlib.compress(json.dumps(self.entries).encode(), 1)).decode()
        path = _file(paths, tree)
        with files.as_write_error("write", path):
            files.make_directory(path.parent)
            files.replace_file(path, encode(document, exact=True, place=place_of(trust.nonce, path)))


def _file(paths: LoopPaths, tree: str) -> Path:
    return paths.recheck / f"start-{tree}.json"
