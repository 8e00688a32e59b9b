"""Which files of a working directory a loop keeps: gitignore syntax, without secrets and caches, within a quota."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from jumar.core import files
from jumar.core.text import escape, human_size, plural
from jumar.errors import ArtifactError, ConfigError
from jumar.loop.snapshots.scan import ALWAYS_OUT, RESTORE_PREFIX, parents_of
from jumar.loop.snapshots.tree_size import TreeSize

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


_IGNORE_FILE: Final = ".gitignore"
_IGNORE_LIMIT: Final = 1 << 20
_SHOWN: Final = 5


class _Default(NamedTuple):
    """One built-in rule about a single name on a path."""

    how: Literal["is", "starts", "ends", "around"]
    text: str
    directory_only: bool = False

    def hits(self, name: str, *, is_directory: bool) -> bool:
        return (is_directory or not self.directory_only) and self.fits(name)

    def fits(self, name: str) -> bool:
        if self.how == "is":
            return name == self.text
        if self.how == "around":
            begin, _, end = self.text.partition("*")
            return name.startswith(begin) and name.endswith(end)
        return name.startswith(self.text) if self.how == "starts" else name.endswith(self.text)

    @property
    def pattern(self) -> str:
        begin, star, end = self.text.partition("*") if self.how == "around" else (self.text, "", "")
        if self.how == "is":
            return re.escape(begin)
        if self.how == "starts":
            return f"{re.escape(begin)}.*"
        return f"(?={re.escape(begin)}).*{re.escape(end)}" if star else f".*{re.escape(begin)}"


_SECRETS: Final = (
    *(
        _Default("is", name)
        for name in (
            *(".env", ".envrc", ".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".my.cnf", ".git-credentials", ".htpasswd"),
            *(".dockercfg", ".dockerconfigjson", ".vault-token", "credentials.json", "kubeconfig"),
        )
    ),
    *(_Default("is", name, directory_only=True) for name in (".aws", ".ssh", ".gnupg", ".kube", ".azure")),
    *(_Default("starts", text) for text in (".env.", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "kubeconfig.")),
    *(_Default("ends", text) for text in (".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".kubeconfig")),
    *(_Default("around", text) for text in ("service-account*.json", "service_account*.json", "client_secret*.json")),
)
_CACHES: Final = (
    *(
        _Default("is", name, directory_only=True)
        for name in ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".venv", "node_modules")
    ),
    _Default("ends", ".pyc"),
)
_DEFAULTS: Final = (*_SECRETS, *_CACHES)
_ANY_DEFAULT: Final = re.compile("|".join(rule.pattern for rule in _DEFAULTS), re.DOTALL)  # one question a name instead of fifty


def _hitting(name: str, *, is_directory: bool) -> list[_Default]:
    if _ANY_DEFAULT.fullmatch(name) is None:
        return []
    return [rule for rule in _DEFAULTS if rule.hits(name, is_directory=is_directory)]


class _Ignore(NamedTuple):
    """One ``.gitignore``: the directory it stands in, with a trailing slash, and its patterns."""

    prefix: str
    lines: Lines


@dataclass(slots=True)
class _Remembered:
    """What was decided about the names of one directory; holds while the ignore files above and in it are the same."""

    above: tuple[_Ignore, ...]
    own: bytes
    ignores: tuple[_Ignore, ...]
    files: dict[str, bool]
    directories: dict[str, bool]


class _Compiled(NamedTuple):
    include: GitIgnoreSpec | None
    exclude: Lines
    named: dict[_Default, GitIgnoreSpec]


@dataclass(slots=True)
class _Memory:
    """Filled on use. A loop lists the same tree again and again, and patterns cost more than names."""

    compiled: _Compiled | None = None
    directories: dict[str, _Remembered] = field(default_factory=dict[str, _Remembered])


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactRules:
    """What is kept. Patterns are gitignore's; no ``include`` means everything that the tree's ``.gitignore`` files don't ignore.

    Always left out: ``.git`` and ``.jumar``. Left out unless an include pattern names them: files that usually hold secrets
    (``.env``, ``.env.*``, ``*.pem``, ``*.key``, ``id_rsa*``, ``.netrc``, ``.npmrc``, ``.aws/``, ``credentials.json``, …: the
    whole list is in ``docs/how-to/secrets.md``) and caches (``__pycache__``, ``.pytest_cache``, ``.mypy_cache``,
    ``.ruff_cache``, ``.venv``, ``node_modules``, ``*.pyc``). A pattern names ``.env`` when one of its parts begins or ends as
    the rule does; ``*`` names nothing. As in git, nothing below an excluded directory can be included again. ``max_files``
    counts paths, the others are bytes.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_files: int = 1_000_000
    max_file_bytes: int = 100_000_000
    max_total_bytes: int = 1_000_000_000
    _memory: _Memory = field(default_factory=_Memory, init=False, repr=False, compare=False)

    def list(
        self,
        root: Path,
        never: Iterable[Path] = (),
        *,
        kept: Iterable[str] = (),
        mend: Callable[[str, OSError], bool] | None = None,
    ) -> tuple[str, ...]:
        """Return the relative POSIX paths, sorted, of everything below ``root`` that is kept and is not a directory.

        ``never`` and all below it is left out. ``kept`` are paths that a snapshot of this tree holds: whatever its ``.gitignore``
        files say now, those that are still there are kept, as git goes on with what it tracks. ``mend`` gets the relative path, a
        slash behind it, of a directory that cannot be read, and why, and returns whether it can be read now; else it is left out.
        Errors: :class:`ArtifactError` for a directory that cannot be read, :class:`ConfigError` for a pattern that is none.
        """
        self._compiled()
        left_out = _relative_to(root, never)
        found: list[str] = []
        pending: list[tuple[str, tuple[_Ignore, ...]]] = [("", ())]
        while pending:
            prefix, above = pending.pop()
            try:
                names, directories, own = _names(root, prefix)
            except ArtifactError as error:
                if mend is None or not isinstance(error.__cause__, OSError):
                    raise
                if not mend(prefix, error.__cause__):
                    continue
                names, directories, own = _names(root, prefix)
            known = self._remembered(prefix, above, own)
            kept_file, kept_directory = known.files, known.directories
            for name in names:
                keep = kept_file.get(name)
                if keep is None:
                    keep = kept_file[name] = self._keeps_file(prefix + name, known.ignores)
                if keep:
                    found.append(prefix + name)
            for name in directories:
                keep = kept_directory.get(name)
                if keep is None:
                    keep = kept_directory[name] = self._enters(prefix + name, known.ignores)
                if keep and prefix + name not in left_out:
                    pending.append((f"{prefix}{name}/", known.ignores))
        ignored = set(kept).difference(found)
        found += _still_there(root, [path for path in sorted(ignored) if self.matches(path)], left_out, mend)
        return tuple(sorted(found if not left_out else (path for path in found if path not in left_out)))

    def matches(self, path: str) -> bool:
        """Return whether the rules themselves keep the relative path of a file; ``.gitignore`` files are not looked at."""
        return all(self._enters(parent, ()) for parent in parents_of(path)) and self._keeps_file(path, ())

    def check_quota(self, root: Path, paths: Sequence[str]) -> None:
        """Refuse what is more than the quota with :class:`ArtifactError`: how much it is, where the most is, what to write."""
        self.check_size(TreeSize.of(root, paths))

    def check_size(self, size: TreeSize) -> None:
        """As :meth:`check_quota`, for what was measured."""
        if self.exceeded_by(size):
            raise ArtifactError(self._preview(size))

    def exceeded_by(self, size: TreeSize) -> str:
        """Return the limits that ``size`` is over, in words; empty where it fits."""
        large = len(size.over(self.max_file_bytes))
        limits = (
            f"{self.max_files:,} files" if size.files > self.max_files else "",
            f"{human_size(self.max_total_bytes)} in all" if size.bytes > self.max_total_bytes else "",
            f"{human_size(self.max_file_bytes)} a file ({large:,} {'is' if large == 1 else 'are'} larger)" if large else "",
        )
        return " and ".join(limit for limit in limits if limit)

    def _preview(self, size: TreeSize) -> str:
        allowed = f"{self.max_files:,} files, {human_size(self.max_total_bytes)} in all, {human_size(self.max_file_bytes)} a file"
        large = size.over(self.max_file_bytes)
        lines = [f"the snapshot would hold {size.shown()}; allowed are {allowed}"]
        lines += [f"  too large: {escape(path)} ({human_size(size.sizes[path])})" for path in large[:_SHOWN]]
        if len(large) > _SHOWN:
            lines.append(f"  and {plural(len(large) - _SHOWN, 'more file')} over {human_size(self.max_file_bytes)}")
        suggested = ", ".join(f'"{pattern}"' for pattern in size.exclude(self.max_file_bytes))
        lines += [
            *size.rows(),
            "say in jumar.toml what the loop is about, for instance",
            "  [artifacts]",
            '  include = ["src/", "*.md"]',
            f"or leave out what it is not: exclude = [{suggested}]; or raise max_files, max_file_mb, max_total_mb there",
        ]
        return "\n".join(lines)

    def _remembered(self, prefix: str, above: tuple[_Ignore, ...], own: bytes) -> _Remembered:
        if self.include:
            above, own = (), b""
        known = self._memory.directories.get(prefix)
        if known is None or known.above != above or known.own != own:
            ignores = above
            if own:
                ignores = (*above, _Ignore(prefix, Lines(usable_lines(own, _IGNORE_FILE), _IGNORE_FILE)))
            known = self._memory.directories[prefix] = _Remembered(above, own, ignores, {}, {})
        return known

    def _enters(self, path: str, ignores: tuple[_Ignore, ...]) -> bool:
        """Return whether anything below a directory can be kept, its parents being entered."""
        name = path.rpartition("/")[2]
        if name in ALWAYS_OUT or name.startswith(RESTORE_PREFIX):
            return False
        compiled = self._compiled()
        if any(rule not in compiled.named for rule in _hitting(name, is_directory=True)):
            return False
        shown = for_patterns(path) + "/"
        return not compiled.exclude.verdict(shown) and not _ignored(shown, ignores)

    def _keeps_file(self, path: str, ignores: tuple[_Ignore, ...]) -> bool:
        """Return whether a file, link or special file is kept, its directories being entered."""
        name = path.rpartition("/")[2]
        if name in ALWAYS_OUT or name.startswith(RESTORE_PREFIX):
            return False
        compiled = self._compiled()
        shown = for_patterns(path)
        if not self._is_named_where_needed(path, shown, compiled):
            return False
        if compiled.include is not None and not compiled.include.match_file(shown):
            return False
        return not compiled.exclude.verdict(shown) and not _ignored(shown, ignores)

    def _is_named_where_needed(self, path: str, shown: str, compiled: _Compiled) -> bool:
        parts = path.split("/")
        for index, part in enumerate(parts):
            for rule in _hitting(part, is_directory=index < len(parts) - 1):
                spec = compiled.named.get(rule)
                if spec is None or not spec.match_file(shown):
                    return False
        return True

    def _compiled(self) -> _Compiled:
        if self._memory.compiled is None:
            named: dict[_Default, GitIgnoreSpec] = {}
            for rule in _DEFAULTS:
                naming = [line for line in self.include if not line.startswith("!") and _names_rule(line, rule)]
                if naming:
                    named[rule] = compile_lines(naming, "[artifacts] include")
            self._memory.compiled = _Compiled(
                include=compile_lines(self.include, "[artifacts] include") if self.include else None,
                exclude=Lines(self.exclude, "[artifacts] exclude"),
                named=named,
            )
        return self._memory.compiled


def _names_rule(pattern: str, rule: _Default) -> bool:
    return any(rule.fits(part) for part in pattern.split("/"))


def _ignored(path: str, ignores: tuple[_Ignore, ...]) -> bool:
    """Ask the nearest ``.gitignore`` first; the first that says anything about the path decides, as in git."""
    for ignore in reversed(ignores):
        verdict = ignore.lines.verdict(path[len(ignore.prefix) :])
        if verdict is not None:
            return verdict
    return False


def _names(root: Path, prefix: str) -> tuple[list[str], list[str], bytes]:
    """Return the names of the non-directories and of the directories in a directory, and its ``.gitignore``."""
    directory = f"{os.fspath(root)}/{prefix}"
    names: list[str] = []
    directories: list[str] = []
    try:
        with os.scandir(directory) as listing:
            for entry in listing:
                (directories if entry.is_dir(follow_symlinks=False) else names).append(entry.name)
    except OSError as error:
        if prefix and error.errno in {errno.ENOENT, errno.ENOTDIR}:
            return [], [], b""
        shown = escape(prefix or os.fspath(root))
        raise ArtifactError(f"the directory '{shown}' cannot be read: {os.strerror(error.errno or 0)}; exclude it") from error
    # one that is a link or a FIFO says nothing
    own = files.content_of(directory + _IGNORE_FILE) if _IGNORE_FILE in names else None
    return names, directories, (own or b"")[:_IGNORE_LIMIT]


def _still_there(
    root: Path, paths: Iterable[str], left_out: frozenset[str], mend: Callable[[str, OSError], bool] | None
) -> list[str]:
    """Return those of ``paths`` that are no directory; nothing is looked for behind a link, nor in what is left out."""
    folders: dict[str, bool] = {}

    def is_there(path: str, *, folder: bool) -> bool:
        for again in (True, False):
            try:
                return stat.S_ISDIR(os.lstat(f"{os.fspath(root)}/{path}").st_mode) == folder
            except OSError as error:
                if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG}:
                    return False
                above = path[: path.rfind("/") + 1]
                if mend is None:
                    why = os.strerror(error.errno or 0)
                    raise ArtifactError(f"the directory '{escape(above)}' cannot be read: {why}; exclude it") from error
                if not again or not mend(above, error):
                    return False
        return False  # pragma: no cover - the last turn returns

    def is_entered(path: str) -> bool:
        for folder in parents_of(path):
            if folder not in folders:
                folders[folder] = folder not in left_out and is_there(folder, folder=True)
            if not folders[folder]:
                return False
        return True

    return [path for path in paths if is_entered(path) and is_there(path, folder=False)]


def _relative_to(root: Path, paths: Iterable[Path]) -> frozenset[str]:
    anchor = os.path.realpath(root)
    found: set[str] = set()
    for path in paths:  # one that is a link is meant, too, and where it leads
        places = (os.path.realpath(path), os.path.join(os.path.realpath(path.parent), path.name))
        found.update(os.path.relpath(each, anchor) for each in places if each.startswith(anchor.rstrip("/") + "/"))
    return frozenset(found)
