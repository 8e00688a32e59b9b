"""The runs below a directory, read once and again when they changed. Bounded: a page never waits for ten thousand loops."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from jumar.cases.layout import list_runs
from jumar.cases.report import ChainReport, load_run
from jumar.cases.run_store import RunReader
from jumar.core.lock import who_holds
from jumar.core.redaction import current
from jumar.core.text import escape, plural
from jumar.errors import JumarError, NotFoundError
from jumar.judging.report.read import EvaluationReport, evaluations_in, gap_point, load_evaluation
from jumar.learning.report.view import LearningReport
from jumar.learning.run.read import read_report
from jumar.learning.run.request import LOOP, REQUEST, ROOT
from jumar.loop.report.observer import LoopSummary, summarize
from jumar.loop.report.read import LoopReport, full_trail, load_report
from jumar.loop.store.in_force import TrailEntry, held
from jumar.loop.store.layout import LoopPaths, loop_folders, loops_directory, runs_directory
from jumar.loop.store.loop_store import LoopStore

Kind = Literal["loop", "cases", "learn", "evaluation"]
T = TypeVar("T")

_FRESH_SECONDS: Final = 1.5
_FIRST_SECONDS: Final = 0.5
_SECOND_LOOK: Final = 0.25
_KEPT: Final[Mapping[str, int]] = {"trail": 500}
_KEPT_REPORTS: Final = 8
_MOST_AUDITED: Final = 500
_DEEPEST: Final = 4
_FIRST_EVALUATION: Final = "iteration_1"
_MOST_FOLDERS: Final = 20_000
_TABLES: Final = (".jsonl", ".csv", ".tsv")
_MOST_TABLES: Final = 2_000
_NOT_ENTERED: Final = frozenset({".git", ".hg", ".venv", "venv", "node_modules", "__pycache__", ".tox", ".mypy_cache"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One row of the first page. ``key`` names it in addresses; ``summary`` is what is known of its loop, None for cases."""

    kind: Kind
    key: str
    directory: Path
    summary: LoopSummary | None = None
    state: str = ""
    detail: str = ""
    updated_at: str | None = None

    @property
    def name(self) -> str:
        """Return what people call it: the key, with the folder that it lies in as a path."""
        return self.key.replace("~", "/")

    @property
    def address(self) -> str:
        """Return where its page is."""
        return f"/{_PLURAL.get(self.kind, self.kind)}/{self.key}"


_PLURAL: Final = {"loop": "loops", "evaluation": "evaluations"}


@dataclass(frozen=True, slots=True)
class Decided:
    """One decision of a run; ``waits`` is whether it is a choice that a person still has to confirm."""

    run: Run
    entry: TrailEntry
    waits: bool


@dataclass(frozen=True, slots=True)
class Trail:
    """Decisions, the newest first; of how many runs they are not, because those changed longest ago or cannot be read."""

    rows: list[Decided]
    left_out: int
    unread: int


class Library:
    """What lies below ``root``. Threads may use it together; :meth:`runs` starts a look in the background where one is due."""

    def __init__(self, roots: list[Path], top: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._roots, self._top, self._clock = roots, top, clock
        self._lock = threading.Lock()
        self._runs: dict[Path, tuple[tuple[int, ...], Run]] = {}
        self._listed: tuple[Run, ...] = ()
        self._looked: float | None = None
        self._looking: threading.Thread | None = None
        self._took = 0.0
        self._reports: dict[str, OrderedDict[Path, tuple[tuple[int, ...], Any]]] = {}
        self._tables: tuple[str, ...] = ()
        self.complete = False

    def tables(self) -> tuple[str, ...]:
        """Return the files of records below the directory, as paths from there: what may hold rankings."""
        self.runs()
        return self._tables

    def runs(self) -> tuple[Run, ...]:
        """Return the runs, newest first: as they are now where looking takes less than a quarter of a second, else as they were.

        At first those that could be read in half a second.
        """
        with self._lock:
            due = self._looked is None or self._clock() - self._looked > _FRESH_SECONDS
            begun = due and self._looking is None
            if begun:
                self._looking = threading.Thread(target=self._look, daemon=True)
                self._looking.start()
            looking = self._looking if (begun and self._took < _SECOND_LOOK) or not self.complete else None
        if looking is not None:
            looking.join(_SECOND_LOOK if self.complete else _FIRST_SECONDS)
        return self._listed

    def find(self, kind: Kind, key: str) -> Run:
        """Return a run by its address. Errors: :class:`NotFoundError`."""
        found = self._known(kind, key)
        if found is None:
            self._look()
            found = self._known(kind, key)
        if found is None:
            raise NotFoundError(f"there is no {kind} '{key}' here")
        return found

    def _known(self, kind: Kind, key: str) -> Run | None:
        return next((run for run in self._listed if run.kind == kind and run.key == key), None)

    def loop(self, key: str) -> tuple[LoopStore, LoopReport]:
        """Return a loop and its report. Errors: :class:`NotFoundError`, :class:`jumar.errors.StoreDamagedError`."""
        directory = self.find("loop", key).directory
        report = self._cached("loop", directory, lambda: load_report(LoopStore.open(directory)))
        return LoopStore.open(directory), report

    def cases(self, key: str) -> ChainReport:
        """Return a run of cases. Errors: as :meth:`loop`."""
        return load_run(RunReader(self.find("cases", key).directory))

    def learning(self, key: str) -> LearningReport:
        """Return a learning run. Errors: as :meth:`loop`."""
        directory = self.find("learn", key).directory
        return self._cached("learn", directory, lambda: read_report(directory))

    def evaluation(self, kind: Kind, key: str, number: int | None = None) -> EvaluationReport:
        """Return an evaluation of a folder, the last for None; iterations of learning runs are some. Errors: as :meth:`loop`."""
        directory = self.find(kind, key).directory
        number = number or max(evaluations_in(directory), default=0)
        return self._cached("evaluation", directory / f"iteration_{number}", lambda: load_evaluation(directory, number))

    def trail(self) -> Trail:
        """Return the decisions of the loops that changed last, those of learning runs among them."""
        loops = [run for run in self.runs() if run.kind in {"loop", "learn"}]
        found: list[Decided] = []
        unread = 0
        for run in loops[:_MOST_AUDITED]:
            store = _store_of(run)
            try:
                decisions = self._cached("trail", store, lambda store=store: LoopStore.open(store).decisions())
            except (JumarError, OSError):  # its own page says what is wrong with it
                unread += 1
                continue
            waits = held(decisions)
            found += (Decided(run, entry, entry.decision is waits) for entry in full_trail(decisions))
        found.sort(key=lambda row: (row.entry.decision.at, row.entry.decision.number), reverse=True)
        return Trail(found, left_out=max(0, len(loops) - _MOST_AUDITED), unread=unread)

    def path_of(self, table: str) -> Path:
        """Return where one of :meth:`tables` lies. Errors: :class:`NotFoundError` for anything else."""
        if table not in self._tables and table not in self.tables():
            raise NotFoundError(f"there is no file '{table}' of records here")
        return self._top / table

    def stamp(self, run: Run) -> tuple[int, ...]:
        """Return what changes when a run does."""
        store = _store_of(run)
        return (
            *_stamp(store),
            _modified(store / "events.jsonl"),
            0 if run.kind != "loop" or who_holds(LoopPaths(store).lock) is None else 1,
        )

    def _cached(self, kind: str, directory: Path, read: Callable[[], T]) -> T:
        stamp = _stamp(loops_directory(directory / ROOT) / LOOP if kind == "learn" else directory)
        with self._lock:
            kept = self._reports.setdefault(kind, OrderedDict())
            there = kept.get(directory)
            if there is not None and there[0] == stamp:
                kept.move_to_end(directory)
                return there[1]
        made = read()
        with self._lock:
            kept[directory] = stamp, made
            while len(kept) > _KEPT.get(kind, _KEPT_REPORTS):
                kept.popitem(last=False)
        return made

    def _look(self) -> None:
        began = time.monotonic()
        try:
            kept: dict[Path, tuple[tuple[int, ...], Run]] = {}
            for run in self._found():
                store = _store_of(run)
                stamp = _stamp(store)
                there = self._runs.get(store)
                moving = there is not None and there[1].state in {"running", "waiting"}
                kept[store] = there if there is not None and there[0] == stamp and not moving else (stamp, _described(run, store))
                if not self.complete and len(kept) % 100 == 0:
                    self._listed = _sorted(kept)
            self._runs, self._listed = kept, _sorted(kept)
        finally:
            with self._lock:
                self.complete, self._looked, self._looking = True, self._clock(), None
                self._took = time.monotonic() - began

    def _found(self) -> Iterator[Run]:
        seen: set[Path] = set()
        for root in [*self._roots, *self._below()]:
            if root.name == _FIRST_EVALUATION:
                if not (root.parent / REQUEST).exists() and evaluations_in(root.parent):
                    yield Run(kind="evaluation", key=_name(root.parent, self._top), directory=root.parent)
                continue
            if root in seen:
                continue
            seen.add(root)
            prefix = "" if root == self._roots[0] else f"{_name(root, self._top)}~"
            learned = (root.parent / REQUEST).is_file()
            for folder in loop_folders(root):
                if learned and folder.name == LOOP:
                    yield Run(kind="learn", key=_name(root.parent, self._top), directory=root.parent)
                else:
                    yield Run(kind="loop", key=prefix + folder.name, directory=folder)
            runs = runs_directory(root)
            for name in list_runs(runs):
                yield Run(kind="cases", key=prefix + name, directory=runs / f"run_{name}")

    def _below(self) -> Iterator[Path]:
        """Yield every store, and every first evaluation, in the folders below, in order, without following links."""
        waiting, entered, tables = [(self._top, 0)], 0, list[str]()
        while waiting and entered < _MOST_FOLDERS:
            folder, depth = waiting.pop()
            entered += 1
            try:
                entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            except OSError:
                continue
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
            if len(tables) < _MOST_TABLES:
                found = (entry.path for entry in entries if entry.name.endswith(_TABLES) and entry.is_file(follow_symlinks=False))
                tables += (os.path.relpath(path, self._top) for path in found if path.isprintable())  # it stands in an address
            if ".jumar" in names:
                yield folder / ".jumar"
            if _FIRST_EVALUATION in names:
                yield folder / _FIRST_EVALUATION
            if depth < _DEEPEST:
                inner = [folder / name for name in names if name not in _NOT_ENTERED and not name.startswith((".", "iteration_"))]
                waiting += [(path, depth + 1) for path in reversed(inner)]
        self._tables = tuple(tables[:_MOST_TABLES])


def _name(directory: Path, top: Path) -> str:
    """Return a directory as one part of an address, which no other directory has; what is no text in it is shown."""
    path = os.path.relpath(directory, top).removesuffix("/.jumar")
    return escape(path.replace("\\", r"\x5c").replace("~", r"\x7e")).replace("/", "~")


def _store_of(run: Run) -> Path:
    return loops_directory(run.directory / ROOT) / LOOP if run.kind == "learn" else run.directory


def _stamp(directory: Path) -> tuple[int, ...]:
    """Return when something was last added to a run."""
    return tuple(map(_modified, (directory, *(directory / name for name in _PARTS))))


_PARTS: Final = ("iterations", "attempts", "decisions", "readings", "pending")


def _modified(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _described(run: Run, store: Path) -> Run:
    try:
        if run.kind == "cases":
            reader = RunReader(run.directory)
            ended = sum(reader.case(number).end() is not None for number in reader.case_ids)
            state = "finished" if ended == len(reader.case_ids) else "unfinished"
            return replace(run, state=state, detail=f"{ended} of {len(reader.case_ids)} cases", updated_at=reader.created_at)
        if run.kind == "evaluation":
            numbers = evaluations_in(run.directory)
            last = datetime.fromtimestamp((run.directory / f"iteration_{numbers[-1]}").stat().st_mtime, UTC)
            gap = gap_point(run.directory, numbers[-1]).abs_gap
            detail = plural(len(numbers), "evaluation") + ("" if gap is None else f", gap {gap:.2f}")
            return replace(run, state="finished", detail=detail, updated_at=last.isoformat())
        summary = summarize(store)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with one run, the others are shown
        return replace(run, state="damaged", detail=current().redact(str(error)))
    if summary is None:
        return replace(run, state="damaged", detail="loop.json is missing")
    stop = summary.state.stop
    return replace(
        run,
        summary=summary,
        state=summary.state.name,
        detail=summary.problem or ("" if stop is None else stop.reason.replace("_", " ")),
        updated_at=summary.updated_at,
    )


def _sorted(runs: Mapping[Path, tuple[tuple[int, ...], Run]]) -> tuple[Run, ...]:
    return tuple(sorted((run for _, run in runs.values()), key=lambda run: run.updated_at or "", reverse=True))
