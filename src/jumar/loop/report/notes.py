"""What stands under the table of iterations: attempts without a row, and where the configuration changed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from jumar.core.text import cut
from jumar.loop.report.money import beside_line
from jumar.loop.report.read import LoopReport
from jumar.loop.store.layout import root_of
from jumar.model import Decision

__all__ = ["changes", "learned_in", "table_notes"]

_SCORING = re.compile(r"(?:^|; )(?:scorers|validators|checks|quality|weights|judge|evaluator|check|noise|repeat)")
_SHOWN = 200
_LEARNED = (
    "this is the loop of jumar learn: quality is the mean of closeness (1 − gap / 4) and ranking ((1 + rank correlation) / 2) on "
    "open items, each scored by a set that did not see it; it says which set was kept, not whether that set tracks the judge"
)


def table_notes(report: LoopReport) -> tuple[str, ...]:
    """Return the sentences, each without a full stop; none where every attempt has a row and nothing changed."""
    line = beside_line(report.beside)
    return (*(() if line is None else (line,)), *changes(report))


def learned_in(report: LoopReport) -> str | None:
    """Return the folder of the learning run whose loop this is, None for a loop of another kind."""
    run = report.config.get("run")
    if not isinstance(run, Mapping) or not {"heldout", "profile", "propose"} <= set(cast("Mapping[str, Any]", run)):
        return None
    place = Path(report.storage_path)
    return str(root_of(place).parent)


def changes(report: LoopReport) -> tuple[str, ...]:
    """Return a sentence for each time that a changed configuration was accepted; before them, of a learning run, what is scored.

    Each without a full stop.
    """
    changed = tuple(_change(decision) for decision in report.decisions if decision.kind == "accept")
    return changed if learned_in(report) is None else (_LEARNED, *changed)


def _change(decision: Decision) -> str:
    first = 0 if decision.final_iteration is None else decision.final_iteration + 1
    compared = "; scores before and after are not comparable" if _SCORING.search(decision.reason) else ""
    return f"from iteration {first} on with another configuration ({cut(decision.reason, _SHOWN)}){compared}"
