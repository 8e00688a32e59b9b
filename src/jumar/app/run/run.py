"""The use case of ``jumar run``: put the loop together, run it, tell ``[loop] on_stop`` how it ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jumar.app.run.prepare import prepare
from jumar.app.run.request import RunRequest
from jumar.errors import JumarError, LockedError
from jumar.loop.engine.engine import Loop
from jumar.loop.engine.outcome import LoopOutcome
from jumar.loop.events.events import Listener
from jumar.loop.hooks import notify
from jumar.processes.control import StopSwitch


def run(
    request: RunRequest,
    *,
    switch: StopSwitch | None = None,
    listener: Listener | None = None,
    attended: Callable[[Loop], LoopOutcome] = Loop.run,
    shown: Callable[[LoopOutcome], None] | None = None,
    warn: Callable[[str], None] | None = None,
) -> LoopOutcome:
    """Run or resume the loop that ``request`` asks for, and return how it ended.

    ``switch`` stops it from elsewhere, ``listener`` hears its events. ``attended`` runs the loop that was put together, with what
    a caller does around it; ``shown`` gets the outcome before ``on_stop`` does, and ``warn`` is told why that failed. Errors:
    those of :func:`jumar.app.run.prepare.prepare` before anything is run.
    """
    loop = prepare(request, switch=switch or StopSwitch(), listener=listener)

    def ended(outcome: LoopOutcome | BaseException) -> None:
        failure = _tell_of_end(request, loop, outcome)
        if failure is not None and warn is not None:
            warn(f"{failure}; its output is in {loop.store.paths.directory / 'logs' / 'on_stop.log'}")

    try:
        outcome = attended(loop)
    except BaseException as error:
        ended(error)
        raise
    if shown is not None:
        shown(outcome)
    ended(outcome)
    return outcome


def _tell_of_end(request: RunRequest, loop: Loop, outcome: LoopOutcome | BaseException) -> str | None:
    """Run ``on_stop``, if there is one, and return why it failed, None when it did not.

    The locks are released: the command may read the loop, apply it, or start the next one. It is not run where nothing was: by a
    run that found its loop finished, or in another's hands.
    """
    hook = request.config.loop.hook("on_stop")
    nothing_ran = isinstance(outcome, LockedError) or (isinstance(outcome, LoopOutcome) and outcome.already_finished)
    if hook is None or nothing_ran:
        return None
    document = outcome.to_json() if isinstance(outcome, LoopOutcome) else _error_document(loop, outcome)
    return notify(hook, document, loop=loop.store.paths.directory, cwd=request.base, allowed=request.config.loop.env)


def _error_document(loop: Loop, error: BaseException) -> dict[str, Any]:
    """Return what stands for the final document where an error ended the run: what ``--json`` prints, and which loop it was."""
    known = isinstance(error, JumarError)
    kind, code = type(error).__name__, error.exit_code if isinstance(error, JumarError) else 1
    message = str(error) if known else f"{kind}: {error}"
    return {
        "loop_id": loop.store.loop_id,
        "stop_reason": "error",
        "stop_detail": message,
        "error": {"kind": kind, "message": message, "exit_code": code},
        "directory": str(loop.store.paths.directory),
        "exit_code": code,
    }
