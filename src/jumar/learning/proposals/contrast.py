"""How much more often a term stands in the texts of one side than in all the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal, Self

__all__ = ["Contrast", "Strength"]

_PRIOR: Final = 10.0
"""Texts that the prior is worth: what is known of a term before its side is looked at, namely its share of all texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strength:
    """How a term leans. ``kind`` is good where it stands in texts that were scored too low.

    ``log_odds`` is how much higher its log odds are on that side than elsewhere, ``z`` the same in standard errors: log odds
    ratio with an informative Dirichlet prior (Monroe, Colaresi and Quinn 2008), over texts, because a pattern fires once a text.
    ``chi_square`` is Pearson's, of the four counts, 0 where it leans the other way.
    """

    kind: Literal["good", "bad"]
    log_odds: float
    z: float
    chi_square: float
    with_gap: int
    of_gap: int
    elsewhere: int
    of_others: int
    other: Strength | None = None

    def towards(self, kind: Literal["good", "bad"]) -> Strength:
        """Return the strength towards a side that somebody named, which may be below 0."""
        return self if self.kind == kind or self.other is None else self.other

    def to_json(self) -> dict[str, Any]:
        found = asdict(replace(self, other=None))
        del found["other"], found["kind"]
        return {name: round(value, 6) if isinstance(value, float) else value for name, value in found.items()}


@dataclass(frozen=True, slots=True)
class Contrast:
    """Which texts were scored too low (1), too high (-1) or well enough (0), and the groups they are from."""

    signs: tuple[int, ...]
    groups: tuple[str | None, ...]
    several: bool = True

    @classmethod
    def of(cls, gaps: Sequence[float], groups: Sequence[str | None]) -> Self | None:
        """Return the contrast of ``gaps``, 0 where one is not large; None when none is."""
        signs = tuple((gap > 0) - (gap < 0) for gap in gaps)
        return cls(signs, tuple(groups), len(set(groups)) > 1) if any(signs) else None

    def two_groups(self, where: Any, kind: Literal["good", "bad"]) -> bool:
        """Return whether a term's texts of that side come from two groups at least: one group's topic is no signal.

        True where there are no groups, or only one.
        """
        if not self.several:
            return True
        side = 1 if kind == "good" else -1
        seen: set[str | int] = set()
        places: list[int] = where.tolist()
        for place in places:
            if self.signs[place] == side:
                group = self.groups[place]
                seen.add(place if group is None else group)
                if len(seen) > 1:
                    return True
        return False

    def strengths(self, where: Sequence[Any]) -> list[Strength]:
        """Return for every term, given by the positions of the texts it stands in, the side to which it leans more."""
        if not where:
            return []
        import numpy as np

        signs = np.asarray(self.signs)
        lengths = np.asarray([len(one) for one in where])
        ends = np.cumsum(lengths)
        every = np.concatenate([signs[one] for one in where])
        sums = [np.r_[0, np.cumsum(every == side)] for side in (1, -1)]
        sides: list[list[Strength]] = []
        for side, total, kind in zip((1, -1), sums, ("good", "bad"), strict=True):
            sides.append(_side(total[ends] - total[ends - lengths], lengths, int((signs == side).sum()), len(signs), kind))
        return [
            replace(good, other=bad) if (good.z, good.chi_square) >= (bad.z, bad.chi_square) else replace(bad, other=good)
            for good, bad in zip(*sides, strict=True)
        ]


def _side(inside: Any, total: Any, of_inside: int, texts: int, kind: Any) -> list[Strength]:
    """Return the strength of every term towards one side: ``inside`` of its ``total`` texts are on it."""
    import numpy as np

    outside, of_outside = total - inside, texts - of_inside
    if not of_inside or not of_outside:
        known: Any = np.zeros(len(total))
        columns = (known, known, known)
    else:
        prior = _PRIOR * (total + 0.5) / (texts + 1)
        one, other = inside + prior, outside + prior
        # what speaks against counts too: terms may stand in most texts, unlike words among all words
        without, elsewhere = of_inside + _PRIOR - one, of_outside + _PRIOR - other
        log_odds = np.log(one / without) - np.log(other / elsewhere)
        z = log_odds / np.sqrt(1 / one + 1 / without + 1 / other + 1 / elsewhere)
        cross = inside * (of_outside - outside) - outside * (of_inside - inside)
        spread = np.maximum(1, of_inside * of_outside * total * (texts - total)).astype(float)
        chi = np.where(cross > 0, texts * cross.astype(float) ** 2 / spread, 0.0)
        columns = (log_odds, z, chi)
    return [
        Strength(
            kind=kind,
            log_odds=float(log_odds),
            z=float(z),
            chi_square=float(chi),
            with_gap=int(a),
            of_gap=of_inside,
            elsewhere=int(b),
            of_others=of_outside,
        )
        for log_odds, z, chi, a, b in zip(*columns, inside, outside, strict=True)
    ]
