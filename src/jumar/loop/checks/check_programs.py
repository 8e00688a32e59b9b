"""Which files the command of a check runs: read from its words, without running anything.

A command names two kinds of files: programs, which decide (``./check.sh``, the ``check.py`` of ``python check.py draft.md``), and
what they look at (``draft.md``), which is the candidate. Only programs count here. Where a word leaves it open, it is no program.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import Final

_WRAPPERS: Final = frozenset(
    {"env", "time", "nice", "nohup", "exec", "command", "sudo", "stdbuf", "setsid", "xargs", "timeout", "gtimeout", "ionice"}
)
_RUN: Final = frozenset({"uv", "poetry", "pdm", "hatch", "pipenv", "rye", "pixi", "conda"})
_RESERVED: Final = frozenset({"!", "{", "}", "if", "then", "else", "elif", "fi", "do", "done", "while", "until", "&&", "||"})
_SHELLS: Final = frozenset({"sh", "bash", "zsh", "dash", "ksh", "busybox"})
_INTERPRETERS: Final = frozenset(
    {"node", "deno", "bun", "ruby", "perl", "php", "Rscript", "lua", "tclsh", "pwsh", "julia", "tsx", "ts-node", "source", "."}
)
_PYTHON: Final = re.compile(r"(?:python|pypy)\d*(?:\.\d+)?")
_PYTHON_VALUES: Final = frozenset({"-W", "-X"})
_OTHER_VALUES: Final = frozenset({"--import", "--loader", "-o", "+o", "-O", "+O", "--rcfile", "--init-file"})
_LOADS: Final = frozenset({"-r", "--require"})
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
_OPERATORS: Final = re.compile(r"[;&|()\n]+")

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


def programs(command: str | Sequence[str]) -> Iterator[str]:
    """Yield the words of ``command`` that name what runs: paths and bare program names, and ``-m module`` as ``module``.

    A module comes with a leading ``-m ``. A command that no shell would accept yields nothing of what cannot be split.
    """
    for words in simple_commands(command):
        yield from _programs(words)


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
    if not isinstance(command, str):
        yield list(command)
        return
    lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars=";&|()<>")
    lexer.commenters = ""
    words: list[str] = []
    try:
        for word in lexer:
            if _OPERATORS.fullmatch(word):
                yield words
                words = []
            else:
                words.append(word)
    except ValueError:  # an open quote: the shell will say so
        return
    yield words


def _programs(words: Sequence[str]) -> Iterator[str]:
    rest = _without_wrappers(list(words))
    if not rest:
        return
    first = rest[0]
    yield first
    name = _name(first)
    if name in _SHELLS and "-c" in rest[1:-1]:
        yield from programs(rest[rest.index("-c") + 1])
    elif is_interpreter(name):
        yield from _script(rest[1:], modules=_PYTHON.fullmatch(name) is not None)


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
        words = words[1:]
    return words


def _script(arguments: Sequence[str], *, modules: bool) -> Iterator[str]:
    """Yield the script of an interpreter: its first argument that is no option, or the module of ``-m``."""
    skip = load = False
    for index, word in enumerate(arguments):
        if skip or load:
            if load:
                yield word
            skip = load = False
        elif modules and word == "-m":
            yield from (f"-m {module}" for module in arguments[index + 1 : index + 2])
            return
        elif word in {"-c", "-e", "--eval", "-", "<"}:
            yield from arguments[index + 1 : index + 2] if word == "<" else ()
            return
        elif word in _LOADS and not modules:
            load = True
        elif word in (_PYTHON_VALUES if modules else _OTHER_VALUES):
            skip = True
        elif not word.startswith("-") and word != "run":
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
