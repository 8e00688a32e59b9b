"""The ledger's arithmetic over attempt records, and what follows from it: pure, no clock."""

from __future__ import annotations

from jumar.budget.gate import Gate, Go, Stop, Wait, budget_left, may_begin, spent_up
from jumar.budget.ledger import RunningSpend, spend
from jumar.budget.reserve import RunningReservation, reservation

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
