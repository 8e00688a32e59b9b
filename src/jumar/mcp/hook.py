"""What the hooks of Claude Code ask: a session that began with ``/jumar:loop`` goes on until its loop has ended.

Each time the agent wants to stop, its work is checked, scored and recorded, and it is told what fails. In any other session
nothing is done. Bounded: by the loop's own limits, and by an agent that changes nothing twice; a person who interrupts is never
held.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from jumar.app.decide import plan_selected
from jumar.core import files
from jumar.core.lock import own_directory
from jumar.errors import JumarError, UsageError
from jumar.mcp.loops import Document, Loops
from jumar.mcp.places import Places

BEGIN: Final = "/jumar:loop"
_SESSION: Final = re.compile(r"[A-Za-z0-9-]{1,80}")
_OUTPUT: Final = 1500
_NAMED: Final = 12
_HERE: Final = ()  # a loop of another directory is none of this session's, whatever its file names


@dataclass(frozen=True, slots=True)
class Session:
    """A session of the agent: its file is there from ``/jumar:loop`` on, and names the loop once there is one."""

    file: Path

    @classmethod
    def of(cls, root: Path, given: object) -> Session:
        """Return the session that a hook names. Errors: :class:`UsageError` for a name that is none."""
        if not isinstance(given, str) or _SESSION.fullmatch(given) is None:
            raise UsageError("session_id is missing: `jumar hook` reads what Claude Code gives its hooks")
        return cls(root / "mcp" / "sessions" / given)

    @property
    def begun(self) -> bool:
        """Whether it began with ``/jumar:loop``."""
        return files.content_of(self.file) is not None

    @property
    def loop(self) -> str | None:
        """The loop that it started; None for none."""
        return (files.content_of(self.file) or b"").decode("utf-8", "replace") or None

    def write(self, loop: str) -> None:
        """Remember a loop, or with an empty name that one is to come."""
        for directory in (self.file.parent.parent, self.file.parent):  # never through a link of the agent's
            own_directory(directory)
        files.replace_file(self.file, loop.encode("utf-8", "replace"))

    def end(self) -> None:
        """Forget it: from now on it is like any other."""
        if self.begun:
            self.file.unlink()


def heard(asked: Document, top: Path, root: Path) -> Document | None:
    """Return what to answer a hook, None for nothing. ``asked`` is what it read. Errors: :class:`UsageError`."""
    session, event = Session.of(root, asked.get("session_id")), asked.get("hook_event_name")
    if event == "UserPromptSubmit" and str(asked.get("prompt", "")).split(maxsplit=1)[:1] == [BEGIN]:
        session.write("")
    elif event == "PostToolUse" and session.begun and not _table(asked.get("tool_input")).get("agent"):
        session.write(_loop_of(asked.get("tool_response")) or session.loop or "")
    elif event == "Stop" and session.loop is not None:
        try:
            return _stopping(
                session, session.loop, Loops(Places(top.resolve(), root)), again=asked.get("stop_hook_active") is True
            )
        except JumarError as error:
            return {"systemMessage": f"jumar: {error}"}
    return None


def _stopping(session: Session, loop: str, loops: Loops, *, again: bool) -> Document:
    """Record what was done, and let the agent stop where the loop has ended, or it was told what fails and changed nothing."""
    status = loops.status(loop, "", detail=False)
    found = {} if status["ended"] else loops.record(loop, "", "", lambda run: run.outcome(lambda _line: None), _HERE)
    ended, idle = status["ended"] or found.get("ended"), "note" in found
    if not ended and not (idle and again):
        left = loops.status(loop, "", detail=False)["iterations_left"]
        return {"decision": "block", "reason": _words(found, left)}
    session.end()
    return {"systemMessage": f"jumar: {ended or 'the agent has nothing more to change'}. {_put_back(loop, loops)}"}


def _put_back(loop: str, loops: Loops) -> str:
    best = loops.best(loop, "", detail=False)
    told = (
        f"Iteration {best['iteration']} is the best ({best['score']:g})"
        if best["iteration"] is not None
        else "Nothing has a score"
    )
    with loops.places.reading(loop) as store:
        stands = best["iteration"] is None or plan_selected(store).empty
    if stands:
        return f"{told}, and in place. `jumar report {loop} --open` tells why."
    loops.apply(loop, "", _HERE)
    return f"{told}, and is in place again; `jumar apply {loop} --undo` takes that back. `jumar report {loop} --open` tells why."


def _words(found: Document, left: int | None) -> str:
    """Return what the agent is told: what fails, and what the best is."""
    best = cast("Document", found["best"])
    so_far = f"best so far iteration {best['iteration']} ({best['score']}){'' if left is None else f', {left} iterations left'}"
    lines = [f"jumar recorded iteration {found['iteration']}: score {found['score']}, {so_far}."]
    for check in cast("list[Document]", found["failing"]):
        tests = f" ({check['tests']})" if check["tests"] else ""
        names = ", ".join(check["failing_tests"][:_NAMED])
        lines += [f"- fails: {check['check']}{tests}: {names}", str(check["output"])[-_OUTPUT:]]
    lines += [str(reason) for reason in found["reasons"]]
    return "\n".join([*lines, "Go on from here. jumar records by itself when you stop again."])


def _loop_of(answer: object) -> str | None:
    """Return the loop that ``start_loop`` answered, in any of the forms in which hooks are given an answer."""
    if isinstance(answer, str):
        try:
            answer = json.loads(answer)
        except ValueError:
            return None
    if isinstance(answer, list):
        return next((found for part in cast("list[object]", answer) if (found := _loop_of(_table(part).get("text")))), None)
    table = _table(answer)
    loop = table.get("loop")
    return loop if isinstance(loop, str) else _loop_of(table["content"]) if "content" in table else None


def _table(found: object) -> dict[str, Any]:
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
