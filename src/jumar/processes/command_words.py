"""What a command runs: the programs, scripts and modules that its words name, without running it."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import PurePath
from typing import Final

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
