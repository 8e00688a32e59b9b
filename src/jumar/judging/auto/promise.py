"""What is promised about decisions that nobody checked, and what a random share of them says about it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any, Final

__all__ = ["LEVEL", "Guarantee", "guarantee"]

LEVEL: Final = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """The share of decisions on the wrong side of the line among those not escalated: at most ``promised``.

    ``wrong`` of ``audited`` decisions were. ``lower`` and ``upper`` are bounds of the share, each of ``level``, exact (Clopper
    and Pearson 1934). ``held`` is True where even the upper bound keeps the promise, False where even the lower one breaks it,
    and None where there are too few audits to say.
    """

    promised: float
    audited: int
    wrong: int
    share: float | None
    lower: float
    upper: float
    level: float
    held: bool | None

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return asdict(self)


def guarantee(wrong: int, audited: int, promised: float, *, level: float = LEVEL) -> Guarantee:
    """Return what ``wrong`` of ``audited`` decisions, drawn at random, say about all of them."""
    if not 0 <= wrong <= audited:
        raise ValueError(f"{wrong} of {audited} decisions cannot be wrong")
    lower, upper = 0.0, 1.0
    if audited:
        beta: Any = import_module("scipy.stats").beta
        lower = 0.0 if wrong == 0 else float(beta.ppf(1.0 - level, wrong, audited - wrong + 1))
        upper = 1.0 if wrong == audited else float(beta.ppf(level, wrong + 1, audited - wrong))
    held = True if upper <= promised else False if lower > promised else None
    return Guarantee(
        promised=promised,
        audited=audited,
        wrong=wrong,
        share=wrong / audited if audited else None,
        lower=lower,
        upper=upper,
        level=level,
        held=held,
    )
