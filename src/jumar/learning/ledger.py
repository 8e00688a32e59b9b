"""Every test of a proposal that was ever made, and which of them still count when all are counted.

Somebody who tries two thousand phrases finds a hundred that "work" at 5 %. So every test that was made is written down, also
those that failed, and what is called supported is decided over all of them together. The method is that of Benjamini and
Yekutieli (2001): patterns fire on the same items and are scored by the same readings, so that their p-values depend on each
other in ways that nobody knows, and this is the one that holds whatever the dependence.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any, Final, cast

from jumar.core.text import escape
from jumar.errors import FormatTooNewError, StoreDamagedError

__all__ = ["FALSE_DISCOVERY_RATE", "Ledger", "LedgerEntry"]

FALSE_DISCOVERY_RATE: Final = 0.05
"""Share of wrong ones that is expected among those that are called supported, at most."""

_FORMAT: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """One test of one proposal, on items that it was not proposed from.

    ``p_value`` is one-sided, in the direction of the pattern's type. ``items`` were tested and ``fired`` of them had the pattern;
    ``coverage`` is fired / items. ``precision`` is the share of the items it fired on that lie on its side of the median of all
    tested, ties counting half; None when it never fired. Errors: ValueError out of range.
    """

    id: str
    iteration: int
    p_value: float
    items: int
    fired: int
    precision: float | None

    def __post_init__(self) -> None:
        known = (
            ("p_value", 0 < self.p_value <= 1, "above 0 and at most 1"),
            ("items", 0 <= self.fired <= self.items, "as many as fired or more"),
            ("precision", self.precision is None or 0 <= self.precision <= 1, "from 0 to 1, or none"),
        )
        for name, holds, wanted in known:
            if not holds:
                raise ValueError(f"{name} = {getattr(self, name)} should be {wanted}")

    @property
    def coverage(self) -> float:
        return self.fired / self.items if self.items else 0.0


@dataclass(frozen=True, slots=True)
class Ledger:
    """All tests in the order in which they were made. There is no way to take one out."""

    entries: tuple[LedgerEntry, ...] = ()

    def added(self, entries: Iterable[LedgerEntry]) -> Ledger:
        """Return the ledger with more tests at its end."""
        return Ledger((*self.entries, *entries))

    def adjusted(self) -> tuple[float, ...]:
        """Return the adjusted p-value of every test: the false-discovery rate at which it would just be called supported."""
        if not self.entries:
            return ()
        stats: Any = import_module("scipy.stats")
        adjusted = stats.false_discovery_control([one.p_value for one in self.entries], method="by")
        return tuple(min(1.0, float(one)) for one in adjusted)

    def supported(self, rate: float = FALSE_DISCOVERY_RATE) -> frozenset[str]:
        """Return the ids of the proposals with a test that survives, all tests ever made being counted."""
        return frozenset(one.id for one, value in zip(self.entries, self.adjusted(), strict=True) if value <= rate)

    def latest(self) -> dict[str, LedgerEntry]:
        """Return the last test of each proposal, by its id."""
        return {one.id: one for one in self.entries}

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON: ``format``, ``method`` and the entries."""
        return {"format": _FORMAT, "method": "by", "entries": [asdict(one) for one in self.entries]}

    @classmethod
    def from_json(cls, data: Any, where: str = "the ledger") -> Ledger:
        """Return the ledger that :meth:`to_json` gave, as the value or as JSON text.

        Errors: :class:`jumar.errors.StoreDamagedError` that names ``where`` and the entry,
        :class:`jumar.errors.FormatTooNewError`.
        """
        try:
            found = json.loads(data) if isinstance(data, str | bytes) else data
            document = cast("dict[str, Any]", dict(found))
            if isinstance(document.get("format"), int) and document["format"] > _FORMAT:
                raise FormatTooNewError(
                    f"{escape(where)}: format {document['format']}; this jumar reads up to {_FORMAT}, update it"
                )
            rows = list(document["entries"])
        except (ValueError, KeyError, TypeError) as error:
            raise StoreDamagedError(
                f"{escape(where)} is damaged ({escape(str(error))[:100]}); restore it from a backup"
            ) from None
        return cls(tuple(_entry(row, f"{where}, entry {number}") for number, row in enumerate(rows, start=1)))


def _entry(row: Any, where: str) -> LedgerEntry:
    try:
        precision = row["precision"]
        made = LedgerEntry(
            id=str(row["id"]),
            iteration=int(row["iteration"]),
            p_value=float(row["p_value"]),
            items=int(row["items"]),
            fired=int(row["fired"]),
            precision=None if precision is None else float(precision),
        )
        if math.isnan(made.p_value):
            raise ValueError("p_value is not a number")  # noqa: TRY301 - one message for all of them
    except (ValueError, KeyError, TypeError) as error:
        raise StoreDamagedError(f"{escape(where)} is damaged ({escape(str(error))[:100]}); restore it from a backup") from None
    return made
