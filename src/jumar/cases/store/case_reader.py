"""Reading one case: no lock, no write; only whole files, because that is all there ever is."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from jumar.cases.records import CaseBest, CaseEnd, CaseInputs, CaseIteration, StepRecord
from jumar.cases.store.layout import CasePaths, RunPaths, iter_number
from jumar.core.codec import Fields, decode
from jumar.core.files import read_store_file
from jumar.errors import StoreDamagedError

__all__ = ["ITERATION", "STEPS", "CaseReader", "StepStart", "decoded"]

ITERATION: Final = "iteration.json"
STEPS: Final = "steps"
_START: Final = re.compile(r"(\d{4})-([a-z0-9_-]+)\.start\.json")


class StepStart:
    """The reservation of one run of a step: written before it is paid for."""

    __slots__ = ("attempt", "nonce", "step")

    def __init__(self, fields: Fields) -> None:
        self.attempt = fields.integer("attempt")
        self.step = fields.text("step")
        self.nonce = fields.text("nonce")


class CaseReader:
    """One case of a run."""

    def __init__(self, run: Path, number: int) -> None:
        self.paths = CasePaths(Path(os.path.abspath(run)), number)
        self.number = number
        self._known: dict[int, CaseIteration] = {}

    def iterations(self) -> tuple[CaseIteration, ...]:
        """Return the acknowledged iterations by number. Errors: :class:`StoreDamagedError` that names the file."""
        found = self._numbers(self.paths.iterations)
        for number in found:
            if number not in self._known:
                self._known[number] = self._read(number)
        return tuple(self._known[number] for number in found)

    def _read(self, number: int) -> CaseIteration:
        path = self.paths.iteration(number) / ITERATION
        record = CaseIteration.from_json(decoded(path))
        if (record.case, record.number) != (self.number, number):
            raise StoreDamagedError(f"{path}: holds iteration {record.number} of case {record.case}; was it renamed by hand?")
        return record

    def pending(self) -> int | None:
        """Return the number of the iteration that is being made, None when there is none."""
        return min(self._numbers(self.paths.pending), default=None)

    def inputs(self) -> CaseInputs | None:
        """Return what the case started from; None before it began."""
        path = RunPaths(self.paths.run).case_inputs(self.number)
        return CaseInputs.from_json(decoded(path)) if path.exists() else None

    def best(self) -> CaseBest | None:
        """Return ``best.json``; None before the case's end, and for a case without a valid iteration."""
        return CaseBest.from_json(decoded(self.paths.best_json)) if self.paths.best_json.exists() else None

    def end(self) -> CaseEnd | None:
        """Return how the case ended; None while it goes on."""
        return CaseEnd.from_json(decoded(self.paths.end)) if self.paths.end.exists() else None

    def steps(self, directory: Path) -> tuple[tuple[StepStart, StepRecord | None], ...]:
        """Return every run of a step in an iteration's directory, in the order in which they began; no end is None."""
        folder = directory / STEPS
        try:
            names = sorted(name for name in os.listdir(folder) if _START.fullmatch(name))
        except FileNotFoundError:
            return ()
        found: list[tuple[StepStart, StepRecord | None]] = []
        for name in names:
            end = folder / name.replace(".start.", ".end.")
            record = StepRecord.from_json(decoded(end)) if end.exists() else None
            found.append((StepStart(decoded(folder / name)), record))
        return tuple(found)

    @staticmethod
    def last_step(directory: Path) -> int:
        """Return the number of the last run of a step in an iteration's directory, 0 when there is none. Reads names only."""
        return max((int(found[1]) for found in map(_START.fullmatch, os.listdir(directory / STEPS)) if found), default=0)

    @staticmethod
    def _numbers(directory: Path) -> list[int]:
        try:
            names = os.listdir(directory)
        except FileNotFoundError:
            return []
        return sorted(number for name in names if (number := iter_number(name)) is not None)


def decoded(path: Path) -> Fields:
    """Read one JSON file of a run. Errors: :class:`StoreDamagedError` and its kinds, which name the command for runs of cases."""
    try:
        return decode(read_store_file(path), os.fspath(path))
    except StoreDamagedError as error:
        raise type(error)(str(error).replace("`jumar verify`", "`jumar cases verify RUN`")) from error
