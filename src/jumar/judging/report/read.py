"""An evaluation as its folder has it: the scores of every item, and the figures over all of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from jumar.core.files import read_bytes
from jumar.core.text import escape, shortened
from jumar.errors import NotFoundError, StoreDamagedError
from jumar.judging.items.item import Item
from jumar.judging.items.records import read_items
from jumar.judging.models import CheapModeResult, ExpensiveModeResult, Unscored

ITEMS: Final = "stories.json"
_FOLDER: Final = re.compile(r"iteration_([1-9]\d{0,8})")
_JUDGES: Final = (("expensive", "expensive_eval.json"), ("cheap", "cheap_eval.json"))
_BEGINNING: Final = 110
_RESULT = TypeVar("_RESULT", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemScores:
    """An item's two scores, 1 to 5; None where that judge gave none. ``text`` is its beginning, for a table."""

    id: str
    group: str | None
    text: str
    expensive: float | None
    cheap: float | None

    @property
    def gap(self) -> float | None:
        """The judge's score less the cheap one's; None without both."""
        return None if self.expensive is None or self.cheap is None else self.expensive - self.cheap


@dataclass(frozen=True, slots=True, kw_only=True)
class GapPoint:
    """What one evaluation of a folder came to: mean absolute gap and rank correlation, None where they are not on file."""

    number: int
    abs_gap: float | None
    spearman: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationReport:
    """One evaluation: ``number`` of its folder, what each judge's file says beside the items, and the gap's figures."""

    directory: Path
    number: int
    items: tuple[ItemScores, ...]
    expensive: Mapping[str, Any] | None
    cheap: Mapping[str, Any] | None
    gap: Mapping[str, Any] | None
    course: tuple[GapPoint, ...]

    @property
    def tracking(self) -> Mapping[str, Any] | None:
        """How far the cheap judge follows the expensive one, as :class:`jumar.judging.tracking.Tracking` writes it."""
        return None if self.gap is None else self.gap.get("tracking")


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemVerdicts:
    """An item whole, with what each judge said of it; None where that judge was not asked."""

    item: Item
    expensive: ExpensiveModeResult | Unscored | None
    cheap: CheapModeResult | Unscored | None


def evaluations_in(output: Path) -> list[int]:
    """Return the numbers of the evaluations below ``output``, ascending."""
    found = (int(match[1]) for entry in output.iterdir() if (match := _FOLDER.fullmatch(entry.name)))
    return sorted(number for number in found if (output / f"iteration_{number}" / ITEMS).is_file())


def load_evaluation(output: Path, number: int | None = None) -> EvaluationReport:
    """Return an evaluation of ``output``, the last one for None.

    Errors: :class:`NotFoundError` where there is none, :class:`StoreDamagedError` for a file that cannot be read.
    """
    numbers = evaluations_in(output)
    if not numbers or (number is not None and number not in numbers):
        raise NotFoundError(f"{escape(str(output))} holds no evaluation{'' if number is None else f' {number}'}")
    number = numbers[-1] if number is None else number
    folder = output / f"iteration_{number}"
    documents = {judge: _document(folder / name) for judge, name in _JUDGES}
    scores = {judge: _scores(document) for judge, document in documents.items()}
    items = tuple(
        ItemScores(
            id=item.id,
            group=item.group,
            text=shortened(" ".join(item.text[: 4 * _BEGINNING].split()), _BEGINNING),
            expensive=scores["expensive"].get(item.id),
            cheap=scores["cheap"].get(item.id),
        )
        for item in read_items(folder / ITEMS)
    )
    return EvaluationReport(
        directory=folder,
        number=number,
        items=items,
        expensive=_figures(documents["expensive"]),
        cheap=_figures(documents["cheap"]),
        gap=_document(folder / "gap_analysis.json"),
        course=tuple(gap_point(output, each) for each in numbers),
    )


def items_of(report: EvaluationReport) -> Iterator[Item]:
    """Yield the items of an evaluation, whole. Errors: :class:`jumar.errors.ItemError`."""
    return read_items(report.directory / ITEMS)


def read_item(report: EvaluationReport, item_id: str) -> ItemVerdicts:
    """Return one item with all that was said of it. Errors: :class:`NotFoundError`, and as :func:`load_evaluation`."""
    found = next((item for item in items_of(report) if item.id == item_id), None)
    if found is None:
        raise NotFoundError(f"this evaluation has no item '{escape(item_id)}'")
    return ItemVerdicts(
        item=found,
        expensive=_result(report.directory / _JUDGES[0][1], item_id, ExpensiveModeResult),
        cheap=_result(report.directory / _JUDGES[1][1], item_id, CheapModeResult),
    )


def _document(path: Path) -> dict[str, Any] | None:
    """Return a file's object, None where it is missing."""
    try:
        document = json.loads(read_bytes(path))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise StoreDamagedError(f"{escape(str(path))} is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise StoreDamagedError(f"{escape(str(path))} is not a JSON object")
    return document  # pyright: ignore[reportUnknownVariableType] - JSON objects have names for keys


def _rows(document: Mapping[str, Any] | None, name: str) -> Sequence[Mapping[str, Any]]:
    rows: Any = [] if document is None else document.get(name, [])
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []  # pyright: ignore[reportUnknownVariableType]


def _scores(document: Mapping[str, Any] | None) -> dict[str, float]:
    rows = _rows(document, "individual_scores")
    return {str(row.get("story_id")): float(row["gestalt"]) for row in rows if isinstance(row.get("gestalt"), int | float)}


def _figures(document: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if document is None:
        return None
    return {name: value for name, value in document.items() if name not in {"individual_scores", "unscored_items"}}


def gap_point(output: Path, number: int) -> GapPoint:
    """Return what one evaluation of ``output`` came to. Errors: :class:`StoreDamagedError`."""
    document = _document(output / f"iteration_{number}" / "gap_analysis.json") or {}
    tracking: Mapping[str, Any] = document.get("tracking") or {}
    return GapPoint(number=number, abs_gap=document.get("abs_gap_mean"), spearman=tracking.get("spearman"))


def _result(path: Path, item_id: str, kind: type[_RESULT]) -> _RESULT | Unscored | None:
    document = _document(path)
    kinds: tuple[tuple[str, type[_RESULT | Unscored]], ...] = (("individual_scores", kind), ("unscored_items", Unscored))
    for name, model in kinds:
        row = next((row for row in _rows(document, name) if row.get("story_id") == item_id), None)
        if row is not None:
            try:
                return model.model_validate(row)
            except ValidationError as error:
                where = f"{escape(str(path))}, item '{escape(item_id)}'"
                raise StoreDamagedError(f"{where}: {escape(str(error.errors()[0]['msg']))}") from None
    return None
