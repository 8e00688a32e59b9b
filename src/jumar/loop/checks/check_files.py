"""What a check consists of: the files whose content decides about candidates, hashed before the first of them.

A check's files are its programs (:mod:`jumar.loop.checks.check_programs`), the modules of its ``python = "module:function"``,
what its configuration reads (a rubric, patterns), and what a person names with ``files``. What a test runner merely collects
from the tree is not among them: that is what ``protect`` is for.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Final

from jumar.core.files import sha256_file
from jumar.core.text import escape
from jumar.errors import ConfigError
from jumar.loop.checks.check_programs import is_interpreter, module_file, programs

_SITES: Final = ("lib/python3*/site-packages", "lib/python3*/dist-packages", "local/lib/python3*/dist-packages")
_LARGEST: Final = 256_000_000  # bytes; what is larger is data, and no program


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSource:
    """One check, scorer or judge, or a function that jumar itself calls.

    ``files`` None: found from its command; else these instead, relative to the working directory.

    ``read`` are files that its configuration names.
    """

    label: str
    command: str | tuple[str, ...] | None = None
    reference: str | None = None
    files: tuple[str, ...] | None = None
    read: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckFile:
    """One file of a check. ``path`` is relative (POSIX) when the file lies in the working directory, else absolute.

    ``digest`` is the SHA-256 of its content at the start, a link followed.
    """

    path: str
    digest: str
    used_by: str
    in_tree: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardRules:
    """What a loop guards: ``protect`` in gitignore syntax, the files of its checks, and the configuration in use.

    ``absent`` are relative paths that must not appear: Python would take them for the module that a check runs. ``installed`` are
    the names of modules that are installed where the checks run.
    """

    protect: tuple[str, ...] = ()
    files: tuple[CheckFile, ...] = ()
    config: Path | None = None
    notices: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    installed: frozenset[str] = frozenset()

    def recorded(self) -> dict[str, dict[str, str]]:
        """Return the files of the checks as ``loop.json`` keeps them."""
        return {file.path: {"sha256": file.digest, "used_by": file.used_by} for file in self.files}


def check_files(
    sources: Iterable[CheckSource], *, workdir: Path, base: Path, is_candidate: Callable[[str], bool]
) -> tuple[CheckFile, ...]:
    """Return the files of all ``sources``, each once, sorted by path. What does not exist yet is no file of a check.

    ``base`` is the configuration's directory. ``is_candidate`` says of a relative path that a person named this very file as what
    the generator is to change; it then counts only when ``files`` names it too. Errors: :class:`jumar.errors.ConfigError` for
    ``files`` that match nothing or cannot be read.
    """
    found: dict[str, CheckFile] = {}
    for source in sources:
        for path in dict.fromkeys(_of(source, workdir, base)):
            file = _file(path, source, workdir)
            if file is None or (source.files is None and file.in_tree and is_candidate(file.path)):
                continue
            found.setdefault(file.path, file)
    return tuple(found[path] for path in sorted(found))


def shadows(sources: Iterable[CheckSource], *, workdir: Path) -> tuple[str, ...]:
    """Return the relative paths that, were they there, would run instead of a check's modules; sorted.

    Those are the modules of ``python -m module`` and of ``python = "module:function"``.

    ``python -m`` looks in the working directory first. What is there already is what the check means.
    """
    found: set[str] = set()
    for source in sources:
        module = None if source.reference is None or source.files is not None else source.reference.partition(":")[0]
        place = None if module is None else module_file(module, (workdir,))
        if place is not None and place.name != "__init__.py":
            stem = place.relative_to(workdir).with_suffix("").as_posix()
            candidates = (f"{stem}/__init__.py", *(stem + suffix for suffix in EXTENSION_SUFFIXES))
            found.update(path for path in candidates if not os.path.lexists(workdir / path))
        words = programs(source.command) if source.command is not None and source.files is None else ()
        for top in {word[3:].partition(".")[0] for word in words if word.startswith("-m ")}:
            candidates = (f"{top}.py", f"{top}/__init__.py", f"{top}/__main__.py")
            if not any(os.path.lexists(workdir / path) for path in (top, candidates[0])):
                found.update(candidates)
    return tuple(sorted(found))


def installed_modules(sources: Iterable[CheckSource], *, workdir: Path) -> frozenset[str]:
    """Return the names of the modules that are installed beside the programs of the checks; nothing is run to find them.

    Left out is what was installed from a directory: that may be the project itself, whose modules are the generator's.
    """
    words = [word for source in sources if source.command is not None for word in programs(source.command)]
    paths = [Path(sys.executable), *(Path(found) for word in ("python3", "python", *words) if (found := shutil.which(word)))]
    prefixes = {prefix for path in paths for prefix in (path.absolute().parents[1:2], path.resolve().parents[1:2])}
    places = [*(prefix for found in prefixes for prefix in found), workdir / ".venv", workdir / "venv"]
    names: set[str] = set()
    for place in dict.fromkeys((*places, *map(Path, filter(None, map(os.environ.get, ("VIRTUAL_ENV", "CONDA_PREFIX")))))):
        for pattern in _SITES:
            for site in place.glob(pattern):
                with contextlib.suppress(OSError):
                    names |= _modules_in(site)
    return frozenset(names)


def _modules_in(site: Path) -> set[str]:
    """Return the names that can be imported from a directory of installed packages, but those of a local project."""
    names, local = set[str](), set[str]()
    for path in site.iterdir():
        name, _, ending = path.name.partition(".")
        if path.name.endswith(".dist-info"):
            with contextlib.suppress(OSError):
                if b'"file:' in (path / "direct_url.json").read_bytes():
                    listed = (path / "RECORD").read_text(encoding="utf-8", errors="replace").splitlines()
                    local.update(line.partition("/")[0].partition(".")[0] for line in listed)
        elif name.isidentifier() and (not ending or ending.rpartition(".")[2] in {"py", "so", "pyd"}):
            names.add(name)
    return names - local


def _of(source: CheckSource, workdir: Path, base: Path) -> Iterator[Path]:
    yield from source.read
    if source.files is not None:
        for pattern in source.files:
            yield from _named(pattern, source.label, workdir, base)
        return
    if source.reference is not None:
        found = module_file(source.reference.partition(":")[0], (base, workdir))
        yield from () if found is None else _with_packages(found, (base, workdir))
    if source.command is not None:
        for word in programs(source.command):
            yield from _program(word, workdir, base)


def _named(pattern: str, label: str, workdir: Path, base: Path) -> Iterator[Path]:
    candidates = [Path(pattern)] if pattern.startswith("/") else [workdir / pattern, base / pattern]
    for path in candidates:
        if path.is_file():
            yield path
            return
    matched: list[Path] = []
    if not pattern.startswith("/"):
        for directory in (workdir, base):
            try:
                matched = sorted(path for path in directory.glob(pattern.rstrip("/")) if path.is_file())
            except (ValueError, NotImplementedError) as error:
                raise ConfigError(f"{label}: files = {pattern!r} is no pattern: {error}") from None
            if matched:
                break
    if not matched:
        raise ConfigError(f"{label}: files names {pattern!r}, and there is no such file in {escape(str(workdir))}")
    yield from matched


def _program(word: str, workdir: Path, base: Path) -> Iterator[Path]:
    """Yield the file of a program's word, and what it leads to when it is a link."""
    if word.startswith("-m "):
        module = module_file(word[3:], (workdir,))
        yield from () if module is None else _with_packages(module, (workdir,))
        return
    path: Path | None = workdir / _home(word)
    if "/" not in word and not (path and path.is_file()):
        where = shutil.which(word)
        path = Path(where) if where is not None and _below(Path(where), (workdir, base)) else None
    if path is None or is_interpreter(path.name):
        return
    yield path
    if path.is_symlink():
        target = path.resolve()
        if _below(target, (workdir, base)):
            yield target


def _home(word: str) -> str:
    """Return ``word`` as a shell sees it; a home that nobody knows stays as it is written."""
    if not word.startswith("~"):
        return word
    with contextlib.suppress(RuntimeError):
        return os.fspath(Path(word).expanduser())
    return word


def _below(path: Path, directories: Sequence[Path]) -> bool:
    return any(path.is_relative_to(directory) for directory in directories)


def _with_packages(module: Path, directories: Sequence[Path]) -> Iterator[Path]:
    """Yield a module and the ``__init__.py`` of the packages around it: they run first."""
    yield module
    parent = module.parent
    while parent not in directories and (parent / "__init__.py").is_file():
        yield parent / "__init__.py"
        parent = parent.parent


def _file(path: Path, source: CheckSource, workdir: Path) -> CheckFile | None:
    absolute = Path(os.path.normpath(path if path.is_absolute() else workdir / path))
    try:
        status = absolute.stat()
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
        return None
    in_tree = absolute.is_relative_to(workdir)
    try:
        digest = sha256_file(absolute.resolve())
    except OSError as error:
        raise ConfigError(f"{source.label}: {escape(str(absolute))} cannot be read: {os.strerror(error.errno or 0)}") from None
    shown = absolute.relative_to(workdir).as_posix() if in_tree else os.fspath(absolute)
    return CheckFile(path=shown, digest=digest, used_by=source.label, in_tree=in_tree)
