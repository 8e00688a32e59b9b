"""The one way from a loop on disk to a choice: its records, its later readings, and the rules that hold for it now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from jumar.decide.recorded import config_now
from jumar.model import SelectionCriteria, SelectionResult
from jumar.model.selection import NoiseRules
from jumar.ranking.noise import Evidence, select
from jumar.store.loop_reader import LoopReader

__all__ = ["evidence_of", "select_from"]


def evidence_of(store: LoopReader) -> Evidence:
    """Return what a choice is made from. Takes no lock. Errors: :class:`jumar.errors.StoreDamagedError`."""
    config = config_now(store)
    run = _section(config, "run")
    weights = {name: value for name, value in _section(config, "quality_weights").items() if isinstance(value, int | float)}
    return Evidence(
        views=store.views(), readings=store.readings(), weights=weights, rules=NoiseRules.recorded(_section(run, "noise"))
    )


def select_from(store: LoopReader, criteria: SelectionCriteria) -> SelectionResult:
    """Return what ``criteria`` choose now. Errors: as of :func:`jumar.ranking.noise.select`."""
    return select(evidence_of(store), criteria)


def _section(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section: object = config.get(name)
    return cast("Mapping[str, Any]", section) if isinstance(section, Mapping) else {}
