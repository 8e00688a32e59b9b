"""What a report of a learning run is made from: the files that the run left, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jumar.report.learning.progress import Progress

__all__ = ["LearningReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningReport:
    """A learning run. ``logs`` are those of the iterations, oldest first; ``summary`` is None before there is a verdict.

    ``patterns`` are the active ones of the set in the folder, as its file has them; ``split`` is what ``split.json`` holds.
    """

    name: str
    state: str
    logs: Sequence[Mapping[str, Any]]
    summary: Mapping[str, Any] | None
    patterns: Sequence[Mapping[str, Any]]
    split: Mapping[str, Any]

    @property
    def iterations(self) -> list[Progress]:
        return [Progress.of(one) for one in self.logs]
