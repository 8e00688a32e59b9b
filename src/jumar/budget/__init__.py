"""The ledger's arithmetic over attempt records: pure, no clock."""

from __future__ import annotations

from jumar.budget.ledger import RunningSpend, spend

__all__ = ["RunningSpend", "spend"]
