"""What a learning run has left in its folder so far; nothing is changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from jumar.app.learning import LOOP, ROOT
from jumar.app.learning_data import SPLIT
from jumar.app.learning_files import read_logs
from jumar.app.learning_finish import RESULT
from jumar.errors import NotFoundError, StoreDamagedError
from jumar.learning.learner import PATTERNS
from jumar.learning.split import Split
from jumar.patterns.storage import load_pattern_set
from jumar.report.learning.progress import Progress
from jumar.report.learning.view import LearningReport
from jumar.store.layout import LoopPaths, loops_directory
from jumar.store.lock import who_holds
from jumar.text import escape

__all__ = ["LearningRun", "read_report", "read_run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningRun:
    """A run as it is on disk. ``state`` is ``running``, ``finished`` or ``stopped``; ``summary`` is there with a verdict."""

    output: Path
    state: str
    logs: tuple[Mapping[str, Any], ...]
    summary: Mapping[str, Any] | None

    @property
    def iterations(self) -> list[Progress]:
        """The iterations that have left a log, oldest first."""
        return [Progress.of(one) for one in self.logs]

    def document(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        done = {"state": self.state, "done": len(self.logs), "output": str(self.output.absolute())}
        last = self.logs[-1]["metrics"] if self.logs else None
        return {**done, "last": last, "verdict": None, **(self.summary or {})}


def read_run(output: Path) -> LearningRun:
    """Return the run in ``output``. Errors: :class:`NotFoundError` when there is none, :class:`StoreDamagedError`."""
    paths = LoopPaths(loops_directory(output / ROOT) / LOOP)
    if not paths.loop_json.is_file():
        raise NotFoundError(
            f"there is no learning run in {escape(str(output))}; `jumar learn ITEMS --judge SPEC -o DIR` makes one"
        )
    logs = read_logs(output)
    summary = _summary(output / RESULT)
    state = "running" if who_holds(paths.lock) is not None else "stopped" if summary is None else "finished"
    return LearningRun(output=output, state=state, logs=tuple(logs), summary=summary)


def read_report(output: Path) -> LearningReport:
    """Return what a report is made from. Errors: as :func:`read_run`; :class:`jumar.errors.PatternLoadError` of the set."""
    run = read_run(output)
    known = load_pattern_set(output / PATTERNS).patterns
    return LearningReport(
        name=output.name or str(output),
        state=run.state,
        logs=run.logs,
        summary=run.summary,
        patterns=[one.model_dump(mode="json") for one in known if one.status == "active"],
        split=Split.from_json((output / SPLIT).read_bytes(), str(output / SPLIT)).to_json(),
    )


def _summary(path: Path) -> Mapping[str, Any] | None:
    try:
        return cast("dict[str, Any]", json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise StoreDamagedError(f"{escape(str(path))} is damaged; run `jumar learn` again to have it written anew") from error
