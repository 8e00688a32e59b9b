"""What became of all proposals of a run: the sums of its iterations, what stands at the end, and what is in the set. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["Totals"]

_STATUSES: Final = {"committed_pattern": "committed", "rejected_pattern": "rejected", "proposed_pattern": "provisional"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Proposals by what became of them.

    ``commits`` and ``rejections`` are the sums over iterations, each of which counts what became so in it; ``committed``,
    ``rejected`` and ``provisional`` are what stands at the end. ``standing`` are the descriptions of the committed ones, by id.
    """

    commits: int
    rejections: int
    committed: int
    rejected: int
    provisional: int
    standing: Mapping[str, str]

    @classmethod
    def of(cls, logs: Iterable[Mapping[str, Any]], *, until: int | None = None) -> Totals:
        """Read the logs of the iterations, up to iteration ``until`` where it is given."""
        commits = rejections = 0
        found: dict[str, tuple[str, str]] = {}
        for log in logs:
            if until is not None and int(log["metrics"]["iteration"]) > until:
                continue
            for one in log["actions_taken"]:
                status = _STATUSES.get(str(one.get("action", "")))
                if status is None:
                    continue
                commits += status == "committed"
                rejections += status == "rejected"
                name = str(one.get("pattern_id") or one.get("description"))
                found[name] = (status, str(one.get("description") or name))
        statuses = [status for status, _ in found.values()]
        return cls(
            commits=commits,
            rejections=rejections,
            committed=statuses.count("committed"),
            rejected=statuses.count("rejected"),
            provisional=statuses.count("provisional"),
            standing={name: says for name, (status, says) in found.items() if status == "committed"},
        )

    @property
    def text(self) -> str:
        """Return ``191 committed at the end; 123 more were committed and rejected later``."""
        taken_back, again = self.commits - self.committed, self.rejections - self.rejected
        told = f"{self.committed:,} committed at the end"
        if taken_back:
            told += f" ({taken_back:,} more {_were(taken_back)} committed and rejected later)"
        told += f", {self.rejected:,} rejected"
        if again:
            told += f" ({again:,} more {_were(again)} rejected and committed later)"
        return told + (f", {self.provisional:,} still provisional" if self.provisional else "")


def _were(count: int) -> str:
    return "was" if count == 1 else "were"
