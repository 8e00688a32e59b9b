"""The one way from a loop on disk to a choice: its records, its later readings, and the rules that hold for it now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from jumar.loop.ranking.noise import Evidence
from jumar.loop.ranking.ratchet import select_kept
from jumar.loop.store.config_in_force import config_now
from jumar.loop.store.loop_reader import LoopReader
from jumar.model import SelectionCriteria, SelectionResult
from jumar.model.decisions import rechecks
from jumar.model.selection import NoiseRules

__all__ = ["evidence_of", "select_from"]


def evidence_of(store: LoopReader) -> Evidence:
    """Return what a choice is made from. Takes no lock. Errors: :class:`jumar.errors.StoreDamagedError`.

    What a strict recheck refused has not passed its checks.
    """
    config = config_now(store)
    begun = {key.removeprefix("noise."): value for key, value in _section(config, "defaults").items()}
    noise = {**begun, **_section(_section(config, "run"), "noise")}
    weights = {name: value for name, value in _section(config, "quality_weights").items() if isinstance(value, int | float)}
    views, refused = store.views(), [one.iteration for one in rechecks(store.decisions()).values() if one.refused]
    if refused:
        views = tuple(replace(view, verification="failed") if view.number in refused else view for view in views)
    return Evidence(views=views, readings=store.readings(), weights=weights, rules=NoiseRules.recorded(noise))


def select_from(store: LoopReader, criteria: SelectionCriteria) -> SelectionResult:
    """Return what ``criteria`` choose now. Errors: as of :func:`jumar.loop.ranking.ratchet.select_kept`."""
    return select_kept(evidence_of(store), criteria)


def _section(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section: object = config.get(name)
    return cast("Mapping[str, Any]", section) if isinstance(section, Mapping) else {}
