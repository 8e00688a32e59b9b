"""What a loop tells while it runs: one frozen event at a time.

A listener gets values, never the engine; what it raises is logged and does not stop the loop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from jumar.model import IterationRecord, StopRules
from jumar.model.attempts import Spend

__all__ = ["Event", "IterationRecorded", "Listener", "LoopStarted", "Notice", "PhaseStarted", "deliver"]

_log = logging.getLogger("jumar.loop")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopStarted:
    """The loop holds its lock and is about to work. ``resumed`` is True when there were iterations already."""

    loop_id: str
    resumed: bool
    rules: StopRules
    recorded: tuple[IterationRecord, ...]
    weights: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseStarted:
    """A step of iteration ``iteration`` begins."""

    iteration: int
    phase: Literal["generate", "verify", "score"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationRecorded:
    """An iteration is acknowledged. ``best`` is the number of the running best, None when no score is valid."""

    record: IterationRecord
    best: int | None
    spend: Spend


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something that the person should know, and what to do about it."""

    message: str


Event = LoopStarted | PhaseStarted | IterationRecorded | Notice
Listener = Callable[[Event], None]


def deliver(event: Event, listener: Listener | None) -> None:
    """Hand ``event`` to ``listener``; an exception there is logged and dropped: the loop is worth more than its display."""
    if isinstance(event, Notice):
        _log.info("jumar.loop_notice: %s", event.message)
    else:
        _log.debug("jumar.%s", type(event).__name__)
    if listener is None:
        return
    try:
        listener(event)
    except Exception:  # noqa: BLE001 - whatever a listener raises, it is not the loop's
        _log.exception("jumar.listener_failed")
