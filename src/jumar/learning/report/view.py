"""What a report of a learning run is made from: the files that the run left, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from jumar.learning.report.progress import Progress

__all__ = ["LearningReport"]


@dataclass(frozen=True, kw_only=True)
class LearningReport:
    """A learning run. ``logs`` are those of the iterations, oldest first; ``summary`` is None before there is a verdict.

     ``patterns`` are the active ones of the set in the folder, as its file has them, ``calibration`` what makes their points a
     score (None: the rubric does); ``split`` is what ``split.json`` holds. ``start`` are the gap and the rank of the set that the
     run began with. ``proof`` is the last one without its rows, ``sealed_scores`` the lowest and the highest cheap score in it.
    ``proposals`` are the iterations' files of that name, by number, without what the logs tell. ``constant`` is what a
     constant is off by on the open items. ``best`` is 0 where the start is. ``scores`` are those of the loop by iteration, from 0
     to 100. ``noise`` is how far the judge is from itself, over all items that it read more than once: ``mean, interval, items,
     sealed, readings``. ``judge`` is what was named as the judge.
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
    constant: float | None = None
    scores: Mapping[int, float] = field(default_factory=dict[int, float])
    noise: Mapping[str, Any] | None = None
    judge: str = ""

    @cached_property
    def iterations(self) -> list[Progress]:
        return [Progress.of(one) for one in self.logs]

    @property
    def verdict(self) -> str | None:
        """The verdict of the last proof, which the summary may be older than."""
        if self.proof is not None:
            return str(self.proof["verdict"])
        return None if self.summary is None else str(self.summary["verdict"])

    @cached_property
    def members(self) -> Mapping[str, Mapping[str, Any]]:
        """What the held-out items say of each proposal in the set, by its id; empty before there is a verdict."""
        found: list[dict[str, Any]] = [] if self.summary is None else self.summary.get("members") or []
        return {str(one["id"]): one for one in found}

    @property
    def steps(self) -> list[Mapping[str, Any]]:
        """The active patterns that are steps of features."""
        return [one for one in self.patterns if one.get("feature") is not None]

    @property
    def flat(self) -> bool:
        """Whether the set gives everything the same score, in effect."""
        fitted: Mapping[str, Any] = {} if self.calibration is None else self.calibration.get("fitted") or {}
        spread = self.sealed_scores
        return fitted.get("calibration") == "constant" or (spread is not None and spread[1] - spread[0] < 0.05)

    @property
    def replayed(self) -> bool:
        """Whether the judge is a file of recorded answers."""
        return self.judge.startswith("replay:")

    @property
    def unit(self) -> float | None:
        """Points of the scale that a weight of 1 is, None where the rubric adds weights up."""
        return None if self.calibration is None else float(self.calibration["unit"])
