"""What a run of cases tells while it goes on: one frozen event at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from jumar.cases.records import CarriedFrom, CaseBest, CaseEnd, CaseIteration

__all__ = ["CaseEnded", "CaseEvent", "CaseListener", "CaseNotice", "CaseStarted", "CaseStepStarted", "IterationMade", "tell"]

_log = logging.getLogger("jumar.cases")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseStarted:
    """A case is about to run. ``recorded`` are the iterations that it has already, ``best`` the number of the best of them."""

    case: int
    case_id: str
    carried_from: CarriedFrom | None
    recorded: tuple[CaseIteration, ...]
    best: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseStepStarted:
    """A step of an iteration begins."""

    case: int
    iteration: int
    step: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationMade:
    """An iteration is acknowledged. ``best`` is the number of the best so far, None when none is valid."""

    record: CaseIteration
    best: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseEnded:
    """A case has ended, its best bundle is written: ``best``, None when no iteration is valid."""

    end: CaseEnd
    best: CaseBest | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseNotice:
    """Something that the person should know."""

    message: str


CaseEvent = CaseStarted | CaseStepStarted | IterationMade | CaseEnded | CaseNotice
CaseListener = Callable[[CaseEvent], None]


def tell(event: CaseEvent, listener: CaseListener | None) -> None:
    """Hand ``event`` to ``listener``; an exception there is logged and dropped."""
    if isinstance(event, CaseNotice):
        _log.info("jumar.case_notice: %s", event.message)
    if listener is None:
        return
    try:
        listener(event)
    except Exception:  # noqa: BLE001 - whatever a listener raises, it is not the run's
        _log.exception("jumar.listener_failed")
