"""Which iteration stands now, and how it came to that: the last override, else the last selection, and the trail of both.

The one way from a loop on disk to a choice is :func:`evidence_of`: its records, its later readings, the rules that hold now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from jumar.errors import NothingEvaluatedError
from jumar.loop.ranking.noise import Evidence
from jumar.loop.ranking.ratchet import select_kept
from jumar.loop.store.config_in_force import config_now
from jumar.loop.store.loop_reader import LoopReader
from jumar.model import Decision, SelectionCriteria, SelectionResult
from jumar.model.decisions import rechecks
from jumar.model.selection import NoiseRules


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


_TRAIL = frozenset({"select", "override", "held", "apply", "undo", "cleanup", "accept", "limits", "redact", "repair"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """``iteration`` is what ``jumar apply`` applies; ``decision`` is what made it stand.

    ``decision`` is None when nobody decided yet; then ``iteration`` is what the criteria would choose, and None without
    criteria or without a valid score.
    """

    iteration: int | None
    decision: Decision | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailEntry:
    """One decision for people: ``done``, ``unfinished`` (cut off before its end), or ``undone`` (an apply taken back)."""

    decision: Decision
    state: Literal["done", "unfinished", "undone"] = "done"


def standing(store: LoopReader, criteria: SelectionCriteria | None = None) -> Standing:
    """Return the iteration that stands: the last override, else the last selection, else what ``criteria`` choose now.

    A later selection does not displace an override: the person's word holds until another override. A selection made before the
    last iteration was recorded is out of date where ``criteria`` can make a new one. Nothing is written.
    """
    decision = decided(store.decisions())
    if decision is not None and not (criteria is not None and _out_of_date(decision, store)):
        return Standing(iteration=decision.best_iteration, decision=decision)
    if criteria is not None:
        try:
            return Standing(iteration=select_from(store, criteria).stands, decision=None)
        except NothingEvaluatedError:
            pass
    return Standing(iteration=None, decision=None)


def current(store: LoopReader) -> Decision | None:
    """Return the decision that stands; None when there is none, or a selection that was made before the last iteration."""
    decision = decided(store.decisions())
    return None if decision is None or _out_of_date(decision, store) else decision


def _out_of_date(decision: Decision, store: LoopReader) -> bool:
    numbers = store.iteration_numbers()
    return decision.kind == "select" and bool(numbers) and decision.final_iteration != numbers[-1]


def decided(decisions: Iterable[Decision]) -> Decision | None:
    """Return the decision that stands among ``decisions``, which are in order; None when there is none."""
    selection: Decision | None = None
    override: Decision | None = None
    for decision in decisions:
        if decision.kind == "override":
            override = decision
        elif decision.kind == "select":
            selection = decision
    return override or selection


def held(decisions: Sequence[Decision]) -> Decision | None:
    """Return the last override that waits for a person's word; a later override is one. None when none waits."""
    last = next((decision for decision in reversed(decisions) if decision.kind in {"held", "override"}), None)
    return last if last is not None and last.kind == "held" else None


def trail(store: LoopReader) -> tuple[TrailEntry, ...]:
    """Return everything that was decided, oldest first; beginnings and ends are one entry."""
    return trail_of(store.decisions())


def trail_of(decisions: Sequence[Decision]) -> tuple[TrailEntry, ...]:
    """Return the trail of ``decisions``, which are in order; see :func:`trail`."""
    ended = {decision.data.get("apply") for decision in decisions if decision.kind == "apply-end"}
    undone = {decision.data.get("apply") for decision in decisions if decision.kind == "undo-end"}
    entries: list[TrailEntry] = []
    for decision in decisions:
        if decision.kind not in _TRAIL:
            continue
        state: Literal["done", "unfinished", "undone"] = "done"
        if decision.kind == "apply" and decision.number in undone:
            state = "undone"
        elif decision.kind == "apply":
            state = "done" if decision.number in ended else "unfinished"
        elif decision.kind == "undo":  # a later try ends the earlier ones too
            state = "done" if decision.data.get("apply") in undone else "unfinished"
        entries.append(TrailEntry(decision=decision, state=state))
    return tuple(entries)


def last_applied(store: LoopReader) -> Decision | None:
    """Return the last apply that has its end and was not taken back; None when there is none."""
    decisions = store.decisions()
    ended = {decision.data.get("apply") for decision in decisions if decision.kind == "apply-end"}
    undone = {decision.data.get("apply") for decision in decisions if decision.kind == "undo-end"}
    applies = (decision for decision in reversed(decisions) if decision.kind == "apply")
    return next((decision for decision in applies if decision.number in ended - undone), None)
