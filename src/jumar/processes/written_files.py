"""Reading files that a candidate made: inside the working directory only, regular files only, and never without a limit.

A working directory is written by a program that nobody vetted: a document may be a link to somebody's key, a FIFO that blocks
whoever opens it, or larger than memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from jumar.core.files import UnreadableFileError, as_write_error
from jumar.core.leftovers import is_of_the_machine
from jumar.core.redaction import current
from jumar.errors import ConfigError

FILE_LIMIT = 16 << 20
FILES_LIMIT = 1_000
_MAGIC = frozenset("*?[")


def read_regular(path: Path, *, limit: int = FILE_LIMIT) -> bytes:
    """Return the content of a regular file. A FIFO or device is refused without waiting for it.

    Errors: ``FileNotFoundError``; :class:`StoreWriteError` of a disk that refuses to read it; :class:`UnreadableFileError` for
    anything else, more than ``limit`` bytes included.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise UnreadableFileError("cannot be read: it is not a regular file")
            with os.fdopen(fd, "rb", closefd=False) as file:
                content = file.read(limit + 1)
        finally:
            os.close(fd)
    except FileNotFoundError:
        raise
    except OSError as error:
        _refuse(path, error)
        raise UnreadableFileError(f"cannot be read: {os.strerror(error.errno or 0).lower()}") from error
    if len(content) > limit:
        raise UnreadableFileError(f"cannot be read: it is larger than {limit >> 20} MiB")
    return content


def _refuse(path: Path, error: OSError) -> None:
    """Raise what the machine is to blame for; a link may lead to a file of ``/proc`` that refuses every reader."""
    if is_of_the_machine(error) and not os.path.islink(path):
        with as_write_error("read", path):
            raise error


def check_relative(path: str, *, where: str) -> str:
    """Refuse a configured path or pattern that would leave the working directory. Errors: :class:`jumar.errors.ConfigError`."""
    pure = PurePosixPath(path)
    if not path.strip() or pure.is_absolute() or ".." in pure.parts or "\0" in path:
        raise ConfigError(f"{where}: the path {path!r} should lie below the working directory, without '..'")
    if any("**" in part and part != "**" for part in pure.parts):
        raise ConfigError(f"{where}: in the path {path!r}, '**' should stand alone between slashes")
    return path


def find_files(workdir: Path, pattern: str, *, among: Collection[str] = ()) -> tuple[Path, ...]:
    """Return the files that ``pattern`` (a relative path, or a glob with ``*``, ``?``, ``[…]``, ``**``) names, sorted by path.

    A glob passes over hidden directories that it does not name (``.git``, ``.jumar``, caches), and sees only the relative paths
    ``among`` where there are any. A link is followed when what it leads to lies in the working directory too. No match returns an
    empty tuple. Errors: :class:`UnreadableFileError` for a link that leads out, or for more than :data:`FILES_LIMIT` files.
    """
    files = [workdir / pattern]
    if _MAGIC & set(pattern):
        named = set(pattern.split("/"))
        relative = (path.relative_to(workdir) for path in workdir.glob(pattern))
        files = sorted(
            workdir / path
            for path in relative
            if not any(part.startswith(".") and part not in named for part in path.parts[:-1])
            and (not among or path.as_posix() in among)
        )
    files = [path for path in files if os.path.lexists(path) and not path.is_dir()]
    for path in files:
        if not _stays_inside(path, workdir):
            raise UnreadableFileError(f"'{path.relative_to(workdir)}' leads out of the working directory")
    if len(files) > FILES_LIMIT:
        raise UnreadableFileError(f"'{pattern}' matches {len(files):,} files; at most {FILES_LIMIT:,} are read")
    return tuple(files)


def _stays_inside(path: Path, root: Path) -> bool:
    try:
        real = os.path.realpath(path, strict=True)
    except FileNotFoundError:
        real = os.path.realpath(path)
    except OSError as error:  # links in a circle; without strict, Python 3.13 takes them as they are
        _refuse(path, error)
        return False
    return Path(real).is_relative_to(root.resolve())


def read_text(workdir: Path, patterns: tuple[str, ...], *, among: Collection[str] = ()) -> str | None:
    """Return the text of all files that ``patterns`` name, joined by blank lines; None when there is none.

    Bytes that are not UTF-8 become replacement characters; a byte order mark is left out. Errors: as :func:`find_files`, and
    :class:`UnreadableFileError` naming the file, also when all together are larger than :data:`FILE_LIMIT`.
    """
    files = dict.fromkeys(path for pattern in patterns for path in find_files(workdir, pattern, among=among))
    texts: list[str] = []
    left = FILE_LIMIT
    for path in files:
        try:
            content = read_regular(path, limit=left)
        except FileNotFoundError:  # a link that leads nowhere
            continue
        except UnreadableFileError as error:
            raise UnreadableFileError(f"'{path.relative_to(workdir)}' {error}") from error
        left -= len(content)
        texts.append(content.decode("utf-8-sig", "replace").replace("\r\n", "\n"))
    return "\n\n".join(texts) if texts else None


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """What a file is: tells a fresh report from one that lay there before. ``digest`` is of the content, None of a large one."""

    inode: int
    mtime_ns: int
    atime_ns: int
    ctime_ns: int
    size: int
    digest: bytes | None

    def written_since(self, before: FileIdentity | None) -> bool:
        """Whether the file was written since ``before``, with the same content or another.

        Not, when only its mode changed, or its times: who touches a file gives both one value, and a write changes one.
        """
        if before is None or (self.size, self.digest) != (before.size, before.digest):
            return True
        return self.inode != before.inode or self.mtime_ns not in {before.mtime_ns, self.atime_ns}


def identity(path: Path) -> FileIdentity | None:
    """Return the identity of the file that ``path`` leads to, or None when there is none. Errors: of a disk, as above."""
    try:
        found = path.stat()
    except OSError as error:
        _refuse(path, error)
        return None
    digest = None
    if stat.S_ISREG(found.st_mode) and found.st_size <= FILE_LIMIT:
        with contextlib.suppress(OSError, UnreadableFileError):
            digest = hashlib.blake2b(read_regular(path), digest_size=16).digest()
    return FileIdentity(found.st_ino, found.st_mtime_ns, found.st_atime_ns, found.st_ctime_ns, found.st_size, digest)


def log_name(kind: str, name: str) -> str:
    """Return the file name of a log: ``check-tests.log``. Names that are no file names are shortened and told apart by a hash."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", current().redact(name))[:60]
    if plain != name:
        plain = f"{plain}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
    return f"{kind}-{plain}.log"
