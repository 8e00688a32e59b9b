"""Verified, not declared: what decides about candidates stays as it was at the start, and so does what was recorded.

The generator may change its working directory. When it changes the checks, the store or the configuration, it is caught, what can
be put back is put back, and the iteration is not verified. What ``protect`` names is put back without blame: then weakened tests
are no help, and new ones are welcome. This guards against agents that take a short cut, not against forgers: a generator with the
same rights as jumar could alter the running process. ``isolation = "sandbox"`` takes the rights away.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jumar.core import copying, files, leftovers
from jumar.core.file_cache import times_tell
from jumar.core.kept import VERSIONS, Kept, copies_of, keep_versions, put
from jumar.core.leftovers import is_of_the_machine
from jumar.core.record import Record
from jumar.core.text import escape
from jumar.errors import StoreDamagedError
from jumar.loop.checks.runners.configuration import OWN, Deciding, is_harmless, stands_in
from jumar.loop.settings import GuardRules
from jumar.loop.snapshots.content import Content, PlainFiles
from jumar.loop.snapshots.manifest import Manifest
from jumar.loop.snapshots.restore import RestorePlan, plan_restore, restore
from jumar.loop.snapshots.snapshot import StatCache
from jumar.loop.store.layout import ARTIFACTS
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.tamper_check import Damage, StoreWatch
from jumar.loop.workspace.clearing import open_folders
from jumar.loop.workspace.surroundings import Surroundings
from jumar.loop.workspace.workspace import Workspace
from jumar.model.records import ArtifactDetail
from jumar.processes.bytecode import installed
from jumar.processes.check_files import CheckFile

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_COPIED: Final = 1 << 20  # a check's file up to this size is put back when it changes
_SHOWN: Final = 5
_COMMONDIR: Final = ".git/commondir"  # only a linked worktree's has one, and there .git is a file
_MODE: Final = "was given another mode"
_INSTEAD: Final = "would run instead of what a check names"
_OURS: Final = ("check-", "score-", "evaluation", VERSIONS)  # names in the logs that checks and scorers write


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding(Record):
    """Something that the generator did to what decides or to what was recorded.

    ``fails``: the iteration is not verified. ``distrust``: what decides could not be put back, or was changed while it decided,
    so that the score means nothing.
    """

    message: str
    fails: bool = True
    distrust: bool = False


def history_findings(workspace: Workspace, head: str | None, commits: tuple[str, ...]) -> tuple[Finding, ...]:
    """Return what to say when the repository's history was rewritten since ``head``; ``commits`` are those made since."""
    if head is None or (not commits and workspace.in_repository()):
        return ()
    message = workspace.rewritten_since(head)
    return () if message is None else (Finding(message=message, fails=False),)


@dataclass(slots=True)
class _Window:
    """One run of a program that could change things: a generator's, or that of checks and scorers."""

    scratch: Path
    given: dict[str, bytes | None]
    found: list[Finding] = field(default_factory=list[Finding])


class Guard:
    """Guards one loop while its writer holds the lock.

    :meth:`begin` comes first and once; then, around each candidate and in this order: :meth:`before_generate`,
    :meth:`after_generate`, :meth:`put_back` (before the snapshot), :meth:`before_scoring`, :meth:`after_scoring`. Several
    candidates may be under way; what is found in the store then counts for each of them.
    """

    def __init__(self, store: LoopStore, rules: GuardRules, surroundings: Surroundings | None = None) -> None:
        self._store = store
        self._surroundings = surroundings or Surroundings(store)
        self._rules = rules
        self._watch = StoreWatch(store)
        self._cache = StatCache()
        self._start = Manifest({})
        self._copies: Content = PlainFiles(store.artifacts(0))
        self._outside: tuple[CheckFile, ...] = ()
        self._spec: GitIgnoreSpec | None = _spec([*OWN, *rules.protect]) if rules.protect else None
        self._free: GitIgnoreSpec | None = _spec(["*", *rules.protect]) if rules.protect else None
        self._used_by = {file.path: file.used_by for file in rules.files}
        self._windows: dict[tuple[str, int], _Window] = {}
        self._config: tuple[Kept, ...] = ()
        self._kept: tuple[Kept, ...] = ()
        self._led = False
        self._deciding: Deciding | None = None

    def begin(self, workspace: Workspace) -> tuple[str, ...]:
        """Keep copies of what decides, or compare it with those of the loop's start; returns notices for the person.

        Before anything else runs. Where a run was interrupted, what its generator had changed is set aside and put back.
        """
        self._config = copies_of(self._rules.kept)
        generation = 1 + sum(decision.kind == "accept" for decision in self._store.decisions())
        kept = self._store.kept_checks()
        notices = list(self._rules.notices) if self._is_new() else []
        self._led = os.path.lexists(workspace.tree / _COMMONDIR)
        if kept is None or kept[0] < generation:
            notices += self._carry_over(kept, workspace)
            kept = (generation, self._keep(generation, workspace))
        self._start, self._copies = kept[1], PlainFiles(self._store.paths.checks_of(kept[0]) / ARTIFACTS)
        self._outside = tuple(file for file in self._rules.files if file.path not in self._start.entries)
        self._open_folders(workspace)
        plan = self._difference(workspace)
        if plan.write:
            present = [detail.path for detail in plan.write if os.path.lexists(workspace.directory / detail.path)]
            aside = workspace.set_aside(present) if present else None
            restore(plan)
            names = _some(detail.path for detail in plan.write)
            kept_in = "" if aside is None else f"; what was there is kept in {escape(os.fspath(aside))}"
            notices.append(f"{names}: not as at the start of the loop, and put back{kept_in}")
        return tuple(notices)

    def _is_new(self) -> bool:
        """Whether no iteration is recorded yet under the configuration that holds: what is so once is told once."""
        accepted = [decision.final_iteration for decision in self._store.decisions() if decision.kind == "accept"]
        return self._store.iteration_numbers()[-1:] in {(), tuple(accepted[-1:])}

    def ready(self, workspace: Workspace) -> None:
        """Make the files that decide as they were at the start, after the tree was brought to an iteration's snapshot."""
        plan = self._difference(workspace)
        if plan.write:
            restore(plan)

    def before_generate(self, number: int, scratch: Path) -> None:
        """Remember how things are before a generator runs; ``scratch`` is its directory, with the prompt in it."""
        self._open("generate", number, scratch)

    def after_generate(self, number: int) -> tuple[Finding, ...]:
        """Return what the generator did to the store, to its logs and to the configuration, put back. Before its end is recorded.

        Errors: :class:`jumar.errors.StoreDamagedError` when it deleted the store.
        """
        window = self._close("generate", number)
        found = [*self._scratch(window), *self._configuration(window, "while the generator ran, ")]
        return (*window.found, *found)

    def put_back(self, workspace: Workspace, logs: Path | None, *, decided: bool = False) -> tuple[Finding, ...]:
        """Make protected files and those of the checks as they were at the start, before the snapshot is taken.

        What the generator made of them is kept below ``logs``, up to 1 MiB each and 8 MiB in all. ``decided``: they have just
        been used, so that a change of a content is held against the iteration, and its score means nothing.
        """
        if workspace.gone() is not None:  # what stands there may be a person's: whoever sees that makes the tree anew
            return ()
        led = self._led_elsewhere(workspace)
        new = self._new_control(workspace)
        there = [path for path in self._rules.absent if os.path.lexists(workspace.directory / path)]
        shadows = tuple(path for path in there if not files.is_directory(workspace.directory / path))  # which would not run
        if not self._start.entries and not new and not shadows:
            return led
        self._open_folders(workspace)
        self._clear_directories(workspace)
        plan = self._difference(workspace, (*new, *shadows))
        if not plan.write and not plan.delete:
            return led
        found = [*self._judge(plan, workspace.directory, frozenset(new), decided=decided)]
        found += [
            Finding(message=f"{escape(path)} {self._rules.unasked.get(path, _INSTEAD)}, and was taken out") for path in shadows
        ]
        if logs is not None:
            keep_versions(workspace.directory, (*(detail.path for detail in plan.write), *plan.delete), logs / VERSIONS)
        try:
            restore(plan)
        except StoreDamagedError as error:  # its copies are not what they were; those of the start's snapshot may be
            self._copies = self._store.content(0)
            restore(replace(plan, content=self._copies))
            found.append(Finding(message=f"a copy of what decides was taken away or changed: {error}"))
        return (*led, *(map(_after_the_fact, found) if decided else found))

    def before_scoring(self, number: int, workspace: Workspace, logs: Path) -> tuple[Finding, ...]:
        """Look at what decides, right before it does. The snapshot of iteration ``number`` is pending."""
        self._open("score", number, logs)
        return (*self.put_back(workspace, logs), *self._elsewhere(workspace))

    def after_scoring(self, number: int, workspace: Workspace) -> tuple[Finding, ...]:
        """Look again: the candidate's own code ran in its checks. What it changed may be what the verdict came from."""
        window = self._close("score", number)
        found = [*window.found, *self.put_back(workspace, window.scratch, decided=True), *self._elsewhere(workspace)]
        found += self._configuration(window)
        return tuple(replace(item, message=f"while the checks ran, {item.message}") for item in dict.fromkeys(found))

    @property
    def guarded(self) -> tuple[str, ...]:
        """The relative paths of what is as it was at the start, whoever changed it."""
        return tuple(self._start.entries)

    def end(self) -> tuple[str, ...]:
        """Look at everything that was recorded, before the best is selected; returns what was found, for the person."""
        self._watch.arm()
        return tuple(f"the store: {damage}" for damage in self._watch.look(everything=True))

    def _open(self, phase: str, number: int, scratch: Path) -> None:
        names = ("prompt.md", "feedback.json") if phase == "generate" else ()
        self._watch.arm(alone=not self._windows)
        if not self._windows:
            self._kept = (*self._config, *copies_of(self._rules.ran))
        self._windows[phase, number] = _Window(
            scratch=scratch,
            given={name: files.content_of(scratch / name) for name in names},
        )

    def _close(self, phase: str, number: int) -> _Window:
        under_way = sorted({each for _, each in self._windows})
        damages = self._watch.look()
        if self._store.regain_lock():
            damages = (*damages, Damage("the lock of the loop", "was deleted", mended=True))
        for damage in damages:
            for window in self._windows.values():
                window.found.append(_of_damage(damage, under_way))
        return self._windows.pop((phase, number))

    def _scratch(self, window: _Window) -> Iterator[Finding]:
        """Find what the generator did to its own logs: the prompt rewritten, a report laid where a check would write it."""
        for name, before in window.given.items():
            path = window.scratch / name
            if before is not None and not files.holds(path, before):
                put(path, before)
                yield Finding(message=f"{name}, which the loop gave to the generator, was changed and put back")
        with contextlib.suppress(OSError):
            for path in sorted(window.scratch.iterdir()):
                if path.name.startswith(_OURS):
                    leftovers.remove_any(path)
                    yield Finding(message=f"{escape(path.name)} was put among the logs, where checks write, and removed")

    def _configuration(self, window: _Window, when: str = "") -> Iterator[Finding]:
        """Put the configuration back as this run read it: a limit that was raised in it would hold from the next run on."""
        for kept in self._kept:
            if kept.differs():
                said = f"{escape(kept.path.name)}, {kept.what}, was changed"
                finding = Finding(message=f"{said} {when}{kept.put_back(window.scratch)}")
                for other in self._windows.values():
                    other.found.append(finding)
                yield finding

    def _keep(self, generation: int, workspace: Workspace) -> Manifest:
        """Copy what decides into the store; nothing when the loop has no such files."""
        tree, origin = workspace.directory, workspace.origin
        own = [file for file in self._rules.files if file.in_tree]
        if tree != origin:
            for file in own:
                if not os.path.lexists(tree / file.path):
                    with contextlib.suppress(OSError):
                        files.make_directory((tree / file.path).parent)
                        copying.copy_alike(origin / file.path, tree / file.path, follow_symlinks=False)
        paths = {file.path for file in own if _is_small(tree / file.path)}
        if self._spec is not None:
            paths |= self._protected(workspace)
        return self._store.keep_checks(generation, tree, sorted(paths)) if paths else Manifest({})

    def _carry_over(self, kept: tuple[int, Manifest] | None, workspace: Workspace) -> Iterator[str]:
        """Make what is protected as at the start, whatever the tree holds now; yields what to tell a person.

        After a change that a person accepted, and where the copies are gone: then it is that of the start's snapshot.
        """
        store, later = self._store, ()
        if kept is None and not (store.iteration_numbers()[:1] == (0,) and store.has_snapshot(0)):
            return
        start = store.manifest(0) if kept is None else kept[1]
        copies = store.content(0) if kept is None else PlainFiles(store.paths.checks_of(kept[0]) / ARTIFACTS)
        entries = {path: detail for path, detail in start.entries.items() if self._protects(path)}
        if kept is None:
            self._surroundings.begin(workspace)
            there = self._protected(workspace) - entries.keys()
            later = tuple(sorted(path for path in there if not self._surroundings.had(workspace, path)))
        plan = plan_restore(Manifest(entries), copies, workspace.directory, later, cache=workspace.cache)
        changed = [path for path in (*(one.path for one in plan.write), *later) if os.path.lexists(workspace.directory / path)]
        if kept is None and changed:
            aside = escape(os.fspath(workspace.set_aside(changed)))
            said = f"{_some(changed)}: not as in the snapshot of the start, and the copies that the loop had are gone"
            yield f"{said}; put back, and what was there is kept in {aside}"
        if plan.write or plan.delete:
            restore(plan)

    def _protected(self, workspace: Workspace) -> set[str]:
        return {path for path in (*workspace.paths(), *workspace.matching(self._rules.protect)) if self._protects(path)}

    def _difference(self, workspace: Workspace, new: Iterable[str] = ()) -> RestorePlan:
        return plan_restore(self._start, self._copies, workspace.directory, new, cache=workspace.cache)

    def _led_elsewhere(self, workspace: Workspace) -> tuple[Finding, ...]:
        """Remove a new file ``commondir``: git would take settings and hooks from where it points. No sandbox keeps it out."""
        path = workspace.tree / _COMMONDIR
        if self._led or path.parent.is_symlink() or not os.path.lexists(path):
            return ()
        with contextlib.suppress(OSError):
            leftovers.remove_any(path)
        return (
            Finding(message=f"{_COMMONDIR}, by which git takes settings and hooks from elsewhere, was put there and removed"),
        )

    def _open_folders(self, workspace: Workspace) -> None:
        open_folders(workspace.directory, {path.rpartition("/")[0] for path in self._start.entries})

    def _clear_directories(self, workspace: Workspace) -> None:
        """Remove directories that stand where a file of a check belongs."""
        for path in self._start.entries:
            place = workspace.directory / path
            with contextlib.suppress(OSError):
                if stat.S_ISDIR(os.lstat(place).st_mode) and files.is_inside(place, workspace.directory):
                    leftovers.remove_tree(place)

    def _protects(self, path: str) -> bool:
        return self._spec is not None and self._spec.match_file(path)

    def _new_control(self, workspace: Workspace) -> tuple[str, ...]:
        """Return the files that change how tests run and were not there at the start; without ``protect`` none.

        What the loop does not keep counts too, and what ``protect`` frees (``!pytest.ini``) does not.
        """
        if self._free is None or not self._store.iteration_numbers():
            return ()
        self._surroundings.begin(workspace)
        known = self._store.manifest(0).entries
        if self._deciding is None:
            self._deciding = Deciding.of(self._start.entries, start=known, installed=self._rules.installed)
        deciding = self._deciding
        skipped = installed(workspace.directory, sorted(known))
        return tuple(
            path
            for path, entry in files.walk(workspace.directory, prune=skipped, lenient=True)
            if path not in deciding.folders  # a link in the place of one: what it held is put back, which is all
            and any(stands_in(name, deciding) for name in _names_of(path, entry))
            and path not in known
            and not (path in self._start.entries or self._surroundings.had(workspace, path))
            and not (deciding.is_imported_instead(path) and self._surroundings.made_at_start(workspace, path))
            and self._free.match_file(path)
            and not is_harmless(path, files.content_of(workspace.directory / path), deciding)
        )

    def _judge(self, plan: RestorePlan, tree: Path, new: frozenset[str], *, decided: bool) -> Iterator[Finding]:
        protected: dict[str, list[str]] = {}
        for path in sorted({detail.path for detail in plan.write}):
            what = _what(tree, self._start.entries[path])
            if path not in self._used_by or self._protects(path):
                known = what if decided or what != _MODE else "was changed"
                protected.setdefault(known.removeprefix("was "), []).append(path)
            elif what == _MODE:
                yield Finding(message=f"{escape(path)}, which {self._used_by[path]} runs, {what} and put back", fails=False)
            else:
                yield Finding(
                    message=f"{escape(path)}, which {self._used_by[path]} runs, {what} by the generator and put back; "
                    "if it is the generator's to change, name it in [artifacts] include, or write files = [] in that table"
                )
        for what, paths in protected.items():
            were = "was" if len(paths) == 1 else "were"
            message = f"{_some(paths)} {were} {what} by the generator and put back (protect)"
            yield Finding(message=message, fails=decided and f"was {what}" != _MODE)
        if new:
            verb = "is new and changes how tests run: it was" if len(new) == 1 else "are new and change how tests run: they were"
            free = f'"!{escape(min(new))}" there allows {"it" if len(new) == 1 else "the first"}'
            yield Finding(message=f"{_some(sorted(new))} {verb} taken out (protect; {free})")

    def _elsewhere(self, workspace: Workspace) -> Iterator[Finding]:
        """Compare the files of checks of which there is no copy: outside of the working directory, or too large.

        Of an iteration that is made elsewhere, what runs from the person's own directory is outside too.
        """
        found, origin = self._outside, workspace.origin
        if workspace.directory != origin:
            there = (file for file in self._rules.files if file.path in self._rules.at_base)
            found = (*found, *(replace(file, path=os.fspath(origin / file.path), in_tree=False) for file in there))
            for path in (origin / path for path in self._rules.absent):
                if os.path.lexists(path):
                    said = self._rules.unasked.get(path.name, _INSTEAD)
                    what = f"{escape(os.fspath(path))} {said}: take it away"
                    yield Finding(message=what, distrust=True)
        for file in found:
            path = workspace.directory / file.path if file.in_tree else Path(file.path)
            now = self._digest(path)
            if now != file.digest:
                what = "is gone" if now is None else "is not what it was at the start"
                way_out = "put it back, or accept the change with `jumar run --accept-changes`"
                message = f"{escape(file.path)}, which {file.used_by} runs, {what}, so that its verdict means nothing: {way_out}"
                yield Finding(message=message, distrust=True)

    def _digest(self, path: Path) -> str | None:
        """Return the SHA-256 of the file that ``path`` leads to, None when there is none; believed by stat where that is safe."""
        try:
            real = path.resolve()
            status = real.stat()
            known = self._cache.get(os.fspath(real), status)
            if known is not None:
                return known.content_hash
            if not stat.S_ISREG(status.st_mode):
                return None
            times_tell(real.parent)
            looked_at = time.time_ns()
            digest = files.digest_of(real)
        except (OSError, RuntimeError) as error:
            if is_of_the_machine(error):
                raise
            return None
        self._cache.put(os.fspath(real), status, looked_at, ArtifactDetail(path=os.fspath(real), content_hash=digest))
        return digest


def _spec(lines: Sequence[str]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(lines)


def _names_of(path: str, entry: os.DirEntry[str]) -> tuple[str, ...]:
    """Return the paths by which a file is a module: a link to a directory is a package, or says which plugins there are."""
    with contextlib.suppress(OSError):  # of a link that leads in a circle, or where nobody may look
        if entry.is_symlink() and entry.is_dir():
            return tuple(f"{path}/{name}" for name in ("__init__.py", "index.js", "entry_points.txt"))
    return (path,)


def _after_the_fact(finding: Finding) -> Finding:
    if not finding.fails:
        return finding
    return replace(finding, message=f"{finding.message}; the verdict may have come from it, so it means nothing", distrust=True)


def _of_damage(damage: Damage, under_way: Sequence[int]) -> Finding:
    message = f"the store was written by somebody else: {damage}{' (put back)' if damage.mended else ''}"
    if len(under_way) > 1:
        named = f"{', '.join(map(str, under_way[:-1]))} and {under_way[-1]}"
        message += f"; nobody can tell which of the iterations {named} did it, so it is held against each that was under way"
    return Finding(message=message)


def _is_small(path: Path) -> bool:
    try:
        return os.lstat(path).st_size <= _COPIED
    except OSError:
        return False


def _what(tree: Path, before: ArtifactDetail) -> str:
    try:
        status = os.lstat(tree / before.path)
    except OSError:
        return "was deleted"
    if before.kind == "file" and stat.S_ISREG(status.st_mode) and status.st_size == before.size:
        with contextlib.suppress(OSError):
            if files.sha256_file(tree / before.path) == before.content_hash:
                return _MODE
    return "was changed"


def _some(paths: Iterable[str]) -> str:
    listed = [escape(path) for path in paths]
    more = f" and {len(listed) - _SHOWN:,} more" if len(listed) > _SHOWN else ""
    return ", ".join(listed[:_SHOWN]) + more
