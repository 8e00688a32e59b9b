"""From the configuration to what a loop guards: the files of its checks, ``protect``, and what a resume compares them with."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.machinery import PathFinder
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, cast

from jumar.core.codec import Fields
from jumar.core.files import digest_of
from jumar.core.kept import leading_to
from jumar.core.text import escape
from jumar.errors import ConfigError, JumarError
from jumar.loop.checks.runners.configuration import is_own
from jumar.loop.settings import GuardRules
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.store.in_force import config_now
from jumar.loop.store.loop_reader import LoopReader
from jumar.loop.store.loop_store import LoopStore
from jumar.processes.check_files import CheckFile, CheckSource, check_files, installed_modules, shadows
from jumar.processes.command_words import runs_tests

if TYPE_CHECKING:
    from jumar.app.config.config import JumarConfig, ScorerConfig
    from jumar.app.config.evaluator import JudgeOptions

_TEST_DIRECTORIES: Final = ("tests", "test", "spec", "__tests__")
_TEST_FILES: Final = (
    *("test_*.py", "*_test.py", "*_test.go", "*_test.rb", "*_spec.rb", "*Test.java", "*Test.kt", "*Test.php", "*_test.exs"),
    *(f"*.{kind}.{language}" for kind in ("test", "spec") for language in ("js", "ts", "jsx", "tsx", "mjs", "cjs", "mts")),
)
_TAKEN_UP: Final = "would be the configuration of the next `jumar run`, and this loop has none"
_HOOKS: Final = "[hooks] python"
_EMBEDDER: Final = "[memory] embedder"
_UNFINISHED: Final = frozenset({"lost", "interrupted"})


def guard_rules(config: JumarConfig, *, workdir: Path, base: Path, path: Path | None) -> GuardRules:
    """Hash what decides about candidates and return it. ``path`` is the file of the configuration, None when there is none.

    Errors: :class:`jumar.errors.ConfigError` for ``files`` that name nothing.
    """
    literal = {pattern.removeprefix("/").removeprefix("./") for pattern in config.artifacts.include}
    sources = [*_sources(config, base)]
    files = check_files(sources, workdir=workdir, base=base.resolve(), is_candidate=literal.__contains__)
    at_end = CheckSource(label="which [loop] on_stop runs", command=_command(config.loop.on_stop))
    ran = check_files([at_end], workdir=workdir, base=base.resolve(), is_candidate=literal.__contains__)
    there = check_files(_at_base(config, base), workdir=workdir, base=base.resolve(), is_candidate=literal.__contains__)
    known = {file.path for file in files}
    from jumar.app.config.config import DEFAULT_NAME

    own = DEFAULT_NAME if path is None and base.resolve() == workdir.resolve() else None
    unasked = {} if own is None or os.path.lexists(workdir / own) else {own: _TAKEN_UP}
    return GuardRules(
        protect=tuple(config.loop.protect),
        files=files,
        kept=(*leading_to(path), *([(base / config.budget.prices, "the prices in use")] if config.budget.prices else [])),
        ran=tuple((workdir / file.path, file.used_by) for file in ran if file.path not in known),
        at_base=frozenset(file.path for file in there if file.in_tree),
        notices=(*_notices(config, sources, workdir, path), *_unmatched(config.loop.protect, workdir)),
        absent=(*shadows(sources, workdir=workdir), *unasked),
        unasked=unasked,
        installed=installed_modules(sources, workdir=workdir) if config.loop.protect else frozenset(),
    )


def _at_base(config: JumarConfig, base: Path) -> Iterator[CheckSource]:
    """Yield what runs in the person's own directory wherever iterations are made: functions, and judges that are programs."""
    functions = (part.python for part in (*config.validators, *_scorers(config)))
    yield from (CheckSource(label="", reference=name) for name in functions if name is not None)
    yield from (CheckSource(label="", files=(), read=tuple(_given_to_judge(each, base))) for each in _judges(config))


def _scorers(config: JumarConfig) -> tuple[ScorerConfig, ...]:
    return (*config.scorers, *(() if config.holdout is None else config.holdout.scorers))


def _judges(config: JumarConfig) -> Iterator[Mapping[str, Any]]:
    """Yield the options of each judge."""
    yield from (scorer.judge_options() for scorer in _scorers(config) if scorer.builtin == "judge")
    if config.evaluator is not None:
        yield _given(config.evaluator.options())


def _sources(config: JumarConfig, base: Path) -> Iterator[CheckSource]:
    for validator in config.validators:
        yield CheckSource(
            label=f"check '{validator.name}'",
            command=_command(validator.command),
            reference=validator.python,
            files=None if validator.files is None else tuple(validator.files),
        )
    for scorer in _scorers(config):
        options = scorer.judge_options() if scorer.builtin == "judge" else None
        yield CheckSource(
            label=f"scorer '{scorer.dimension or scorer.builtin}'",
            command=_command(scorer.command) if options is None else _judge_words(options),
            reference=scorer.python,
            files=None if scorer.files is None else tuple(scorer.files),
            read=() if options is None else (*_read_by(options, base), *_given_to_judge(options, base)),
        )
    if config.evaluator is not None:
        options = _given(config.evaluator.options())
        yield CheckSource(label="[evaluator]", files=(), read=tuple(_read_by(options, base)))
        words, read = _judge_words(options), tuple(_given_to_judge(options, base))
        yield CheckSource(label="[evaluator] judge", command=words, read=read)
    for hook in ("setup", "reset"):
        command = getattr(config.loop, hook)
        if command is not None:
            yield CheckSource(label=f"[loop] {hook}", command=_command(command))
    for table, reference in _imported(config):
        yield CheckSource(label=table, reference=reference)


def _imported(config: JumarConfig) -> Iterator[tuple[str, str]]:
    """Yield the table and the name of each function that jumar imports into its own process."""
    yield from ((_HOOKS, name) for name in config.hooks.python)
    if config.memory.enabled and config.memory.embedder != "words":
        yield _EMBEDDER, config.memory.embedder


def _given(options: JudgeOptions) -> Mapping[str, Any]:
    return options.model_dump(include={"rubric", "patterns", "proof", "judge"})


def _read_by(options: Mapping[str, Any], base: Path) -> Iterator[Path]:
    """Yield the files of an evaluation: rubric, patterns, proof, recorded replies. Names that are no files are built in."""
    for key in ("rubric", "patterns", "proof"):
        if isinstance(options.get(key), str):
            yield base / options[key]
    judge = options.get("judge")
    if isinstance(judge, str) and judge.startswith("replay:"):
        yield base / judge.removeprefix("replay:")


def _given_to_judge(options: Mapping[str, Any], base: Path) -> Iterator[Path]:
    """Yield what may be a file among the words of a judge that is a program: it runs in the configuration's directory."""
    for word in _judge_words(options):
        if "\0" not in word:
            yield base / (word.partition("=")[2] if word.startswith("-") else word)


def _judge_words(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the command of a judge that is a program; one that cannot be split is refused where the judge is made."""
    judge = options.get("judge")
    with contextlib.suppress(ValueError):
        if isinstance(judge, str) and judge.startswith("command:"):
            return tuple(shlex.split(judge.removeprefix("command:")))
    return ()


def _command(command: str | list[str] | None) -> str | tuple[str, ...] | None:
    return tuple(command) if isinstance(command, list) else command


def _notices(config: JumarConfig, sources: list[CheckSource], workdir: Path, path: Path | None) -> Iterator[str]:
    if config.loop.protect:
        return
    for source in sources:
        runner = None if source.command is None or source.files is not None else runs_tests(source.command)
        if runner is not None:
            places = _where_tests_are(workdir)
            options = " ".join(f"--protect {shlex.quote(escape(place))}" for place in places)
            way = options if path is None else f"[loop] protect = {json.dumps(places)}"
            told = f"{escape(source.label)} runs {runner}, and nothing keeps the generator from weakening the tests"
            yield f"{told}; {way} puts them back before they run"
            return


def _where_tests_are(workdir: Path) -> tuple[str, ...]:
    """Return patterns for ``protect``, two at most: the directories that hold tests, and what else is named like one."""
    try:
        paths = [PurePosixPath(path) for path in ArtifactRules().list(workdir)]
    except JumarError:
        paths = []
    found = [f"{name}/**" for name in _TEST_DIRECTORIES if any(path.parts[0] == name for path in paths if len(path.parts) > 1)]
    beside = [path for path in paths if path.parts[0] not in _TEST_DIRECTORIES]
    for pattern in _TEST_FILES:
        tops = {path.parts[0] if len(path.parts) > 1 else "" for path in beside if path.match(pattern)}
        if tops:
            (top,) = tops if len(tops) == 1 else ("",)
            found.append(f"{top}/**/{pattern}" if top else pattern)
    return tuple(found[:2]) or ("tests/**",)


def _unmatched(protect: list[str], workdir: Path) -> Iterator[str]:
    """Yield a notice for each pattern that names no file: one that was mistyped keeps nothing from being weakened."""
    wanted = [pattern for pattern in protect if not pattern.startswith("!") and not is_own(pattern)]
    if not wanted:
        return
    from pathspec import GitIgnoreSpec

    try:
        paths = ArtifactRules(include=tuple(wanted)).list(workdir)
    except JumarError:  # a directory that cannot be read: the first iteration says so
        return
    for pattern in wanted:
        if not any(GitIgnoreSpec.from_lines([pattern]).match_files(paths)):
            yield (
                f"[loop] protect: '{escape(pattern)}' names no file in {escape(str(workdir))}, so it protects nothing; "
                "check its spelling: patterns are .gitignore's, seen from that directory"
            )


def changed_checks(store: LoopStore, rules: GuardRules, *, accepting: bool) -> list[str]:
    """Return, for the person, which files of the checks are not what they were when the loop was started or last accepted.

    Left out are those that the loop itself puts back: an earlier version, which comes back with an iteration from before an
    accepted change; and, unless the person is ``accepting`` changes, those of which the loop has a copy after a run that was cut
    off while a generator was at work, because the generator may have changed them.
    """
    recorded = _recorded(store)
    if recorded is None:
        return []
    now = {file.path: file.digest for file in rules.files}
    changed = [
        file.path
        for file in recorded
        if now.get(file.path) != file.digest and (file.path in now or file.used_by not in {_HOOKS, _EMBEDDER})
    ]  # which functions are called may change freely
    kept = store.kept_checks() if changed else None
    if kept is not None:
        earlier = _earlier(store) if not _was_cut_off(store) or accepting else None
        copied = kept[1].entries
        changed = [
            path for path in changed if path not in copied or (earlier is not None and (path, now.get(path)) not in earlier)
        ]
    return [escape(f"{path}: {'changed' if path in now else 'gone'} since the loop was started") for path in changed]


def refuse_changed_parts(store: LoopReader, config: JumarConfig, *, workdir: Path, base: Path) -> None:
    """Refuse to take into this process what is not as when the loop was started or last accepted: a generator may have made it.

    That is what judges by, which is read before anything could be put back, and what is imported. What is not on record, of a
    hook that was added since, is the person's word. Errors: :class:`jumar.errors.ConfigError`.
    """
    recorded = {file.path: file.digest for file in _recorded(store) or ()}
    for path in (path for options in _judges(config) for path in _read_by(options, base)):
        known = recorded.get(_path_in(Path(os.path.normpath(path)), workdir))
        if known is not None and not (path.is_file() and digest_of(path.resolve()) == known):
            what = f"{path}, by which it is judged, is not as when the loop was started"
            raise ConfigError(f"{escape(what)}: put it back, or give --accept-changes if it was you")
    modules = {path.removesuffix(".py").removesuffix("/__init__") for path in recorded}
    for table, reference in _imported(config):
        name, place, search = "", base.resolve(), [os.fspath(base.resolve())]
        for part in reference.partition(":")[0].split("."):
            name, place = f"{name}.{part}".removeprefix("."), place / part
            spec = PathFinder.find_spec(name, search)
            if _path_in(place, workdir) in modules:
                origin = None if spec is None or not spec.has_location else spec.origin
                path = None if origin is None else _path_in(Path(origin), workdir)
                if origin is None or path not in recorded or digest_of(Path(origin)) != recorded[path]:
                    what = f"{path or _path_in(place, workdir)}, which {table} imports, is not as when the loop was started"
                    raise ConfigError(
                        f"{escape(what)}. It would run as jumar itself: put it back, or give --accept-changes if it was you"
                    )
            search = [] if spec is None else list(spec.submodule_search_locations or ())


def _path_in(path: Path, workdir: Path) -> str:
    return path.relative_to(workdir).as_posix() if path.is_relative_to(workdir) else os.fspath(path)


def as_recorded(store: LoopStore, rules: GuardRules) -> GuardRules:
    """Return ``rules`` with files and absences as they stand in the record: what the tree holds now may be a generator's."""
    recorded, config = _recorded(store), Fields(config_now(store), "loop.json: config")
    absent = config.texts("absent") if "absent" in config.data else ()
    rules = replace(rules, absent=tuple(sorted({*absent, *rules.absent})))
    return rules if recorded is None else replace(rules, files=recorded)


def _recorded(store: LoopReader) -> tuple[CheckFile, ...] | None:
    return _files_of(config_now(store))


def _files_of(config: Mapping[str, Any]) -> tuple[CheckFile, ...] | None:
    section = Fields(config, "loop.json: config").section_or_none("checks")
    if section is None:
        return None
    files = ((path, section.section(path)) for path in section.data)
    return tuple(
        CheckFile(path=path, digest=file.text("sha256"), used_by=file.text("used_by"), in_tree=not path.startswith("/"))
        for path, file in files
    )


def _earlier(store: LoopStore) -> set[tuple[str, str | None]]:
    """Return every version of a check's file that was ever recorded."""
    accepted = [decision.data.get("config") for decision in store.decisions() if decision.kind == "accept"]
    versions: set[tuple[str, str | None]] = set()
    for config in (store.config, *accepted):
        if isinstance(config, Mapping):
            versions.update((file.path, file.digest) for file in _files_of(cast("Mapping[str, Any]", config)) or ())
    return versions


def _was_cut_off(store: LoopStore) -> bool:
    attempts = store.attempts()
    last = attempts[-1].end if attempts else None
    return bool(attempts) and (last is None or last.outcome in _UNFINISHED or store.pending() is not None)
