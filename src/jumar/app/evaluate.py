"""``jumar evaluate``: items through the judges, in one iteration over the file, in as many processes or machines as asked for."""

from __future__ import annotations

import contextlib
import functools
import os
import pickle
import re
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from jumar.core.offload import as_executor_error
from jumar.core.text import escape
from jumar.errors import ConfigError, ItemError, JumarError, UsageError
from jumar.judging.cheap.evaluator import CheapModeEvaluator
from jumar.judging.cheap.rows import row_lines
from jumar.judging.component_health import CheapTally, check_patterns, every_component
from jumar.judging.files import EvaluationFiles, check_per_item, claimed, item_row, refuse_learning
from jumar.judging.gap import QUALITY_TARGET
from jumar.judging.items.records import ItemReader, SeenIds
from jumar.judging.items.sources import Chunk, read_chunks
from jumar.judging.models import ComponentHealthStatus, Unscored
from jumar.judging.patterns.models import PatternSet, Scorecard
from jumar.judging.rubric import StoryRubric, TextRubric, load_rubric

Mode = Literal["cheap", "expensive", "dual", "auto"]

FEW: Final = 50
"""Up to so many items, people are shown each of them."""

_BEGINNING: Final = 200


def check_mode(mode: Mode, judge: str | None) -> None:
    """Refuse a mode that needs a judge without one. Errors: :class:`ConfigError`."""
    if mode != "cheap" and judge is None:
        from jumar.judging.judges import forms

        named = ", ".join(forms())
        raise ConfigError(f"--mode {mode} needs a judge, and none is configured: give --judge {named}; --mode cheap needs none")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheapRequest:
    """What to evaluate, and by what. ``jobs`` are processes here; ``executor`` is the spec of another one and excludes them."""

    items: Path
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    patterns: Path | None = None
    rubric: str | None = None
    jobs: int = 1
    executor: str | None = None
    per_item: Path | None = None
    output: Path | None = None


class Moved(NamedTuple):
    """A pattern of a scorecard: the signed ``points`` it gives where it counts, on how many ``items`` it did.

    ``mean`` is the mean of the absolute points over all scored items: how much of the scores it makes.
    """

    id: str
    description: str
    points: float
    items: int
    mean: float


class ItemScore(NamedTuple):
    """An item as people are shown it: ``score`` is None where it has none; ``text`` is the beginning of its text."""

    id: str
    score: float | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheapEvaluation:
    """What came out: figures over all items, and with what they were made. ``directory`` is where ``-o`` wrote to.

    ``few`` are the single items where there are at most :data:`FEW` of them, else empty.
    """

    tally: CheapTally
    rubrics: tuple[StoryRubric | TextRubric, ...]
    pattern_ids: tuple[str, ...]
    active_patterns: int
    unused_weights: tuple[str, ...]
    patterns: PatternSet | None
    directory: Path | None
    few: tuple[ItemScore, ...] = ()

    @property
    def card(self) -> Scorecard | None:
        """What turns the patterns' points into scores, None where the rubric's components do."""
        return None if self.patterns is None else self.patterns.scorecard()

    def moved(self) -> list[Moved]:
        """Return the patterns that make the scores of a scorecard, the largest mean first; none without a scorecard."""
        card = self.card
        if card is None or self.patterns is None or not self.tally.scored:
            return []
        places = {name: index for index, name in enumerate(self.pattern_ids)}
        found: list[Moved] = []
        for pattern in self.patterns.patterns:
            if pattern.status != "active" or pattern.id not in places:
                continue
            good = pattern.type == "good"
            place = places[pattern.id]
            items = self.tally.fired[place] - (self.tally.held[place] if good and pattern.feature is None else 0)
            points = (1.0 if good else -1.0) * pattern.weight * card.unit
            if items and points:
                found.append(Moved(pattern.id, pattern.description, points, items, abs(points) * items / self.tally.scored))
        return sorted(found, key=lambda one: (-one.mean, one.id))

    def health(self) -> ComponentHealthStatus:
        """Return the health of the cheap judge."""
        return self.tally.health(len(self.pattern_ids), scorecard=self.card is not None)

    def document(self) -> dict[str, Any]:
        """Return what ``--json`` prints. Counts of reasons and patterns are largest first."""
        tally = self.tally
        return {
            "mode": "cheap",
            "story_count": tally.items,
            "scored": tally.scored,
            "unscored": tally.items - tally.scored,
            "cheap": {
                "gestalt_avg": tally.mean,
                "gestalt_min": tally.lowest if tally.scored else None,
                "gestalt_max": tally.highest if tally.scored else None,
                "variance": tally.variance,
                "distribution": tally.bins,
                "reasons": dict(tally.most_frequent(tally.reasons)),
                "unscored": dict(tally.most_frequent(tally.unscored)),
                "rubrics": {rubric.name: rubric.digest for rubric in self.rubrics},
                "patterns": self._patterns(),
                "scorecard": self._scorecard(),
            },
            "expensive": None,
            "gap": None,
            "abs_gap_mean": None,
            "tracking": None,
            "quality": {"cheap_avg": tally.mean, "met": None if tally.mean is None else tally.mean >= QUALITY_TARGET},
            "health": self._health(),
            "output": None if self.directory is None else str(self.directory.absolute()),
        }

    def _scorecard(self) -> dict[str, Any] | None:
        card = self.card
        if card is None:
            return None
        moved = {one.id: {"points": one.points, "items": one.items, "mean_points": one.mean} for one in self.moved()}
        return {"base": card.base, "moved": moved}

    def _health(self) -> dict[str, Any]:
        known = {"cheap_evaluator": self.health(), "pattern_migration": check_patterns(self.patterns)}
        return {name: one.model_dump() for name, one in every_component(**known).items()}

    def _patterns(self) -> dict[str, Any]:
        tally = self.tally
        return {
            "known": len(self.pattern_ids),
            "active": self.active_patterns,
            "fired_items": tally.with_pattern,
            "pattern_match": tally.with_pattern / tally.scored if tally.scored else None,
            "fired_patterns": len(tally.fired),
            "fired": {self.pattern_ids[index]: count for index, count in tally.most_frequent(tally.fired)},
        }


def evaluate_cheaply(request: CheapRequest, hear: Callable[[int, int], None] | None = None) -> CheapEvaluation:
    """Evaluate all items of a file in cheap mode, in their order; ``hear`` is told bytes read and items done after each chunk.

    What it returns and writes does not depend on ``jobs``. Files appear when all is done: an error leaves none behind. Errors:
    :class:`ItemError` that names file and line, also for a file without items; those of patterns, rubric and executor.
    """
    evaluator = _evaluator(request)
    if request.output is not None:
        refuse_learning(request.output)
    check_per_item(request.per_item, request.items, request.patterns, None if request.rubric is None else Path(request.rubric))
    kind = "story" if len(evaluator.rubrics) == 1 and evaluator.rubrics[0].kind == "story" else None
    chunks = read_chunks(request.items)
    first = next(chunks, None)
    if first is None:
        raise ItemError(f"{request.items}: there are no items in it; give one JSON object a line")
    reader = ItemReader(request.fields, kind).begin(first)
    rubric = None if request.rubric is None else evaluator.rubrics[0]
    task = _Task(evaluator.patterns, rubric, reader, request.per_item is not None, request.output is not None)
    tally, seen = CheapTally(), SeenIds()
    few: list[ItemScore] = []
    with claimed(request.per_item), EvaluationFiles(request.per_item, request.output) as files:
        with contextlib.closing(_done(request, task, evaluator, _chain(first, chunks))) as finished:
            for chunk, done in finished:
                seen.add((item_id, chunk.where(number)) for item_id, (number, _) in zip(done.ids, chunk.records, strict=True))
                tally.merge(done.tally)
                files.add(done.lines, done.judged)
                few += done.few if tally.items <= FEW else ()
                if hear is not None:
                    hear(chunk.end, tally.items)
        evidence = evaluator.evidence
        found = CheapEvaluation(
            tally=tally,
            rubrics=evaluator.rubrics,
            pattern_ids=() if evidence is None else evidence.ids,
            active_patterns=0 if evidence is None else evidence.active,
            unused_weights=evaluator.unused_weights,
            patterns=evaluator.patterns,
            directory=files.directory,
            few=tuple(few) if tally.items <= FEW else (),
        )
        files.finish(found.document(), request.items, request.patterns)
    return found


def _evaluator(request: CheapRequest) -> CheapModeEvaluator:
    if request.executor is not None and request.jobs > 1:
        raise UsageError("--jobs are processes here and --executor is somewhere else: choose one")
    return CheapModeEvaluator(request.patterns, rubric=load_rubric(request.rubric))


def _chain(first: Chunk, others: Iterator[Chunk]) -> Iterator[Chunk]:
    yield first
    yield from others


# ------------------------------------------------------------------------------------------------------------- workers


@dataclass(frozen=True, slots=True)
class _Task:
    """All that a worker needs besides the records, and what it is to give back."""

    patterns: PatternSet | None
    rubric: StoryRubric | TextRubric | None
    reader: ItemReader
    lines: bool
    stories: bool


@dataclass(frozen=True, slots=True)
class _Done:
    """A chunk's figures, its ids in order; for files a line an item, and ``(result, item)`` as JSON each; ``few``: its items."""

    tally: CheapTally
    ids: list[str]
    lines: str
    judged: list[tuple[str, str]]
    few: list[ItemScore]


def _work(task: _Task, evaluator: CheapModeEvaluator, chunk: Chunk) -> _Done:
    items = task.reader.items(chunk)
    readings = list(map(evaluator.read, items))
    tally = CheapTally()
    tally.add_all(readings)
    few: list[ItemScore] = []
    if len(items) <= FEW:
        few = [
            ItemScore(item.id, None if isinstance(one, Unscored) else one.gestalt, item.text[:_BEGINNING])
            for item, one in zip(items, readings, strict=True)
        ]
    judged: list[tuple[str, str]] = []
    if task.stories:
        results = (one if isinstance(one, Unscored) else evaluator.result(one) for one in readings)
        judged = [(result.model_dump_json(), item_row(item)) for item, result in zip(items, results, strict=True)]
    return _Done(tally, [item.id for item in items], row_lines(evaluator, readings) if task.lines else "", judged, few)


def _done(
    request: CheapRequest, task: _Task, evaluator: CheapModeEvaluator, chunks: Iterator[Chunk]
) -> Generator[tuple[Chunk, _Done]]:
    """Yield chunks with what came of them, in their order."""
    if request.jobs == 1 and request.executor is None:
        for chunk in chunks:
            yield chunk, _work(task, evaluator, chunk)
        return
    setup = pickle.dumps(task)
    with _executor(request, setup) as (executor, width, given):
        waiting: deque[tuple[Chunk, Future[_Done]]] = deque()
        try:
            for chunk in chunks:
                waiting.append((chunk, executor.submit(_remote, given, chunk)))
                if len(waiting) > width:
                    yield _next(waiting)
            while waiting:
                yield _next(waiting)
        finally:
            for _, future in waiting:
                future.cancel()


@contextlib.contextmanager
def _executor(request: CheapRequest, setup: bytes) -> Generator[tuple[Executor, int, bytes | None]]:
    """Open the executor: with how many chunks may wait there, and what every call has to carry.

    A process here is told once what it works with; elsewhere each call says it, because nobody knows which worker takes it.
    """
    if request.executor is None:
        with ProcessPoolExecutor(request.jobs, initializer=_remember, initargs=(setup,)) as pool:
            yield pool, 2 * request.jobs, None
        return
    with open_executor(request.executor) as executor:
        if executor is None:
            raise ConfigError("--executor is empty: write threads:N, processes:N or dask://HOST:PORT")
        yield executor, 32, setup


def _next(waiting: deque[tuple[Chunk, Future[_Done]]]) -> tuple[Chunk, _Done]:
    chunk, future = waiting.popleft()
    try:
        return chunk, future.result()
    except BrokenProcessPool:
        raise JumarError(
            "a worker process died, perhaps for lack of memory; nothing was written. Try again with --jobs 1"
        ) from None
    except Exception as error:  # an executor raises what it likes
        raise as_executor_error(error) from error


_setup: list[bytes] = []


def _remember(setup: bytes) -> None:
    """Begin a process: Ctrl-C is for the one that the person started, and ends this one too by closing the pool."""
    hear_no_interrupt()
    _setup[:] = [setup]


def _remote(given: bytes | None, chunk: Chunk) -> _Done:
    task, evaluator = _unpacked(_setup[0] if given is None else given)
    return _work(task, evaluator, chunk)


@functools.lru_cache(maxsize=1)
def _unpacked(setup: bytes) -> tuple[_Task, CheapModeEvaluator]:
    """Return what a worker works with; made once for all its chunks."""
    task: _Task = pickle.loads(setup)  # noqa: S301 - written by the process that started this one
    return task, CheapModeEvaluator(task.patterns, rubric=task.rubric)


_LOCAL = re.compile(r"(threads|processes)(?::([1-9]\d{0,3}))?")
_DASK = re.compile(r"dask://([^/\s]+:\d{1,5})")


@contextlib.contextmanager
def open_executor(spec: str | None) -> Generator[Executor | None]:
    """Open the executor that ``spec`` names and close it again; None for None.

    ``threads`` or ``threads:4``, ``processes:4``, ``dask://HOST:PORT``. The number defaults to that of the processors. Errors:
    :class:`jumar.errors.ConfigError`, :class:`jumar.integrations.dask.DaskError`.
    """
    if spec is None:
        yield None
        return
    remote = _DASK.fullmatch(spec)
    if remote is not None:
        from jumar.integrations.dask import dask_executor

        with dask_executor(remote[1]) as executor:
            yield executor
        return
    local = _LOCAL.fullmatch(spec)
    if local is None:
        raise ConfigError(f"--executor {escape(spec)}: write threads:N, processes:N or dask://HOST:PORT")
    workers = int(local[2]) if local[2] else os.cpu_count() or 1
    made = ThreadPoolExecutor(workers) if local[1] == "threads" else ProcessPoolExecutor(workers, initializer=hear_no_interrupt)
    with made as executor:
        yield executor


def hear_no_interrupt() -> None:
    """Leave Ctrl-C to the process that the person started. Not SIG_IGN, which the programs of steps would inherit."""
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda _number, _frame: None)
