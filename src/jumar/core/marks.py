"""What jumar wrote, told from what any other program could have written: a mark in the last line of a file.

A mark is an HMAC-SHA256 under a key of this user, which lies in the state directory of the user and not where programs of a loop
work. It covers the bytes before it, and the *place*: what the file is, in which loop. A file that is copied to another place has
the wrong mark there. A store that comes from another machine, another user or an older jumar cannot be told from a forged one;
who reads it decides what that means.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import hmac
import io
import os
import re
from pathlib import Path
from typing import Final, Literal

MARK: Final = "mark"
_TAIL: Final = re.compile(rb',\s*"mark": ?"([0-9a-f]{12}):([0-9a-f]{64})"\s*\}\s*\Z')
_LONGEST: Final = 160  # bytes of a tail
_KEY_BYTES: Final = 32

Origin = Literal["ours", "elsewhere", "unmarked", "forged"]
"""``elsewhere``: marked with a key that is not here. ``forged``: marked with the name of our key, and not by it."""


def state_directory() -> Path:
    """Return where jumar keeps what belongs to this user and to no project (``XDG_STATE_HOME``, else ``~/.local/state``)."""
    base = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".local" / "state") / "jumar"


def _key() -> bytes | None:
    return _key_of(os.environ.get("XDG_STATE_HOME"), os.environ.get("HOME"))  # asked for with every record that is read


@functools.cache
def _key_of(_state: str | None, _home: str | None) -> bytes | None:
    """Return the key, made where there is none; None where none can be kept. The arguments are what its place depends on."""
    try:
        path = state_directory() / "key"
    except RuntimeError:  # nobody's home
        return None
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = path.with_name(f".tmp-{os.urandom(6).hex()}")
        if not path.exists():
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, os.urandom(_KEY_BYTES))
                os.fsync(fd)
            finally:
                os.close(fd)
            try:
                with contextlib.suppress(FileExistsError):  # another process was faster
                    os.link(temporary, path)
            finally:
                temporary.unlink()
    with contextlib.suppress(OSError):
        key = path.read_bytes()
        return key if len(key) == _KEY_BYTES else None
    return None


@functools.cache
def _name(key: bytes) -> bytes:
    return hashlib.sha256(b"jumar key " + key).hexdigest()[:12].encode()


def _mac(key: bytes, data: memoryview, place: str) -> bytes:
    mac = hmac.new(key, os.fsencode(place) + b"\0", "sha256")
    mac.update(data)
    return mac.hexdigest().encode()


def marked(data: bytes, place: str) -> bytes:
    """Return the JSON object ``data`` with a mark for ``place`` as its last member; as it is where there is no key."""
    file = io.BytesIO(data)
    mark(file, place)
    return file.getvalue()


def mark(file: io.BytesIO, place: str) -> None:
    """Do what :func:`marked` does to the object in ``file``, which may have many megabytes."""
    key = _key()
    if key is None:
        return
    with file.getbuffer() as data:
        line = b"\n  " if bytes(data[:2]) == b"{\n" else b""
        length = _stripped(data, _stripped(data, len(data)) - 1)  # without the last brace
        with data[:length] as covered:  # let go by name: a profiler may hold the frames, and a buffer in use takes no more bytes
            mac = _mac(key, covered, place)
    file.seek(length)
    file.write(b',%s"mark": "%s:%s"%s' % (line, _name(key), mac, b"\n}\n" if line else b"}\n"))
    file.truncate()


def _stripped(data: memoryview, length: int) -> int:
    while data[length - 1] in b" \n":
        length -= 1
    return length


def origin(data: bytes, place: str) -> Origin:
    """Return who wrote a file whose content is ``data``, if it was written for ``place``."""
    found = _TAIL.search(data, max(0, len(data) - _LONGEST))
    if found is None:
        return "unmarked"
    key = _key()
    if key is None or found[1] != _name(key):
        return "elsewhere"
    return "ours" if hmac.compare_digest(found[2], _mac(key, memoryview(data)[: found.start()], place)) else "forged"


def remarked(data: bytes, place: str) -> bytes:
    """Return ``data`` with our mark in the place of the one that it bears."""
    found = _TAIL.search(data, max(0, len(data) - _LONGEST))
    return marked(data[: found.start()] + (b"\n}\n" if data[:2] == b"{\n" else b"}\n") if found else data, place)
