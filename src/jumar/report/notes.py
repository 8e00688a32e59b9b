"""What stands under the table of iterations: attempts without a row, and where the configuration changed."""

from __future__ import annotations

import re

from jumar.model import Decision
from jumar.report.money import beside_line
from jumar.report.read import LoopReport
from jumar.text import cut

__all__ = ["changes", "table_notes"]

_SCORING = re.compile(r"(?:^|; )(?:scorers|validators|quality|weights|judge|evaluator|check|noise|repeat)")
_SHOWN = 200


def table_notes(report: LoopReport) -> tuple[str, ...]:
    """Return the sentences, each without a full stop; none where every attempt has a row and nothing changed."""
    line = beside_line(report.beside)
    return (*(() if line is None else (line,)), *changes(report))


def changes(report: LoopReport) -> tuple[str, ...]:
    """Return a sentence for each time that a changed configuration was accepted, without a full stop."""
    return tuple(_change(decision) for decision in report.decisions if decision.kind == "accept")


def _change(decision: Decision) -> str:
    first = 0 if decision.final_iteration is None else decision.final_iteration + 1
    compared = "; scores before and after are not comparable" if _SCORING.search(decision.reason) else ""
    return f"from iteration {first} on with another configuration ({cut(decision.reason, _SHOWN)}){compared}"
