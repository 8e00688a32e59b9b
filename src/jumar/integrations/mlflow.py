"""A loop as a run of MLflow, an iteration as a step of it. Needs the extra ``mlflow``.

Everything is handed to one thread of its own, so that a tracking server that is away or slow holds up no iteration; at the end of
the loop it gets :data:`PATIENCE` for each request. A loop that is resumed goes on in the run that it had, and gets what that one
missed of the last iterations. Where to is MLflow's own matter: ``MLFLOW_TRACKING_URI`` and the variables beside it.
"""

from __future__ import annotations

import hashlib
import logging
import os
import queue
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from jumar.core import __version__
from jumar.core.lazy import need_extra
from jumar.core.redaction import current
from jumar.core.text import cut, escape_block, last_line
from jumar.errors import ConfigError, JumarError
from jumar.loop.events.events import Event, IterationRecorded, LoopEnded, LoopStarted
from jumar.model import IterationRecord

PATIENCE: Final = 10.0
"""Seconds that one request may take at the end of a loop; whatever is still to be sent then is left out."""

LONGEST: Final = 120.0
"""Seconds that all requests together may take then, while each is answered in time."""

_TEXT: Final = 500  # characters of a parameter; servers differ in how many they take
_NAME: Final = re.compile(r"[^A-Za-z0-9_\-. :/]")
_DEFAULTS: Final = {
    "MLFLOW_DISABLE_TELEMETRY": "true",  # jumar sends nothing that nobody asked for
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",  # where `--json` has its one document
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
}


class MlflowListener:
    """A listener that keeps one run of MLflow for the loop below ``root``; ``params`` are what is said of it when it begins.

    ``client`` is an ``MlflowClient``. Without ``artifacts`` no file leaves: neither the report nor what was selected. A request
    that fails is told of once, by the loop's own notice, and changes nothing.
    """

    def __init__(
        self, client: Any, *, experiment: str, root: Path, params: Mapping[str, str] | None = None, artifacts: bool = True
    ) -> None:
        self._client, self._experiment, self._artifacts = client, experiment, artifacts
        self._params = {name: _text(value) for name, value in (params or {}).items() if value}
        self._store = hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:16]
        self._run = ""
        self._problem: str | None = None
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._worker: threading.Thread | None = None
        self._asked = self._done = 0
        self._answered = threading.Condition()

    def __call__(self, event: Event) -> None:
        """Take one event. Errors: :class:`JumarError`, once, when an earlier request failed."""
        if isinstance(event, LoopStarted):
            self._ask(lambda: self._begin(event))
        elif isinstance(event, IterationRecorded):
            self._ask(lambda: self._log(event.record, event))
        elif isinstance(event, LoopEnded):
            self._ask(lambda: self._end(event.outcome))
            for path in _files(event.outcome) if self._artifacts else ():
                self._ask(lambda path=path: self._keep(*path))
            self._wait()
        if self._problem is not None:
            problem, self._problem = self._problem, ""
            if problem:
                raise JumarError(problem)

    # ------------------------------------------------------------------------------------------------------ the thread

    def _ask(self, job: Callable[[], None]) -> None:
        if self._worker is None:  # a daemon: a server that never answers must not keep the process
            self._worker = threading.Thread(target=self._work, name="jumar-mlflow", daemon=True)
            self._worker.start()
        self._asked += 1
        self._jobs.put(job)

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            try:
                job()
            except Exception as error:  # noqa: BLE001 - of a library and a server; neither is the loop's
                if self._problem is None:
                    self._problem = f"MLflow: {_text(f'{type(error).__name__}: {last_line(str(error))}')}"
            with self._answered:
                self._done += 1
                self._answered.notify()

    def _wait(self) -> None:
        """Wait until everything is sent, as long as something is sent every now and then."""
        ends = time.monotonic() + LONGEST
        with self._answered:
            while (done := self._done) < self._asked and time.monotonic() < ends:
                if not self._answered.wait_for(lambda done=done: self._done > done, PATIENCE):
                    break
            missing = self._asked - self._done
        if missing and self._problem is None:
            self._problem = f"MLflow did not answer in {PATIENCE:g} s; what was still to be sent is left out"

    # ---------------------------------------------------------------------------------------------------- the requests

    def _begin(self, event: LoopStarted) -> None:
        experiment = self._client.get_experiment_by_name(self._experiment)
        number = self._client.create_experiment(self._experiment) if experiment is None else experiment.experiment_id
        known = self._earlier(number, event.loop_id) if event.resumed else None
        if known is None:
            tags = {"jumar.loop": event.loop_id, "jumar.store": self._store, "jumar.version": __version__}
            self._run = self._client.create_run(number, run_name=event.loop_id, tags=tags).info.run_id
            self._batch(params=self._params)
        else:
            self._run = known
            self._client.update_run(known, status="RUNNING")
        there = {metric.step for metric in self._client.get_metric_history(self._run, "iteration")} if known else set[int]()
        for record in event.latest:
            if record.iteration_number not in there:
                self._log(record)

    def _earlier(self, experiment: str, loop_id: str) -> str | None:
        """Return the run that this loop had, None where it had none here."""
        mine = f"tags.`jumar.loop` = '{loop_id}' and tags.`jumar.store` = '{self._store}'"
        runs = self._client.search_runs([experiment], mine, order_by=["attributes.start_time DESC"], max_results=1)
        return runs[0].info.run_id if runs else None

    def _log(self, record: IterationRecord, event: IterationRecorded | None = None) -> None:
        metrics = _metrics(record)
        if event is not None and event.spend.iterations and event.spend.cost_usd is not None:
            metrics["spent_usd"] = event.spend.cost_usd
        self._batch(metrics=metrics, step=record.iteration_number, at=record.timestamp)

    def _end(self, outcome: Mapping[str, Any]) -> None:
        tags = {
            "jumar.stop_reason": outcome.get("stop_reason"),
            "jumar.ended_because": outcome.get("stop_detail"),
            "jumar.selected_iteration": outcome.get("selected_iteration"),
            "jumar.selected_because": outcome.get("reason"),
            "jumar.verified": outcome.get("verified"),
            "mlflow.note.content": outcome.get("reason"),
        }
        score = outcome.get("quality_score")
        self._batch(
            tags={name: _text(str(value)) for name, value in tags.items() if value is not None},
            metrics={} if score is None else {"selected_score": score},
            step=outcome.get("selected_iteration") or 0,
        )
        self._client.set_terminated(self._run, status=_status(outcome))

    def _keep(self, path: Path, folder: str | None) -> None:
        self._client.log_artifact(self._run, str(path), folder)

    def _batch(
        self,
        *,
        params: Mapping[str, str] | None = None,
        metrics: Mapping[str, float] | None = None,
        tags: Mapping[str, str] | None = None,
        step: int = 0,
        at: str = "",
    ) -> None:
        from mlflow.entities import Metric, Param, RunTag

        if not self._run:
            raise JumarError("there is no run to log to; the loop goes on without it")
        moment = _milliseconds(at)
        self._client.log_batch(
            self._run,
            metrics=[Metric(_NAME.sub("_", name), float(value), moment, step) for name, value in (metrics or {}).items()],
            params=[Param(name, value) for name, value in (params or {}).items()],
            tags=[RunTag(name, value) for name, value in (tags or {}).items()],
        )


def _metrics(record: IterationRecord) -> dict[str, float]:
    """Return what is known of an iteration: what is not is no metric of it, rather than 0."""
    tests = [check.tests for check in record.checks if check.tests is not None and check.broken is None]
    counted = {"tests_passed": sum(one.passed for one in tests), "tests_total": sum(one.total for one in tests)} if tests else {}
    seconds = None if record.execution_time_ms is None else record.execution_time_ms / 1000
    found: dict[str, float | None] = {
        "iteration": record.iteration_number,
        "score": record.quality_score,
        "verified": {"passed": 1, "failed": 0}.get(record.verification_status),
        "cost_usd": record.token_cost_usd,
        "tokens": record.tokens_used,
        "seconds": seconds,
        **{f"dimension.{name}": value for name, value in record.dimensions.items()},
        **counted,
    }
    return {name: value for name, value in found.items() if value is not None}


def _files(outcome: Mapping[str, Any]) -> Iterable[tuple[Path, str | None]]:
    """Yield what is kept of the best: the report, and what `final-output/` holds, each with its folder there."""
    directory, output = (outcome.get(name) for name in ("directory", "output"))
    report = Path(directory or "") / "selection-report.md"
    if directory and report.is_file():
        yield report, None
    if output and outcome.get("output_holds") is not None:
        root = Path(output)
        for path in sorted(root.rglob("*")):
            if path.is_file() and not path.is_symlink():
                yield path, (Path("final-output") / path.relative_to(root).parent).as_posix()


def _status(outcome: Mapping[str, Any]) -> str:
    if outcome.get("exit_code") in {130, 143}:
        return "KILLED"
    failed = outcome.get("stop_reason") == "consecutive_failures" or outcome.get("selected_iteration") is None
    return "FAILED" if failed else "FINISHED"


def _text(text: str) -> str:
    return cut(current().redact(escape_block(text)), _TEXT)


def _milliseconds(at: str) -> int:
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return int(time.time() * 1000)
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def environment_listener(*, experiment: str, root: Path, params: Mapping[str, str], artifacts: bool) -> MlflowListener:
    """Return a listener that sends to where ``MLFLOW_TRACKING_URI``, or the program around this one, says.

    Errors: :class:`ConfigError` without the extra, and where nothing says where to.
    """
    need_extra("mlflow", "[mlflow]", "mlflow")
    for name, value in _DEFAULTS.items():
        os.environ.setdefault(name, value)
    for name in ("mlflow", "urllib3"):  # else Python itself prints each try of theirs into what a person reads
        log = logging.getLogger(name)
        if not log.hasHandlers():
            log.addHandler(logging.NullHandler())
    from mlflow import MlflowClient, is_tracking_uri_set

    if not is_tracking_uri_set():
        raise ConfigError(
            "[mlflow] needs to know where to: set MLFLOW_TRACKING_URI, such as http://127.0.0.1:5000, or sqlite:///mlflow.db "
            "(with pip install mlflow)"
        )
    try:
        client = MlflowClient()
    except Exception as error:
        raise ConfigError(f"[mlflow] cannot be used: {_text(last_line(str(error)))}") from error
    return MlflowListener(client, experiment=experiment, root=root, params=params, artifacts=artifacts)
