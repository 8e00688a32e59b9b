"""``BestOutputTracker``: seed 2's tracker, to be used inside anybody's own loop.

It writes the same store as the engine, so that every ``jumar`` command works on what it records.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Literal, Self, cast

from jumar.core.clock import SystemClock, current_user
from jumar.core.text import nearest
from jumar.errors import ArtifactError, ConfigError, NotFoundError, ScoreError, UsageError
from jumar.loop.decisions.apply import apply
from jumar.loop.decisions.cleanup import cleanup
from jumar.loop.decisions.plan import plan_apply
from jumar.loop.decisions.select import override, program_of, record_selection
from jumar.loop.ranking.choose import running_best
from jumar.loop.ranking.degradation import detect_degradation, detect_diminishing_returns
from jumar.loop.ranking.score import merge_weights, weighted_score
from jumar.loop.report.dataframe import Rows, export_rows
from jumar.loop.report.export import export_csv
from jumar.loop.report.page import render_markdown
from jumar.loop.report.read import load_report
from jumar.loop.report.rows import Summary, TrajectoryPoint, quality_trajectory, summary
from jumar.loop.report.views import refresh_views
from jumar.loop.store.creation import is_foreign
from jumar.loop.store.in_force import artifact_rules, select_from, standing
from jumar.loop.store.layout import check_loop_id, loops_directory
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.running import locked_tree
from jumar.loop.store.takeover import take_over_now
from jumar.model import (
    Clock,
    Decision,
    Degradation,
    DiminishingReturns,
    IterationRecord,
    SelectionCriteria,
    SelectionResult,
    Usage,
)
from jumar.model.records import VERIFICATIONS, Verification
from jumar.model.selection import DEFAULT_CRITERIA, MODES, refuse_share


class BestOutputTracker:
    """Records iterations with their artifacts and scores, and selects the best instead of the last.

    ``storage_path`` is the loop's own directory, by default ``.jumar/loops/<loop_id>`` in the current directory, in a
    JavaScript project ``.jumar/node_modules/loops/<loop_id>``. ``selection`` and ``quality_weights`` may be partial: what they
    leave out is taken from what is on disk, else from the defaults. Relative
    artifact paths start at the directory that is current when the tracker is made; a path that leaves it is an error.

    Several trackers, also in several processes, may use one directory: each call takes the lock for itself.
    Errors: :class:`ConfigError`, :class:`StoreDamagedError`, :class:`LockedError` and :class:`StoreWriteError` where they apply.
    """

    def __init__(
        self,
        loop_id: str,
        *,
        storage_path: str | os.PathLike[str] | None = None,
        selection: Mapping[str, Any] | SelectionCriteria | None = None,
        keep_all_iterations: bool | None = None,
        quality_weights: Mapping[str, float] | None = None,
        clock: Clock | None = None,
    ) -> None:
        check_loop_id(loop_id)
        self.loop_id = loop_id
        self._clock = clock or SystemClock()
        self._root = Path.cwd()
        self._directory = Path(storage_path) if storage_path is not None else loops_directory(Path(".jumar")) / loop_id
        stored = self._stored_config()
        self.selection = _criteria(stored.get("selection"), selection)
        self.quality_weights: Mapping[str, float] = MappingProxyType(
            merge_weights({**stored.get("quality_weights", {}), **(quality_weights or {})})
        )
        kept = stored.get("keep_all_iterations", True) if keep_all_iterations is None else keep_all_iterations
        self.keep_all_iterations = bool(kept)
        if self._store is None:
            self._store = LoopStore.create(
                self._directory, loop_id, self._config(), workdir=self._root, created_at=self._clock.now()
            )

    _store: LoopStore | None = None

    def _stored_config(self) -> dict[str, Any]:
        if not (self._directory / "loop.json").exists() and not is_foreign(self._directory):
            return {}
        self._store = LoopStore.open(self._directory)
        if self._store.loop_id != self.loop_id:
            raise ConfigError(
                f"{self._directory} holds the loop '{self._store.loop_id}', not '{self.loop_id}'; choose another storage_path"
            )
        return dict(self._store.config)

    def _config(self) -> dict[str, Any]:
        return {
            "storage_path": str(self._directory),
            "selection": self.selection.to_json(),
            "keep_all_iterations": self.keep_all_iterations,
            "quality_weights": dict(self.quality_weights),
        }

    @property
    def store(self) -> LoopStore:
        """The store that the tracker writes, for reading."""
        if self._store is None:
            raise NotFoundError(f"loop '{self.loop_id}' is closed")
        return self._store

    def record_iteration(
        self,
        *,
        iteration_number: int,
        dimensions: Mapping[str, float],
        artifacts: Iterable[str | os.PathLike[str]] = (),
        tokens_used: int | None = None,
        token_cost_usd: float | None = None,
        execution_time_ms: float | None = None,
        verification_status: Verification = "skipped",
        reflections: Sequence[str] = (),
    ) -> IterationRecord:
        """Score, snapshot and acknowledge one iteration; when this returns it is durable.

        ``dimensions`` are in [0, 1], one for each weight above zero. ``artifacts`` are files or directories. What is not given is
        unknown, not zero. Errors, with nothing recorded: :class:`ScoreError`, :class:`DuplicateIterationError`,
        :class:`ArtifactError`; :class:`UsageError` for a loop of ``jumar run``, whose scores are those of its checks.
        """
        number = _whole("iteration_number", iteration_number)
        if not isinstance(dimensions, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without types
            raise ScoreError(f"dimensions should map names to numbers, is {type(dimensions).__name__}")
        quality = weighted_score(dimensions, self.quality_weights)
        usage = Usage(
            tokens_used=None if tokens_used is None else _whole("tokens_used", tokens_used),
            token_cost_usd=_amount("token_cost_usd", token_cost_usd),
        )
        elapsed = _amount("execution_time_ms", execution_time_ms)
        if verification_status not in VERIFICATIONS:
            raise ScoreError(
                f"verification_status {verification_status!r} is not one of {', '.join(VERIFICATIONS)}"
                f"{nearest(str(verification_status), VERIFICATIONS)}"
            )
        notes = _notes(reflections)
        paths = _paths(artifacts)
        store = self.store
        if store.config.get("run") is not None:
            raise UsageError(
                f"`jumar run` runs the loop '{self.loop_id}' and scores its iterations; a tracker records into a loop of its own"
            )
        with store.lock():
            if take_over_now(store):
                store.refresh()
            views = store.views()
            previous = views[-1].score if views else None
            record = IterationRecord(
                iteration_number=number,
                timestamp=self._clock.now(),
                quality_score=quality,
                quality_delta=None if previous is None else round(quality - previous, 4),
                dimensions=MappingProxyType({name: float(value) for name, value in dimensions.items()}),
                tokens_used=usage.tokens_used,
                token_cost_usd=usage.token_cost_usd,
                execution_time_ms=elapsed,
                verification_status=verification_status,
                reflections=notes,
                usage=usage,
            )
            return store.add(record, source=self._root, paths=paths)

    def get_best(self) -> IterationRecord | None:
        """Return the iteration with the highest score so far, the earlier of equals, verified or not; None when empty."""
        best = running_best(self._views())
        return None if best is None else self.store.record(best.number)

    def select_output(self) -> SelectionResult:
        """Choose by the configured mode, write the decision down, and bring the views up to date.

        Errors: :class:`NothingEvaluatedError` when nothing was recorded.
        """
        result = self.compute_selection()
        with self.store.lock():
            record_selection(self.store, result, by=current_user(), at=self._clock.now())
            refresh_views(self.store, at=self._clock.now(), criteria=self.selection)
        return result

    def apply_output(self) -> SelectionResult:
        """Choose as :meth:`select_output` does, and put the files of what is selected back; ``jumar apply --undo`` undoes it.

        They go to the directory that was current when the tracker was made; an override stands. Errors: as of
        :meth:`select_output`, and of ``jumar apply``.
        """
        result = self.select_output()
        with self.store.lock(), locked_tree(self.store, self._root):
            number = standing(self.store).iteration
            plan = plan_apply(self.store, result.stands if number is None else number, self._root, artifact_rules(self.store))
            if not plan.empty:
                apply(self.store, plan, by=current_user(), at=self._clock.now(), reason=result.reason)
        return result

    def compute_selection(self, **changes: Any) -> SelectionResult:
        """Choose without writing anything; ``changes`` replace single criteria (``mode``, ``threshold``, …)."""
        criteria = _criteria(self.selection.to_json(), changes or None)
        self.store.refresh()
        return select_from(self.store, criteria)

    def override(self, use: Literal["best", "final"] | int, *, reason: str) -> Decision:
        """Let a person's choice stand instead; ``reason`` is required. A program of the very loop makes one that is ``held``.

        Errors: :class:`UsageError`, :class:`NotFoundError`.
        """
        with self.store.lock():
            at, by, program = self._clock.now(), current_user(), program_of(self.store)
            decision = override(self.store, use, reason=reason, by=by, at=at, criteria=self.selection, made_by=program)
            refresh_views(self.store, at=self._clock.now(), criteria=self.selection)
        return decision

    def generate_selection_report(self, selection: SelectionResult | None = None) -> str:
        """Return the report as markdown, for ``selection`` or for what would be selected now."""
        chosen = selection or self.compute_selection()
        return render_markdown(load_report(self.store, selection=chosen, criteria=self.selection))

    def detect_diminishing_returns(self, consecutive_threshold: int = 2, delta_threshold: float = 5) -> DiminishingReturns:
        """Seed 2: the first streak of ``consecutive_threshold`` deltas that are smaller than ``delta_threshold`` either way."""
        return detect_diminishing_returns(self._views(), consecutive_threshold, delta_threshold)

    def detect_degradation(self) -> Degradation:
        """Seed 1's triggers: a drop of more than 5 points, two decreases in a row, more failing checks."""
        return detect_degradation(self._views())

    def get_quality_trajectory(self) -> list[TrajectoryPoint]:
        """Return ``(iteration, quality)`` in order of the iterations."""
        return quality_trajectory(self._views())

    def get_summary(self) -> Summary:
        """Return seed 2's totals; all zero for an empty tracker, and None where an iteration did not report the value."""
        return summary(self.get_all_iterations())

    def export_csv(self) -> str:
        """Return all iterations as CSV; see :data:`jumar.loop.report.export.COLUMNS`."""
        return export_csv(self.get_all_iterations())

    def export_rows(self) -> Rows:
        """Return all iterations as what ``pandas.DataFrame`` takes; see :data:`jumar.loop.report.dataframe.COLUMNS`."""
        return export_rows(self.store, load_report(self.store))

    def cleanup_snapshots(self, selected_iteration: int) -> None:
        """Delete the snapshots of all but ``selected_iteration`` and those that are never deleted; records always stay.

        Does nothing while ``keep_all_iterations`` is true.
        """
        self._existing(selected_iteration)
        if not self.keep_all_iterations:
            with self.store.lock():
                cleanup(self.store, keep_iterations=(selected_iteration,), by=current_user(), at=self._clock.now())

    def get_iteration(self, iteration_number: int) -> IterationRecord | None:
        """Return one record, or None."""
        self._views()
        return self.store.record(iteration_number) if iteration_number in self.store.iteration_numbers() else None

    def get_all_iterations(self) -> list[IterationRecord]:
        """Return every record in order of the iterations."""
        self._views()
        return [self.store.record(number) for number in self.store.iteration_numbers()]

    def save(self) -> None:
        """Bring the views (tracking file, report, ``final-output/``) up to date. Records need no saving."""
        with self.store.lock():
            refresh_views(self.store, at=self._clock.now(), criteria=self.selection)

    def close(self) -> None:
        """Bring the views up to date and let go of the store. Calling it twice is fine."""
        if self._store is not None:
            self.save()
            self._store = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def _views(self) -> tuple[Any, ...]:
        self.store.refresh()
        return self.store.views()

    def _existing(self, number: int) -> None:
        if number not in self.store.iteration_numbers():
            raise NotFoundError(f"loop '{self.loop_id}' has no iteration {number}")


def _criteria(base: Mapping[str, Any] | None, given: Mapping[str, Any] | SelectionCriteria | None) -> SelectionCriteria:
    """Merge partial selection options over ``base`` and the defaults; refuse what is not one. Errors: ConfigError."""
    if isinstance(given, SelectionCriteria):
        return given
    merged: dict[str, Any] = {**DEFAULT_CRITERIA.to_json(), **(base or {}), **(given or {})}
    known = sorted(DEFAULT_CRITERIA.to_json())
    for name in merged:
        if name not in known:
            raise ConfigError(f"selection: unknown key '{name}'{nearest(name, known)}; known: {', '.join(known)}")
    if merged["mode"] not in MODES:
        raise ConfigError(
            f"selection: unknown mode {merged['mode']!r}{nearest(str(merged['mode']), MODES)}; known: {', '.join(MODES)}"
        )
    threshold: object = merged["threshold"]
    if threshold is not None and (not _is_number(threshold) or not 0 <= cast("float", threshold) <= 100):
        raise ConfigError(f"selection: threshold should be a number from 0 to 100, is {threshold!r}")
    if threshold is not None:
        try:
            refuse_share(cast("float", threshold))
        except ValueError as error:
            raise ConfigError(f"selection: threshold: {error}") from None
    if not isinstance(merged["require_verification"], bool):
        raise ConfigError(f"selection: require_verification should be true or false, is {merged['require_verification']!r}")
    return SelectionCriteria(**merged)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _whole(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ScoreError(f"{name} should be a whole number from 0, is {value!r}")
    return value


def _amount(name: str, value: float | None) -> float | None:
    if value is None:
        return None
    if not _is_number(value) or value < 0:
        raise ScoreError(f"{name} should be a finite number from 0, is {value!r}; leave it out when it is not known")
    return value


def _notes(reflections: Sequence[str]) -> tuple[str, ...]:
    if isinstance(reflections, str) or not all(isinstance(note, str) for note in cast("Sequence[object]", reflections)):
        raise ScoreError("reflections should be a list of strings")
    return tuple(reflections)


def _paths(artifacts: object) -> list[str]:
    if isinstance(artifacts, str | os.PathLike):
        raise ArtifactError(f"artifacts should be a list of paths, is {artifacts!r}; write [{artifacts!r}]")
    if not isinstance(artifacts, Iterable):
        raise ArtifactError(f"artifacts should be a list of paths, is {artifacts!r}")
    given = list(cast("Iterable[object]", artifacts))
    for path in given:
        if not isinstance(path, str | os.PathLike):
            raise ArtifactError(f"artifacts should be paths, one of them is {path!r}")
    return [os.fspath(cast("str", path)) for path in given]
