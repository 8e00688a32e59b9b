"""All that a learning run knows between two iterations, as files: ``state.json``, ``ledger.json``, ``predictions.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from jumar.core.files import replace_file
from jumar.core.text import escape, json_rows
from jumar.errors import StoreDamagedError
from jumar.judging.patterns.models import PatternSet, PatternV2
from jumar.judging.patterns.proposed import as_pattern
from jumar.learning.ledger import Ledger
from jumar.learning.state import LearnState

__all__ = ["LEDGER", "PREDICTIONS", "STATE", "Known", "Line", "read_known", "write_known"]

STATE: Final = "state.json"
LEDGER: Final = "ledger.json"
PREDICTIONS: Final = "predictions.json"
_FORMAT: Final = 1


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

    def to_json(self) -> dict[str, Any]:
        return {
            "patterns": self.patterns.model_dump(mode="json"),
            "candidates": [one.model_dump(mode="json") for one in self.candidates],
            "tried": list(self.tried),
            "predictions": dict(self.predictions),
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Line:
        return cls(
            patterns=PatternSet.model_validate(found["patterns"]),
            candidates=tuple(PatternV2.model_validate(one) for one in found["candidates"]),
            tried=tuple(str(one) for one in found["tried"]),
            predictions={str(name): float(score) for name, score in found["predictions"].items()},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The learner's state, the ledger of all tests, and what can be believed of the set.

    ``lines`` are one for each round of the split, in their order. ``own`` are the predictions of the set itself for the items
    that it was made from; ``tested`` those of the test items, each by a set that did not see it: the figures of an iteration.
    ``stopped`` is why there is nothing more to be learned, empty while there may be.
    """

    state: LearnState
    ledger: Ledger = field(default_factory=Ledger)
    lines: tuple[Line, ...] = ()
    own: Mapping[str, float] = field(default_factory=dict[str, float])
    tested: Mapping[str, float] = field(default_factory=dict[str, float])
    stopped: str = ""

    @property
    def tried(self) -> tuple[str, ...]:
        """The ids of everything that was ever proposed for the set itself."""
        return tuple(as_pattern(one).id for one in self.state.proposals)


def write_known(known: Known, directory: Path) -> None:
    """Write the three files below ``directory``, each whole. Errors: :class:`jumar.errors.StoreWriteError`."""
    predictions = {
        "format": _FORMAT,
        "tested": dict(known.tested),
        "own": dict(known.own),
        "stopped": known.stopped,
        "lines": [one.to_json() for one in known.lines],
    }
    documents = {STATE: known.state.to_json(), LEDGER: known.ledger.to_json(), PREDICTIONS: predictions}
    for name, document in documents.items():
        replace_file(directory / name, json_rows(document).encode("utf-8", "surrogatepass"))


def read_known(directory: Path) -> Known:
    """Return what :func:`write_known` wrote. Errors: :class:`jumar.errors.StoreDamagedError` that names the file."""
    state = LearnState.from_json(_read(directory / STATE), str(directory / STATE))
    ledger = Ledger.from_json(_read(directory / LEDGER), str(directory / LEDGER))
    path = directory / PREDICTIONS
    found = _read(path)
    try:
        return Known(
            state=state,
            ledger=ledger,
            lines=tuple(Line.from_json(one) for one in found["lines"]),
            own={str(name): float(score) for name, score in found["own"].items()},
            tested={str(name): float(score) for name, score in found["tested"].items()},
            stopped=str(found["stopped"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreDamagedError(f"{escape(str(path))} is damaged: {escape(str(error))[:100]}") from None


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise StoreDamagedError(f"{escape(str(path))} is gone; run `jumar learn` again with --output of another folder") from None
    except ValueError as error:
        raise StoreDamagedError(f"{escape(str(path))} is damaged: {escape(str(error))[:100]}") from None
    if not isinstance(found, dict):
        raise StoreDamagedError(f"{escape(str(path))} is damaged: it holds no object")
    return cast("dict[str, Any]", found)
