"""What a check consists of: the files whose content decides about candidates, hashed before the first of them.

A check's files are its programs (:func:`programs`), the modules of its ``python = "module:function"``,
what its configuration reads (a rubric, patterns), and what a person names with ``files``. What a test runner merely collects
from the tree is not among them: that is what ``protect`` is for.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Final

from jumar.core.files import digest_of, read_bytes
from jumar.core.text import escape
from jumar.errors import ConfigError
from jumar.processes.command_words import is_interpreter, programs

_SITES: Final = ("lib/python3*/site-packages", "lib/python3*/dist-packages", "local/lib/python3*/dist-packages")
_MODULES: Final = (".py", ".pyc", *EXTENSION_SUFFIXES)
_PACKAGES: Final = tuple(f"__init__{suffix}" for suffix in _MODULES)
_OWN: Final = ("git", "bwrap")  # programs that jumar itself looks for on PATH
_SCRIPT: Final = 1 << 20  # bytes of a script that are looked through for names of programs
_WORD: Final = re.compile(rb"[\w.+-]+")
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

    Those are the modules of ``python -m module`` and of ``python = "module:function"``, and in directories of the tree that are
    on ``PATH`` the programs that a command or its script names.

    ``python -m`` looks in the working directory first. What is there already is what the check means.
    """
    found = {path for source in sources for name in (*_OWN, *_named_in(source, workdir)) for path in _sooner(name, workdir)}
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


def _searched(workdir: Path) -> list[Path]:
    """Return the directories on ``PATH``, as a program that runs in ``workdir`` takes them."""
    return [Path(os.path.normpath(workdir / entry)) for entry in os.environ.get("PATH", os.defpath).split(os.pathsep)]


def _sooner(name: str, workdir: Path) -> set[str]:
    """Return where below ``workdir`` a program of this name would run instead of the one that is found on ``PATH``."""
    places: set[str] = set()
    for directory in _searched(workdir):
        path = directory / name
        if os.access(path, os.X_OK) and path.is_file():
            return places
        if path.is_relative_to(workdir):
            places.add(path.relative_to(workdir).as_posix())
    return set()


def _named_in(source: CheckSource, workdir: Path) -> set[str]:
    """Return the words that may be programs on ``PATH``: those of the command, and all of its scripts where that can matter."""
    if not any(directory.is_relative_to(workdir) for directory in _searched(workdir)):
        return set()
    words = set(programs(source.command or ""))
    with contextlib.suppress(ConfigError):
        for path in _of(source, workdir, workdir):
            with contextlib.suppress(OSError):
                content = read_bytes(path, links=True) if path.stat().st_size <= _SCRIPT else b""
                words.update(os.fsdecode(word) for word in _WORD.findall(content))
    return {word for word in words if "/" not in word and not word.startswith("-")}


def standing_in(directories: Iterable[Path], modules: Collection[str]) -> set[Path]:
    """Return what in ``directories`` Python would import instead of one of ``modules``, which are found later on its path."""
    found: set[Path] = set()
    for directory in directories:
        with contextlib.suppress(OSError):
            for path in directory.iterdir():
                name, _, ending = path.name.partition(".")
                module = f".{ending}" in _MODULES or (not ending and any(map(os.path.lexists, map(path.joinpath, _PACKAGES))))
                found |= {path} if module and name in modules else set()
    return found


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
            with contextlib.suppress(OSError):  # what this user may not enter has no module for it
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
                if b'"file:' in read_bytes(path / "direct_url.json", links=True):
                    listed = read_bytes(path / "RECORD", links=True).decode(errors="replace").splitlines()
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
    if os.path.islink(path):  # False, too, where a program closed the directory
        target = Path(os.path.realpath(path))
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
        digest = digest_of(Path(os.path.realpath(absolute)))
    except OSError as error:
        raise ConfigError(f"{source.label}: {escape(str(absolute))} cannot be read: {os.strerror(error.errno or 0)}") from None
    shown = absolute.relative_to(workdir).as_posix() if in_tree else os.fspath(absolute)
    return CheckFile(path=shown, digest=digest, used_by=source.label, in_tree=in_tree)


def module_file(module: str, directories: Sequence[Path]) -> Path | None:
    """Return the file of a Python module below one of ``directories``, the first that has it; of a package what ``-m`` runs."""
    relative = module.replace(".", "/")
    for directory in directories:
        for name in (f"{relative}.py", f"{relative}/__main__.py", f"{relative}/__init__.py"):
            if (directory / name).is_file():
                return directory / name
    return None
