"""The ledger's arithmetic over attempt records: pure, no clock."""

from __future__ import annotations

from jumar.budget.ledger import spend

__all__ = ["spend"]
