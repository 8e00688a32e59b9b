"""Telling somebody that a run has ended: ``[loop] on_stop`` with the final document, or with the error that ended it."""

from __future__ import annotations

from typing import Any

from jumar.app.run.request import RunRequest
from jumar.errors import JumarError, LockedError
from jumar.loop.engine.engine import Loop
from jumar.loop.engine.outcome import LoopOutcome
from jumar.loop.hooks import notify

__all__ = ["error_document", "tell_of_end"]


def tell_of_end(request: RunRequest, loop: Loop, outcome: LoopOutcome | BaseException) -> str | None:
    """Run ``on_stop``, if there is one, and return why it failed, None when it did not.

    The locks are released: the command may read the loop, apply it, or start the next one. It is not run where nothing was: by a
    run that found its loop finished, or in another's hands.
    """
    hook = request.config.loop.hook("on_stop")
    nothing_ran = isinstance(outcome, LockedError) or (isinstance(outcome, LoopOutcome) and outcome.already_finished)
    if hook is None or nothing_ran:
        return None
    document = outcome.to_json() if isinstance(outcome, LoopOutcome) else error_document(loop, outcome)
    return notify(hook, document, loop=loop.store.paths.directory, cwd=request.base, allowed=request.config.loop.env)


def error_document(loop: Loop, error: BaseException) -> dict[str, Any]:
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
