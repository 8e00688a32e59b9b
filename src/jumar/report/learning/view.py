"""What a report of a learning run is made from: the files that the run left, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from jumar.report.learning.progress import Progress

__all__ = ["LearningReport", "Tests"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tests:
    """What a pattern did on open items that it was not proposed from: ``items`` tried, ``fired`` among them.

    ``precision`` is the share of those it fired on that lie on its side of the median; None when it never fired.
    """

    items: int
    fired: int
    precision: float | None


@dataclass(frozen=True, kw_only=True)
class LearningReport:
    """A learning run. ``logs`` are those of the iterations, oldest first; ``summary`` is None before there is a verdict.

    ``patterns`` are the active ones of the set in the folder, as its file has them, ``calibration`` what makes their points a
    score (None: the rubric does); ``split`` is what ``split.json`` holds. ``start`` are the gap and the rank of the set that the
    run began with. ``proof`` is the last one without its rows, ``sealed_scores`` the lowest and the highest cheap score in it.
    ``proposals`` are the iterations' files of that name, by number, without what the logs tell. ``supported`` are ids of patterns
    that are supported one by one; None where nobody could compute it. ``constant`` is what a
    constant is off by on the open items.
    """

    name: str
    directory: str
    state: str
    profile: str
    logs: Sequence[Mapping[str, Any]]
    summary: Mapping[str, Any] | None
    patterns: Sequence[Mapping[str, Any]]
    calibration: Mapping[str, Any] | None
    split: Mapping[str, Any]
    best: int | None = None
    stopped: str = ""
    start: tuple[float | None, float | None] | None = None
    proof: Mapping[str, Any] | None = None
    sealed_scores: tuple[float, float] | None = None
    proposals: Mapping[int, Mapping[str, Any]] = field(default_factory=dict[int, Mapping[str, Any]])
    tests: Mapping[str, Tests] = field(default_factory=dict[str, Tests])
    supported: frozenset[str] | None = frozenset()
    constant: float | None = None

    @cached_property
    def iterations(self) -> list[Progress]:
        return [Progress.of(one) for one in self.logs]

    @property
    def verdict(self) -> str | None:
        """The verdict of the last proof, which the summary may be older than."""
        if self.proof is not None:
            return str(self.proof["verdict"])
        return None if self.summary is None else str(self.summary["verdict"])

    @property
    def unit(self) -> float | None:
        """Points of the scale that a weight of 1 is, None where the rubric adds weights up."""
        return None if self.calibration is None else float(self.calibration["unit"])
