"""``--audits FILE``: the audits of all evaluations with one set, in their order, so that evidence grows from one to the next."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

from jumar.core.files import as_write_error, write_named
from jumar.core.lock import writing
from jumar.core.text import escape
from jumar.errors import StoreDamagedError, StoreWriteError, UsageError
from jumar.judging.auto import Planned
from jumar.judging.digests import item_digest
from jumar.judging.items.item import Item
from jumar.judging.proofs import Proof
from jumar.judging.staleness import audit_evidence

PATIENCE: Final = 10.0
"""Seconds to wait for another evaluation that writes its audits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """An item that was drawn, and what both judges said of it. ``item`` is its hash, ``patterns`` that of the set.

    ``group`` None: the item by itself, as in files that were written before groups were.
    """

    id: str
    item: str
    patterns: str
    cheap: float
    expensive: float
    group: str | None = None


@dataclass(frozen=True, slots=True)
class AuditLog:
    """What is in the file, and which audits are of this set."""

    audits: tuple[Audit, ...] = ()
    patterns: str = ""

    @property
    def pairs(self) -> list[tuple[float, float]]:
        """Cheap and expensive score of each audit of this set, in their order."""
        return [(one.cheap, one.expensive) for one in self._own]

    @property
    def groups(self) -> list[str | None]:
        """Group of each of :attr:`pairs`."""
        return [one.group for one in self._own]

    @property
    def _own(self) -> list[Audit]:
        return [audit for audit in self.audits if audit.patterns == self.patterns]

    def evidence(self, proof: Proof) -> float:
        """Return how strongly the audits of this set say that errors have grown since its proof."""
        errors = [abs(row.cheap - row.score) for row in proof.rows]
        return audit_evidence(errors, self.pairs, groups=[row.group for row in proof.rows], audit_groups=self.groups)

    def added(self, new: Sequence[Audit]) -> AuditLog:
        """Return the log with those that are not in it: an item that is evaluated again is no new evidence."""
        known = {(audit.item, audit.patterns) for audit in self.audits}
        return replace(self, audits=(*self.audits, *(one for one in new if (one.item, one.patterns) not in known)))


def new_audits(items: Sequence[Item], planned: Sequence[Planned], judged: dict[str, float], patterns: str) -> list[Audit]:
    """Return the items that were drawn and judged, escalated or not: a random sample of all."""
    return [
        Audit(id=one.id, item=item_digest(item), patterns=patterns, cheap=one.cheap, expensive=judged[one.id], group=item.group)
        for item, one in zip(items, planned, strict=True)
        if one.drawn and one.cheap is not None and one.id in judged
    ]


def read_audits(path: Path | None, patterns: str) -> AuditLog:
    """Return what earlier evaluations found, nothing where there is no file yet.

    Errors: :class:`jumar.errors.StoreDamagedError` that names file and line, :class:`jumar.errors.UsageError` for a file that
    could not be written.
    """
    if path is not None and not path.absolute().parent.is_dir():
        raise UsageError(f"--audits {escape(str(path))}: its folder does not exist; make it first")
    try:
        lines = [] if path is None else path.read_bytes().splitlines()
    except FileNotFoundError:
        lines = []
    except OSError as error:
        raise StoreDamagedError(f"--audits {escape(str(path))} cannot be read ({error.strerror}); name another file") from error
    found: list[Audit] = []
    for number, line in enumerate(lines, start=1):
        try:
            found.append(_audit(json.loads(line)))
        except (ValueError, TypeError) as error:
            raise StoreDamagedError(
                f"{escape(str(path))}:{number}: not an audit ({escape(str(error))[:80]}); take the line out, or name a new file"
            ) from None
    return AuditLog(tuple(found), patterns)


def _audit(given: Any) -> Audit:
    one = Audit(**cast("dict[str, Any]", given))
    if one.group is not None and not isinstance(cast("object", one.group), str):
        raise TypeError("a group is a text or null")
    if not all(1.0 <= score <= 5.0 for score in (one.cheap, one.expensive)):
        raise ValueError("a score is from 1 to 5")
    return one


def write_audits(path: Path, log: AuditLog) -> None:
    """Write all audits, whole: those that are in the file by now, and those of ``log`` that are not.

    Another evaluation may have written since the log was read; ``path`` with ``.lock`` added, which stays there, keeps two from
    writing at once. Errors: :class:`jumar.errors.StoreWriteError`, :class:`jumar.errors.LockedError` where another process holds
    it for :data:`PATIENCE`, :class:`jumar.errors.StoreDamagedError` for what is no audit by now.
    """
    if path.exists() and not path.is_file():  # a device or a pipe keeps nothing, and is no place for a lock
        _write(path, log)
        return
    with as_write_error("write", path), writing(path, patience=PATIENCE, error=StoreWriteError):
        _write(path, read_audits(path, log.patterns).added(log.audits))


def _write(path: Path, log: AuditLog) -> None:
    lines = [json.dumps(asdict(audit), ensure_ascii=False, allow_nan=False) + "\n" for audit in log.audits]
    with as_write_error("write", path):
        write_named(path, "".join(lines).encode("utf-8", "surrogatepass"))
