"""What a check consists of: the files whose content decides about candidates, hashed before the first of them.

A check's files are its programs (:func:`programs`), the modules of its ``python = "module:function"``,
what its configuration reads (a rubric, patterns), and what a person names with ``files``. What a test runner merely collects
from the tree is not among them: that is what ``protect`` is for.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import stat
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES
from itertools import chain
from pathlib import Path, PurePath
from typing import Final

from jumar.core.files import digest_of, read_bytes
from jumar.core.text import escape
from jumar.errors import ConfigError

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


# -------------------------------------------------------------------------------------------------------- what a command runs


_WRAPPERS: Final = frozenset(
    {
        "env", "time", "nice", "nohup", "exec", "command", "sudo", "stdbuf", "setsid", "xargs", "timeout", "gtimeout", "ionice",
        "npx", "bunx", "xvfb-run",
    }
)  # fmt: skip
_RUN: Final = frozenset({"uv", "poetry", "pdm", "hatch", "pipenv", "rye", "pixi", "conda", "coverage"})
_RESERVED: Final = frozenset({"!", "{", "}", "if", "then", "else", "elif", "fi", "do", "done", "while", "until", "&&", "||"})
_SHELLS: Final = frozenset({"sh", "bash", "zsh", "dash", "ksh", "busybox"})
_INTERPRETERS: Final = frozenset(
    {"node", "deno", "bun", "ruby", "perl", "php", "Rscript", "lua", "tclsh", "pwsh", "julia", "tsx", "ts-node", "source", "."}
)
_PYTHON: Final = re.compile(r"(?:python|pypy)\d*(?:\.\d+)?")
_PYTHON_VALUES: Final = frozenset({"-W", "-X"})
_OTHER_VALUES: Final = frozenset({"--import", "--loader", "--rcfile", "--init-file", "-I"})
_SET: Final = re.compile(r"[-+][A-Za-z]*[oO]")  # of a shell, such as -euo pipefail
_MODULE: Final = re.compile(r"-[A-Za-z]*m")
_WRAPPERS_VALUES: Final = frozenset(
    {"-u", "-g", "-a", "-I", "-C", "-n", "-p", "--unset", "--with", "--python", "--extra", "--group", "--env-file", "--project"}
)
_LOADS: Final = frozenset({"-r", "--require"})
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
_OPERATORS: Final = re.compile(r"[;&|()\n]+|[<>]\(")
_BACKTICKS: Final = re.compile(r"`([^`]*)`")
_INSIDE: Final = re.compile(r"\$\(([^()]+)\)")
_HERE: Final = re.compile(r"^\$(?:PWD|\{PWD\}|\(pwd\))(?:/|$)")
_PROJECT: Final = re.compile(r"^\$(?:JUMAR_PROJECT_DIR|\{JUMAR_PROJECT_DIR\})(?:/|$)")

# programs that collect tests from the tree: which files they run is not to be seen in their command
_RUNNERS: Final = frozenset(
    {
        "pytest", "py.test", "tox", "nox", "unittest", "jest", "vitest", "mocha", "ava", "rspec", "phpunit", "ctest", "bats",
        "gradle", "gradlew", "mvn", "npm", "pnpm", "yarn", "bun", "go", "cargo", "make", "just", "rake", "dotnet", "mix", "swift",
    }
)  # fmt: skip

_NEEDS_TEST: Final = frozenset(
    {"npm", "pnpm", "yarn", "bun", "go", "cargo", "make", "just", "rake", "dotnet", "mix", "swift", "gradle", "gradlew", "mvn"}
)


def programs(command: str | Sequence[str], place: str = "") -> Iterator[str]:
    """Yield the words of ``command`` that name what runs: paths and bare program names, and ``-m module`` as ``module``.

    Paths are seen from where the command begins; ``place`` is where that is, seen from there. A module comes with a leading
    ``-m ``. A command that no shell would accept yields nothing of what cannot be split.
    """
    for inside, words in placed_commands(command, place):
        for said in chain.from_iterable(map(_INSIDE.findall, words)):
            yield from programs(said, inside)
        yield from _programs(words, inside)


def is_interpreter(name: str) -> bool:
    """Return whether a program of this name runs the file that it is given: a shell, Python, another language."""
    return name in _SHELLS or name in _INTERPRETERS or _PYTHON.fullmatch(name) is not None


def runs_tests(command: str | Sequence[str]) -> str | None:
    """Return the test runner that ``command`` starts, or None: its tests are part of the tree and not of the command."""
    for words in simple_commands(command):
        names = [_name(word) for word in words]
        found = next((name for name in names if name in _RUNNERS), None)
        if found is not None and (found not in _NEEDS_TEST or any("test" in name or name == "check" for name in names)):
            return found
    return None


def _name(word: str) -> str:
    return word if word == "." else PurePath(word).name


def simple_commands(command: str | Sequence[str]) -> Iterator[list[str]]:
    """Yield the words of each simple command; of a command that no shell would accept only those before the open quote."""
    return (words for _, words in placed_commands(command))


def placed_commands(command: str | Sequence[str], place: str = "") -> Iterator[tuple[str, list[str]]]:
    """Yield each of :func:`simple_commands` with the directory that it runs in: ``place``, and where ``cd`` leads from there."""
    if not isinstance(command, str):
        yield place, list(command)
        return
    command = _BACKTICKS.sub(r"$(\1)", command.replace("\n", " ; "))
    lexer = shlex.shlex(command, posix=True, punctuation_chars=";&|()<>")
    lexer.commenters = ""
    lexer.whitespace_split = True  # else it splits at $, + and letters that are not Latin, too
    words: list[str] = []
    outside: list[tuple[str, list[str]]] = []
    try:
        for word in lexer:
            if not _OPERATORS.fullmatch(word):
                words.append(word)
            elif word[0] in "<>" or (word[0] == "(" and words and words[-1].endswith("$")):  # its output is a word of this one
                outside.append((place, words))
                words = []
            else:
                for sign in word:
                    if words:
                        yield place, words
                        place, words = _moved(place, words), []
                    if sign == "(":
                        outside.append((place, []))
                    elif sign == ")" and outside:
                        place, words = outside.pop()
    except ValueError:  # an open quote: the shell will say so
        return
    yield place, words


def _moved(place: str, words: list[str]) -> str:
    """Return where a shell in ``place`` is after a simple command."""
    rest = _without_wrappers(words)
    to = [word for word in rest[1:] if not word.startswith("-")]
    if not to or rest[0] not in {"cd", "pushd"}:
        return place
    moved = os.path.normpath(_at(place, to[0]))
    return "" if moved == "." else moved


def _at(place: str, word: str) -> str:
    """Return a path that a command in ``place`` names, or a module, as seen from where the whole command begins."""
    if word.startswith("-m "):
        return f"-m {place}/{word[3:]}" if place else word
    if found := _PROJECT.match(word):
        return word[found.end() :] or "."
    return os.path.join(place, _HERE.sub("", word, count=1) or ".")


def _programs(words: Sequence[str], place: str) -> Iterator[str]:
    if "-C" in words[1:-1] and _name(words[0]) == "env":
        option = words.index("-C")
        place, words = _at(place, words[option + 1]), [*words[:option], *words[option + 2 :]]
    rest = _without_wrappers(list(words))
    if not rest:
        return
    first = rest[0]
    yield _at(place, first) if "/" in first else first
    name = _name(first)
    said = _said(rest[1:]) if name in _SHELLS else None
    if said is not None:
        yield from programs(said, place)
    elif is_interpreter(name):
        yield from (_at(place, word) for word in _script(rest[1:], name))


def _without_wrappers(words: list[str]) -> list[str]:
    """Drop what stands in front of a program: assignments, reserved words, ``env``, ``timeout 60``, ``uv run``."""
    while words:
        name = _name(words[0])
        if words[0] in _RESERVED or _ASSIGNMENT.match(words[0]):
            words = words[1:]
        elif name in _RUN and "run" in words[1:3]:
            words = _without_options(words[words.index("run") + 1 :])
        elif name in _WRAPPERS:
            words = _without_options(words[1:])
        elif re.fullmatch(r"\d+(\.\d+)?[smhd]?", words[0]):  # of timeout
            words = words[1:]
        else:
            break
    return words


def _without_options(words: list[str]) -> list[str]:
    while words and words[0].startswith("-"):
        words = words[2 if words[0] in _WRAPPERS_VALUES and len(words) > 2 else 1 :]
    return words


def _said(arguments: Sequence[str]) -> str | None:
    """Return the text that a shell is given to run, by ``-c`` alone or among other letters; None where it runs a file."""
    by_text = False
    words = iter(arguments)
    for word in words:
        if word[:1] not in {"-", "+"}:
            return word if by_text else None
        by_text = by_text or (word[:2] != "--" and "c" in word)
        if _SET.fullmatch(word) or word in _OTHER_VALUES:
            next(words, None)
    return None


def _script(arguments: Sequence[str], name: str) -> Iterator[str]:
    """Yield the script of the interpreter ``name``: its first argument that is no option, or the module of ``-m``."""
    modules = _PYTHON.fullmatch(name) is not None
    skip = load = False
    for index, word in enumerate(arguments):
        if skip or load:
            if load:
                yield word
            skip = load = False
        elif modules and _MODULE.fullmatch(word):
            yield from (f"-m {module}" for module in arguments[index + 1 : index + 2])
            return
        elif word in {"-c", "-e", "--eval", "-", "<"} and not (word == "-e" and name in _SHELLS):
            yield from arguments[index + 1 : index + 2] if word == "<" else ()
            return
        elif word in _LOADS and not modules:
            load = True
        elif word in (_PYTHON_VALUES if modules else _OTHER_VALUES) or (name in _SHELLS and _SET.fullmatch(word)):
            skip = True
        elif not word.startswith(("-", "+")) and word != "run":
            yield word
            return


def module_file(module: str, directories: Sequence[Path]) -> Path | None:
    """Return the file of a Python module below one of ``directories``, the first that has it; of a package what ``-m`` runs."""
    relative = module.replace(".", "/")
    for directory in directories:
        for name in (f"{relative}.py", f"{relative}/__main__.py", f"{relative}/__init__.py"):
            if (directory / name).is_file():
                return directory / name
    return None
