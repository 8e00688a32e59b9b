"""Patterns of gitignore: compiled, asked as git asks them, in a time that no pattern can stretch."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from jumar.errors import ConfigError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_LONGEST: Final = 4096  # of a line in a .gitignore: no path is longer
_NAME: Final = "[^/]*"  # what pathspec makes of "*"
_LEADING: Final = "^(?:.+/)?"  # of "**/" at the beginning
_BETWEEN: Final = "(?:/.+)?"  # of "/**/"
_CLASS: Final = re.compile(r"\\.|\[\^/\]|(\[\^?\]?[^\]]*\])", re.DOTALL)


class _Line(NamedTuple):
    """One pattern. ``where`` says what of a path it is about: its last name, its whole, or whatever lies below a directory."""

    spec: GitIgnoreSpec
    where: Literal["name", "path", "below"]

    def verdict(self, path: str) -> bool | None:
        """Return the pattern's verdict on this path alone: True to ignore, False to keep, None when it does not fit."""
        parent, _, name = path.rstrip("/").rpartition("/")
        if self.where == "name":
            return self.spec.check_file(name + ("/" if path.endswith("/") else "")).include
        found = self.spec.check_file(path).include
        fits_parent = self.where == "path" and parent and self.spec.check_file(parent + "/").include is not None
        return None if fits_parent else found


class Lines:
    """Patterns as git asks them: about one path alone, its directories having been asked before; the last that fits decides.

    The library's own question is another: whether a path *or one of its directories* fits. Where a directory that one pattern
    ignores is kept by another, the two answer differently.
    """

    def __init__(self, lines: Sequence[str], where: str) -> None:
        self._any = compile_lines(lines, where)
        self._last_first = [_Line(compile_lines([line], where), _about(line)) for line in reversed(lines)]

    def verdict(self, path: str) -> bool | None:
        """Return True to ignore, False to keep, None to leave it to others. A directory's path ends with a slash."""
        if self._any.check_file(path).include is None:
            return None
        verdicts = (line.verdict(path) for line in self._last_first)
        return next((verdict for verdict in verdicts if verdict is not None), None)


def _about(line: str) -> Literal["name", "path", "below"]:
    pattern = line.removeprefix("!").rstrip(" ")
    while pattern.startswith("**/"):
        pattern = pattern[3:]
    if "/" not in pattern.rstrip("/"):
        return "name"
    return "below" if pattern.endswith("/**") else "path"


def compile_lines(lines: Sequence[str], where: str) -> GitIgnoreSpec:
    """Return the patterns as one. Errors: :class:`jumar.errors.ConfigError`, which says ``where`` they stand."""
    from pathspec import GitIgnoreSpec
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    def pattern(line: str) -> GitIgnoreSpecPattern:
        regex, include = GitIgnoreSpecPattern.pattern_to_regex(line)
        return GitIgnoreSpecPattern(None if regex is None else re.compile(linear(regex)), include)

    try:
        with warnings.catch_warnings():  # of character classes, which are git's affair and not the caller's
            warnings.simplefilter("ignore")
            # with RE2 installed, it would be taken by default: it refuses names that are not UTF-8
            return GitIgnoreSpec.from_lines(lines, pattern, backend="simple")
    except (ValueError, re.error) as error:
        raise ConfigError(f"{where}: {error}; patterns are those of .gitignore") from error


def linear(regex: str) -> str:
    """Return a regular expression of pathspec so that it fits the same and never tries the same characters twice.

    Several wildcards in it make Python's matcher try every way to share a name among them: thirty stars never end. A wildcard
    that another one follows need only be tried at its shortest, since the later one can take the rest; then it is decided
    (``(?=(...))`` and a reference to what it took, as :func:`fnmatch.translate` has it). As in git, and other than in pathspec,
    a class of characters (``[!a]``) fits no slash.
    """
    regex = _CLASS.sub(lambda found: f"(?!/){found[0]}" if found[1] else found[0], regex)
    if regex.count(_NAME) + regex.count(_BETWEEN) + regex.startswith(_LEADING) < 2:
        return regex
    names = (f"w{number}" for number in count())

    def decided(part: str) -> str:
        name = next(names)
        return f"(?=(?P<{name}>{part}))(?P={name})"

    def of_one_name(part: str) -> str:
        first, *stars = part.split(_NAME)
        *others, last = stars or [""]
        return first + "".join(decided("[^/]*?" + literal) for literal in others) + (_NAME + last if stars else "")

    def of_names(part: str) -> str:
        # a slash in a class of characters ("[^/]") ends no name
        return "".join(each if each == "/" else of_one_name(each) for each in re.split(r"(?<!\^)(?<!\(\?!)(/)", part))

    head = _LEADING if regex.startswith(_LEADING) else "^"
    *parts, last = [of_names(part) for part in regex.removeprefix(head).split(_BETWEEN)]
    made = head + last if not parts else ""
    for number, part in enumerate(parts):
        if number:
            made += decided(f"(?:/.+?)??{part}(?=/)")
        else:
            made += "^" + (part if head == "^" else decided(f"(?:.+?/)??{part}(?=/)"))
    return made + _BETWEEN + last if parts else made


def usable_lines(content: bytes, where: str) -> list[str]:
    """Return the lines of a ``.gitignore``; one that is no pattern, or longer than any path, ignores nothing."""
    usable: list[str] = []
    for line in content.decode(errors="surrogateescape").split("\n"):
        if len(line) <= _LONGEST:
            with contextlib.suppress(ConfigError):
                compile_lines([line], where)
                usable.append(line.removesuffix("\r"))
    return usable


def for_patterns(path: str) -> str:
    """Return a path as the patterns are asked about it: their regular expressions have a "." that matches no line feed."""
    return path.replace("\n", "\N{REPLACEMENT CHARACTER}") if "\n" in path else path
