"""The ledger's arithmetic over attempt records, and what follows from it: pure, no clock."""

from __future__ import annotations

from jumar.model.budget.gate import Gate, Go, Stop, Wait, budget_left, may_begin, spent_up
from jumar.model.budget.ledger import RunningReservation, RunningSpend, reservation, spend

__all__ = [
    "Gate",
    "Go",
    "RunningReservation",
    "RunningSpend",
    "Stop",
    "Wait",
    "budget_left",
    "may_begin",
    "reservation",
    "spend",
    "spent_up",
]
