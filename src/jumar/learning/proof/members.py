"""What can be said of the single patterns of a proven set: most are members of it, a few are supported by themselves. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from jumar.judging.patterns.matcher import PatternMatcher
from jumar.judging.patterns.models import PatternProposal, PatternSet
from jumar.judging.patterns.proposed import as_pattern
from jumar.learning.ledger import FALSE_DISCOVERY_RATE, Ledger
from jumar.learning.proof.support import Firing, ledger_entries, support
from jumar.learning.targets import Target

__all__ = ["Member", "SealedTests", "members_of", "sealed_tests"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A proposal that is in the set, as the held-out items saw it.

    ``role`` is ``supported`` when its own increment over length survives false-discovery control over all proposals of the run,
    in the set or not, and over all looks so far, else ``member``. ``increment`` is in points, ``precision`` the share of the
    items it fired on that are on its side of the median, ``coverage`` the share of items on which it fired; the first two are
    None where nothing can be said.
    """

    id: str
    description: str
    type: Literal["good", "bad"]
    role: Literal["supported", "member"]
    increment: float | None
    p_value: float
    precision: float | None
    coverage: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedTests:
    """What one look says of single patterns: its ``members``, and the ``ledger`` of all looks so far, this one the last."""

    members: tuple[Member, ...]
    ledger: Ledger


def members_of(
    patterns: PatternSet, proposals: Sequence[PatternProposal], sealed: Sequence[Target], *, rate: float = FALSE_DISCOVERY_RATE
) -> tuple[Member, ...]:
    """Return the proposals that are active in ``patterns``, those with the smallest p-value first.

    That is a first look: see :func:`sealed_tests`.
    """
    return sealed_tests(patterns, proposals, sealed, rate=rate).members


def sealed_tests(
    patterns: PatternSet,
    proposals: Sequence[PatternProposal],
    sealed: Sequence[Target],
    *,
    known: Ledger | None = None,
    look: int = 1,
    rate: float = FALSE_DISCOVERY_RATE,
) -> SealedTests:
    """Return what a look at the held-out items says of the proposals that are active in ``patterns``, the smallest p-value first.

    Every proposal of the run is tested once, on items that none was made from, and all of these tests count: also those of
    proposals that are not in the set, and those of other looks, which ``known`` holds with the number of the look as their
    ``iteration``. The very same test again is no other one. What ``known`` has of this ``look`` gives way: it is made
    again. ``sealed`` are scored items; without any, nothing is supported.
    """
    before = Ledger(tuple(one for one in (known or Ledger()).entries if one.iteration != look))
    made = {one.id: one for one in map(as_pattern, proposals)}
    if not made or not sealed:
        return SealedTests(members=(), ledger=before)
    listed = list(made.values())
    matcher = PatternMatcher(listed)
    found = support(
        [one.score for one in sealed],
        lengths=[one.length for one in sealed],
        groups=[one.group for one in sealed],
        firing=Firing.of_items((matcher.fired(one.item.text) for one in sealed), len(listed)),
        types=[one.type for one in listed],
    )
    entries = ledger_entries([one.id for one in listed], found, look)
    again = {replace(one, iteration=0) for one in entries}
    counted = Ledger(tuple(one for one in before.entries if replace(one, iteration=0) not in again)).added(entries)
    tests = zip(counted.entries, counted.adjusted(), strict=True)
    supported = {one.id for one, value in tests if one.iteration == look and value <= rate}
    active = {one.id for one in patterns.patterns if one.status == "active"}
    members = [
        Member(
            id=pattern.id,
            description=pattern.description,
            type=pattern.type,
            role="supported" if pattern.id in supported else "member",
            increment=one.increment,
            p_value=one.p_value,
            precision=one.precision,
            coverage=one.coverage,
        )
        for pattern, one in zip(listed, found, strict=True)
        if pattern.id in active
    ]
    return SealedTests(members=tuple(sorted(members, key=lambda one: (one.p_value, one.id))), ledger=before.added(entries))
