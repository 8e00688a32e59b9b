"""What a learning run remembers between iterations: ``state.json``, ``ledger.json`` and ``predictions.json``, and their values.

Values are never changed: an iteration, a recovery action or a rollback returns another one.

The ledger holds every test of a proposal that was ever made. Somebody who tries two thousand phrases finds a hundred that "work"
at 5 %, so what is called supported is decided over all tests together, the failed ones included. The method is that of Benjamini
and Yekutieli (2001): patterns fire on the same items and are scored by the same readings, so that their p-values depend on each
other in unknown ways, and this method holds whatever the dependence.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Self, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from jumar.core.files import read_bytes, replace_file
from jumar.core.text import escape, json_rows
from jumar.errors import FormatTooNewError, StoreDamagedError
from jumar.judging.items.item import patterns_digest
from jumar.judging.models import IterationMetrics
from jumar.judging.patterns.models import PatternProposal, PatternSet, PatternV2
from jumar.judging.patterns.proposed import ValidationRule, as_pattern

FORMAT: Final = 1
MOST_VERSIONS: Final = 8
MOST_DIVERSITY: Final = 3
MOST_ACTIONS: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnParameters:
    """How bold the learner is. Errors: ValueError for one that is out of range.

    ``learning_rate`` scales every change of a weight, above 0 up to 1. ``validation`` is when a provisional pattern is committed
    or rejected. ``diversity`` counts from 0 to 3 how far proposals are widened. Patterns with a weight below ``prune_below`` go
    when weights are pruned.
    """

    learning_rate: float = 1.0
    validation: ValidationRule = field(default_factory=ValidationRule)
    diversity: int = 0
    prune_below: float = 0.3

    def __post_init__(self) -> None:
        if not (math.isfinite(self.learning_rate) and 0 < self.learning_rate <= 1):
            raise ValueError(f"learning_rate = {self.learning_rate} should be above 0 and at most 1")
        if not 0 <= self.diversity <= MOST_DIVERSITY:
            raise ValueError(f"diversity = {self.diversity} should be from 0 to {MOST_DIVERSITY}")
        if not (math.isfinite(self.prune_below) and 0 <= self.prune_below <= 2):
            raise ValueError(f"prune_below = {self.prune_below} should be from 0 to 2")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSet:
    """A set that an iteration ended with. ``abs_gap`` is its mean absolute gap on the test split, None when it was not tried.

    ``good`` is False for one in whose iteration a regression or a divergence was found: nothing goes back to it.
    """

    iteration: int
    patterns: PatternSet
    abs_gap: float | None = None
    good: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnState:
    """Everything that decides about the next iteration, the ledger of proposals apart.

    ``history`` and ``versions`` are oldest first; of the versions the last eight are remembered, with the best one among them.
    ``actions`` are the entries of the log, JSON objects with ``action``, oldest first; the last thousand stay.
    """

    iteration: int = 0
    patterns: PatternSet
    proposals: tuple[PatternProposal, ...] = ()
    history: tuple[IterationMetrics, ...] = ()
    parameters: LearnParameters = field(default_factory=LearnParameters)
    versions: tuple[KnownSet, ...] = ()
    actions: tuple[dict[str, Any], ...] = ()

    def remembered(self, *, abs_gap: float | None = None, good: bool = True) -> Self:
        """Return the state with its present patterns as the newest version; one that is equal is not kept twice in a row."""
        new = KnownSet(iteration=self.iteration, patterns=self.patterns, abs_gap=abs_gap, good=good)
        before = self.versions
        if before and pattern_hash(before[-1].patterns) == pattern_hash(self.patterns):
            before = before[:-1]
        return replace(self, versions=_latest((*before, new)))

    def last_good(self) -> KnownSet | None:
        """Return the newest good version with other patterns than the present ones, None when there is none."""
        now = pattern_hash(self.patterns)
        return next(
            (version for version in reversed(self.versions) if version.good and pattern_hash(version.patterns) != now), None
        )

    def logged(self, *entries: Mapping[str, Any]) -> Self:
        """Return the state with ``entries`` at the end of its log."""
        return replace(self, actions=(*self.actions, *(dict(entry) for entry in entries))[-MOST_ACTIONS:])

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON that :meth:`from_json` reads back as an equal state."""
        return {"format": FORMAT, **_codec(LearnState).dump_python(self, mode="json")}

    @classmethod
    def from_json(cls, document: Mapping[str, Any], where: str = "state.json") -> LearnState:
        """Return the state that ``document`` holds; what it does not know is left out.

        Errors: :class:`jumar.errors.FormatTooNewError`; :class:`jumar.errors.StoreDamagedError` that names ``where``.
        """
        found = document.get("format")
        if isinstance(found, int) and found > FORMAT:
            raise FormatTooNewError(f"{escape(where)}: format {found} of a newer jumar; update jumar")
        try:
            if found != FORMAT:
                raise ValueError(f"its format is {found!r}, not {FORMAT}")  # noqa: TRY301 - one message for all of it
            return _load(cls, document)
        except ValueError as error:
            raise StoreDamagedError(f"{escape(where)} is not a state of the learner: {escape(str(error))}") from error


def pattern_hash(patterns: PatternSet) -> str:
    """Return the SHA-256 of what a set holds, whatever the layout it was read with, and without what is only counted."""
    return patterns_digest(patterns)


def _latest(versions: tuple[KnownSet, ...]) -> tuple[KnownSet, ...]:
    if len(versions) <= MOST_VERSIONS:
        return versions
    tried = [version for version in versions if version.good and version.abs_gap is not None]
    best = min(tried, key=lambda one: one.abs_gap or 0.0, default=None)
    kept = versions[-MOST_VERSIONS:]
    return kept if best is None or any(one is best for one in kept) else (best, *kept[1:])


FALSE_DISCOVERY_RATE: Final = 0.05
"""Share of wrong ones that is expected among those that are called supported, at most."""


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
class ProposalLedger:
    """All tests in the order in which they were made. There is no way to take one out."""

    entries: tuple[LedgerEntry, ...] = ()

    def added(self, entries: Iterable[LedgerEntry]) -> ProposalLedger:
        """Return the ledger with more tests at its end."""
        return ProposalLedger((*self.entries, *entries))

    def adjusted(self) -> tuple[float, ...]:
        """Return the adjusted p-value of every test: the false-discovery rate at which it would just be called supported."""
        if not self.entries:
            return ()
        stats: Any = import_module("scipy.stats")
        adjusted = stats.false_discovery_control([entry.p_value for entry in self.entries], method="by")
        return tuple(min(1.0, float(one)) for one in adjusted)

    def supported(self, rate: float = FALSE_DISCOVERY_RATE) -> frozenset[str]:
        """Return the ids of the proposals with a test that survives, all tests ever made being counted."""
        return frozenset(one.id for one, value in zip(self.entries, self.adjusted(), strict=True) if value <= rate)

    def latest(self) -> dict[str, LedgerEntry]:
        """Return the last test of each proposal, by its id."""
        return {entry.id: entry for entry in self.entries}

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON: ``format``, ``method`` and the entries."""
        return {"format": FORMAT, "method": "by", **_codec(ProposalLedger).dump_python(self, mode="json")}

    @classmethod
    def from_json(cls, data: Any, where: str = "the ledger") -> ProposalLedger:
        """Return the ledger that :meth:`to_json` gave, as the value or as JSON text.

        Errors: :class:`jumar.errors.StoreDamagedError` that names ``where`` and the entry,
        :class:`jumar.errors.FormatTooNewError`.
        """
        try:
            found = json.loads(data) if isinstance(data, str | bytes) else data
            if not isinstance(found, Mapping):
                raise ValueError("it holds no object")  # noqa: TRY004, TRY301 - one message for all of it
            document = cast("Mapping[str, Any]", found)
            version = document.get("format")
            if isinstance(version, int) and version > FORMAT:
                raise FormatTooNewError(f"{escape(where)}: format {version}; this jumar reads up to {FORMAT}, update it")
            return _load(cls, document)
        except ValueError as error:
            raise StoreDamagedError(
                f"{escape(where)} is damaged ({escape(str(error))[:100]}); restore it from a backup"
            ) from None


PATTERNS: Final = "patterns.json"
STATE: Final = "state.json"
LEDGER: Final = "ledger.json"
PREDICTIONS: Final = "predictions.json"
ARTIFACTS: Final = (PATTERNS, STATE, LEDGER, PREDICTIONS)
DIMENSIONS: Final = ("closeness", "ranking")
"""What an iteration is scored by: 1 - MAE / 4, and (1 + Spearman) / 2, of the test items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One way through the open items: a set that was made without some of them, so that those can test it.

    ``candidates`` were proposed from the items that it was made from, and may be in the set; ``tried`` are the ids of all that
    ever were. ``predictions`` are of those items, by id.
    """

    patterns: PatternSet
    candidates: tuple[PatternV2, ...] = ()
    tried: tuple[str, ...] = ()
    predictions: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The learner's state, the ledger of all tests, and what can be believed of the set.

    ``lines`` are one for each round of the split, in their order. ``own`` are the predictions of the set itself for the items
    that it was made from; ``tested`` those of the test items, each by a set that did not see it: the figures of an iteration.
    ``stopped`` is why there is nothing more to be learned, empty while there may be.
    """

    state: LearnState
    ledger: ProposalLedger = field(default_factory=ProposalLedger)
    tested: Mapping[str, float] = field(default_factory=dict[str, float])
    own: Mapping[str, float] = field(default_factory=dict[str, float])
    stopped: str = ""
    lines: tuple[Line, ...] = ()

    @property
    def tried(self) -> tuple[str, ...]:
        """The ids of everything that was ever proposed for the set itself."""
        return tuple(as_pattern(proposal).id for proposal in self.state.proposals)


def write_checkpoint(checkpoint: Checkpoint, directory: Path) -> None:
    """Write the three files below ``directory``, each whole. Errors: :class:`jumar.errors.StoreWriteError`."""
    predictions = {"format": FORMAT, **_codec(Checkpoint).dump_python(checkpoint, mode="json", exclude={"state", "ledger"})}
    documents = {STATE: checkpoint.state.to_json(), LEDGER: checkpoint.ledger.to_json(), PREDICTIONS: predictions}
    for name, document in documents.items():
        replace_file(directory / name, json_rows(document).encode("utf-8", "surrogatepass"))


def read_checkpoint(directory: Path) -> Checkpoint:
    """Return what :func:`write_checkpoint` wrote. Errors: :class:`jumar.errors.StoreDamagedError` that names the file."""
    return _checkpoint(str(directory), *(_read(directory / name) for name in (STATE, LEDGER, PREDICTIONS)))


@functools.lru_cache(maxsize=2)  # the check and both scorers of an iteration read what it wrote, and so does the next one
def _checkpoint(directory: str, state: bytes, ledger: bytes, predictions: bytes) -> Checkpoint:
    path = Path(directory)
    parts = {
        "state": LearnState.from_json(_object(state, path / STATE), str(path / STATE)),
        "ledger": ProposalLedger.from_json(_object(ledger, path / LEDGER), str(path / LEDGER)),
    }
    found = _object(predictions, path / PREDICTIONS)
    try:
        return _load(Checkpoint, {**found, **parts})
    except ValueError as error:
        raise StoreDamagedError(f"{escape(str(path / PREDICTIONS))} is damaged: {escape(str(error))[:100]}") from None


def _read(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except FileNotFoundError:
        raise StoreDamagedError(f"{escape(str(path))} is gone; run `jumar learn` again with --output of another folder") from None


def _object(data: bytes, path: Path) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except ValueError as error:
        raise StoreDamagedError(f"{escape(str(path))} is damaged: {escape(str(error))[:100]}") from None
    if not isinstance(found, dict):
        raise StoreDamagedError(f"{escape(str(path))} is damaged: it holds no object")
    return cast("dict[str, Any]", found)


T = TypeVar("T", LearnState, ProposalLedger, Checkpoint)


@functools.cache
def _codec(kind: type[T]) -> TypeAdapter[T]:
    """Return what reads and writes a dataclass as its fields declare it, the models of patterns in it included."""
    return TypeAdapter(kind)


def _load(kind: type[T], document: Mapping[str, Any]) -> T:
    """Return the value of a class that a file's object holds. Errors: ValueError that names what is missing or wrong."""
    for declared in fields(kind):
        if declared.name not in document:
            raise ValueError(f"'{declared.name}' is missing")
    try:
        return _codec(kind).validate_python(document)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        at: list[int | str] = [*problem["loc"]]
        place = f"entry {int(at[1]) + 1}" if kind is ProposalLedger and len(at) > 1 else ".".join(map(str, at))
        said = f"'{at[-1]}' is missing" if problem["type"] == "missing" else problem["msg"]
        raise ValueError(f"{place}: {said}") from None
