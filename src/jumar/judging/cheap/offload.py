"""Texts read elsewhere: which patterns fire on items, and what a set scores them, by the executor that is in use, else here.

Nothing but texts is read there, in chunks that do not depend on who takes them, and every figure is computed here: the
results are the same to the last bit, whatever the workers and their processors.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import pickle
import zlib
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Executor
from typing import Any, Final, NamedTuple

from jumar.core.offload import in_order
from jumar.judging.cheap.evaluator import CheapModeEvaluator, RubricChoice
from jumar.judging.cheap.evidence import PatternEvidence
from jumar.judging.cheap.features import FeatureMemo, Values, memo_in_use
from jumar.judging.items.item import Item
from jumar.judging.models import Unscored
from jumar.judging.patterns.models import PatternSet

CHUNK: Final = 400
"""Items of a call. So many or fewer are read here: handing them over takes as long."""


class _InUse(NamedTuple):
    executor: Executor
    halted: Callable[[], bool]


_IN_USE: Final[contextvars.ContextVar[_InUse | None]] = contextvars.ContextVar("executor", default=None)


@contextlib.contextmanager
def read_by(executor: Executor | None, halted: Callable[[], bool] = lambda: False) -> Generator[None]:
    """Have texts read by ``executor`` until the end of the ``with``, only in this context; None: here."""
    token = _IN_USE.set(None if executor is None else _InUse(executor, halted))
    try:
        yield
    finally:
        _IN_USE.reset(token)


def fired_on(items: Sequence[Item], patterns: PatternSet) -> list[list[int]]:
    """Return for each item the positions of the patterns that fire on it. Errors: those of the executor, as JumarError."""
    used, memo = _IN_USE.get(), memo_in_use()
    if used is None or len(items) <= CHUNK:
        return _rows(PatternEvidence(patterns), items)
    setup = _packed(patterns)
    # what was counted of the items goes with them, and what is counted there comes back: nothing is counted twice
    calls = ((setup, chunk, None if memo is None else memo.known(chunk)) for chunk in _chunks(items))
    rows: list[list[int]] = []
    for found, counted in in_order(used.executor, _fired_there, calls, used.halted):
        if memo is not None:
            memo.learn(items[len(rows) : len(rows) + len(found)], counted)
        rows += found
    return rows


def scores_of(items: Sequence[Item], patterns: PatternSet, rubric: RubricChoice) -> list[float | None]:
    """Return each item's score by the set, None where it abstains. Errors: as :func:`fired_on`."""
    used = _IN_USE.get()
    if used is None or len(items) <= CHUNK:
        return _scores(CheapModeEvaluator(patterns, rubric=rubric), items)
    setup = _packed((patterns, rubric))
    calls = ((setup, chunk) for chunk in _chunks(items))
    return [score for scores in in_order(used.executor, _scored_there, calls, used.halted) for score in scores]


def _chunks(items: Sequence[Item]) -> list[Sequence[Item]]:
    return [items[start : start + CHUNK] for start in range(0, len(items), CHUNK)]


def _packed(given: object) -> bytes:
    """Return what goes with every call, because nobody knows which worker takes it."""
    return zlib.compress(pickle.dumps(given), 1)


def _rows(evidence: PatternEvidence, items: Sequence[Item]) -> list[list[int]]:
    return [evidence.fired(item, None) for item in items]


def _scores(evaluator: CheapModeEvaluator, items: Sequence[Item]) -> list[float | None]:
    readings = map(evaluator.read, items)
    return [None if isinstance(reading, Unscored) else reading.gestalt for reading in readings]


# --------------------------------------------------------------------------------------------------------- on a worker


def _unpacked(setup: bytes) -> Any:
    return pickle.loads(zlib.decompress(setup))  # noqa: S301 - written by the process that asks


@functools.lru_cache(maxsize=1)
def _evidence(setup: bytes) -> PatternEvidence:
    return PatternEvidence(_unpacked(setup))


@functools.lru_cache(maxsize=1)
def _evaluator(setup: bytes) -> CheapModeEvaluator:
    patterns, rubric = _unpacked(setup)
    return CheapModeEvaluator(patterns, rubric=rubric)


def _fired_there(
    call: tuple[bytes, Sequence[Item], Sequence[Values | None] | None],
) -> tuple[list[list[int]], Sequence[Values | None]]:
    setup, items, known = call
    if known is None:
        return _rows(_evidence(setup), items), []
    memo = FeatureMemo()
    memo.learn(items, known)
    with memo.used():
        rows = _rows(_evidence(setup), items)
    return rows, memo.known(items)


def _scored_there(call: tuple[bytes, Sequence[Item]]) -> list[float | None]:
    setup, items = call
    return _scores(_evaluator(setup), items)
