"""What ``jumar evaluate`` with an expensive judge is asked, and what came out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from jumar.judging.asking.settings import JudgeConfig
from jumar.judging.asking.summary import Evaluation
from jumar.judging.component_health import check_expensive_evaluator, every_component
from jumar.judging.dual import DualEvaluation
from jumar.judging.items.item import Item


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRequest:
    """What to evaluate, and by what."""

    items: Path
    mode: Literal["expensive", "dual"]
    judge: JudgeConfig
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    patterns: Path | None = None
    rubric: str | None = None
    per_item: Path | None = None
    output: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedEvaluation:
    """What came out. ``dual`` is None in expensive mode; ``directory`` is where ``-o`` wrote to.

    ``history`` are the metrics of the iterations that were there before, oldest first. ``learned_from`` is how many of the items
    the cheap judge's set was learned from, None where nothing tells.
    """

    items: tuple[Item, ...]
    expensive: Evaluation
    dual: DualEvaluation | None
    directory: Path | None
    history: tuple[Mapping[str, Any], ...] = ()
    learned_from: int | None = None

    @property
    def scored(self) -> int:
        """Items that every judge of the mode scored."""
        return self.expensive.scored if self.dual is None else self.dual.summary.scored

    def document(self) -> dict[str, Any]:
        """Return what ``--json`` prints: the figures without the single items."""
        found = self._expensive_document() if self.dual is None else self.dual.figures()
        return {
            **found,
            "learned_from": self.learned_from,
            "output": None if self.directory is None else str(self.directory.absolute()),
        }

    def _expensive_document(self) -> dict[str, Any]:
        return {
            "mode": "expensive",
            "story_count": len(self.items),
            "scored": self.expensive.scored,
            "unscored": len(self.items) - self.expensive.scored,
            "cheap": None,
            "expensive": self.expensive.figures(),
            "gap": None,
            "abs_gap_mean": None,
            "tracking": None,
            "quality": None,
            "health": {
                name: one.model_dump()
                for name, one in every_component(expensive_evaluator=check_expensive_evaluator(self.expensive.results)).items()
            },
        }
