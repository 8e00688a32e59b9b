"""The server: which tools, resources and prompts there are, what they are called and what they promise."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, cast

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
from mcp.server.mcpserver import Context, ListRoots, MCPServer, Resolve
from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp.types import CallToolResult, ListRootsResult, TextContent, ToolAnnotations
from pydantic import Field

from jumar.core import __version__
from jumar.core.given import as_given
from jumar.core.redaction import current
from jumar.core.text import cut, escape
from jumar.errors import JumarError
from jumar.loop.report.page import render_markdown
from jumar.loop.report.read import load_report
from jumar.loop.store.layout import list_loops
from jumar.mcp import items
from jumar.mcp.loops import Asked, Document, Loops
from jumar.mcp.places import Places, directories_of
from jumar.mcp.running import Run

INSTRUCTIONS: Final = """\
jumar keeps the best of many attempts instead of the last. Two ways to use it:
1. You work, jumar records: start_loop(objective, checks) once, then after every change record_iteration(). jumar runs the checks
   itself and answers with score, failing tests and the best so far. At the end apply() puts the best iteration into the working
   directory; undo() takes that back.
2. jumar works: start_loop(..., agent="claude") runs an agent in the background; ask status(), then best() and apply().
What you say of your own work is never a score: scores come from checks and scorers alone."""

_SHORT: Final = 2_000
_LONG: Final = 60_000
"""Bytes of an answer, without and with ``detail``."""

_LEAST: Final = 24
_A_LINE: Final = 80
_CUT: Final = "…"
_LOOKS: Final = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
_ADDS: Final = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)
_STARTS: Final = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=True)
_SETS: Final = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_REPLACES: Final = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)

Loop = Annotated[str | None, Field(description="The loop's name; by default the one that you started last, else the newest.")]
Detail = Annotated[bool, Field(description="Longer: all of it instead of a summary of at most 2 kB.")]


async def _roots(context: Context) -> ListRoots | ListRootsResult:
    """Ask the client for its roots, where it has any."""
    capabilities = context.client_capabilities
    return ListRoots() if capabilities is not None and capabilities.roots is not None else ListRootsResult(roots=[])


Roots = Annotated[ListRootsResult, Resolve(_roots)]


def _allowed(roots: ListRootsResult) -> tuple[Path, ...]:
    return directories_of(str(each.uri) for each in roots.roots)


def create_server(top: Path, root: Path) -> MCPServer:
    """Return the server for the directory ``top``, whose loops lie in ``root``."""
    places = Places(top.resolve(), root.absolute())
    server = MCPServer("jumar", version=__version__, instructions=INSTRUCTIONS, log_level="WARNING")
    loops = Loops(places)
    tools = Tools(loops)
    for name, promises in _TOOLS.items():
        tool = getattr(tools, name)
        server.add_tool(tool, description=inspect.getdoc(tool), annotations=promises)
    _add_resources(server, loops)
    _add_prompts(server)
    return server


class Tools:
    """What clients may call; names, arguments and words are what they see."""

    def __init__(self, loops: Loops) -> None:
        self.loops = loops

    async def start_loop(
        self,
        *,
        context: Context,
        roots: Roots,
        objective: Annotated[str, Field(description="What is to be achieved, in a sentence or more.")],
        checks: Annotated[list[str] | None, Field(description="Shell commands that must pass, such as 'pytest -q'.")] = None,
        scorers: Annotated[list[str] | None, Field(description="Shell commands that print a number from 0 to 1.")] = None,
        directory: Annotated[str, Field(description="Where the work is, below the roots.")] = ".",
        max_iterations: Annotated[int | None, Field(ge=1, description="Iterations at most (default 10).")] = None,
        max_cost_usd: Annotated[float | None, Field(ge=0, description="Dollars at most; with agent only.")] = None,
        agent: Annotated[str | None, Field(description="Who works: claude, codex, gemini, or a command. Default: you.")] = None,
    ) -> Annotated[CallToolResult, Document]:
        """Begin a loop that keeps the best state. Without agent you work and record; with agent jumar runs it in the background.

        Where the directory has a jumar.toml, that says what is checked: give objective and directory alone.
        """

        def asked() -> Asked:
            return Asked(
                objective=objective,
                directory=self.loops.places.directory(directory, _allowed(roots)),
                checks=checks or (),
                scorers=scorers or (),
                max_iterations=max_iterations,
                max_cost_usd=max_cost_usd,
                agent=agent,
            )

        return await _ran(context, lambda run: self.loops.start(asked(), _session(context), run))

    async def record_iteration(
        self,
        *,
        context: Context,
        roots: Roots,
        loop: Loop = None,
        note: Annotated[str, Field(description="What you changed, for the report. It is no score.")] = "",
        detail: Detail = False,
    ) -> Annotated[CallToolResult, Document]:
        """Record the working directory as it is: jumar snapshots it, runs checks and scorers, and answers with what fails.

        The working directory is not changed. Calling it again without a change records nothing.
        """
        return await _ran(
            context, lambda run: self.loops.record(loop, note, _session(context), run, _allowed(roots)), detail=detail
        )

    async def select(
        self,
        *,
        context: Context,
        iteration: Annotated[int, Field(ge=0)],
        reason: Annotated[str, Field(min_length=3, max_length=2_000, description="Why; it goes on record.")],
        loop: Loop = None,
    ) -> Annotated[CallToolResult, Document]:
        """Choose another iteration than the rules do. The working directory is not touched until apply."""
        return await _answered(lambda: self.loops.select(loop, iteration, reason, _session(context)))

    async def apply(self, context: Context, roots: Roots, loop: Loop = None) -> Annotated[CallToolResult, Document]:
        """Replace the working directory's files by those of the selected iteration; undo takes it back."""
        return await _answered(lambda: self.loops.apply(loop, _session(context), _allowed(roots)))

    async def undo(self, context: Context, roots: Roots, loop: Loop = None) -> Annotated[CallToolResult, Document]:
        """Take back the last apply."""
        return await _answered(lambda: self.loops.undo(loop, _session(context), _allowed(roots)))

    async def stop(self, context: Context, loop: Loop = None) -> Annotated[CallToolResult, Document]:
        """Ask a loop that runs in the background to end after its step."""
        return await _answered(lambda: self.loops.stop(loop, _session(context)))

    async def best(self, *, context: Context, loop: Loop = None, detail: Detail = False) -> Annotated[CallToolResult, Document]:
        """Say which iteration is the best so far, its score, and why."""
        return await _answered(lambda: self.loops.best(loop, _session(context), detail=detail), detail=detail)

    async def status(self, *, context: Context, loop: Loop = None, detail: Detail = False) -> Annotated[CallToolResult, Document]:
        """Say where a loop is: what runs, iterations made and left, the best so far, spend, why it ended."""
        return await _answered(lambda: self.loops.status(loop, _session(context), detail=detail), detail=detail)

    async def diff(
        self,
        *,
        context: Context,
        loop: Loop = None,
        iteration: Annotated[int | None, Field(ge=0, description="Default: the selected one.")] = None,
        against: Annotated[int | None, Field(ge=0, description="Default: the start, 0.")] = None,
        detail: Detail = False,
    ) -> Annotated[CallToolResult, Document]:
        """Return what an iteration changed, as a unified diff."""
        return await _answered(lambda: self.loops.diff(loop, iteration, against, _session(context)), detail=detail)

    async def evaluate_items(
        self,
        *,
        roots: Roots,
        path: Annotated[str, Field(description="A file of items: JSONL, JSON, CSV or text, one item a line.")],
        rubric: Annotated[str | None, Field(description="story or text; default: what the items look like.")] = None,
        patterns: Annotated[str | None, Field(description="A learned set, the file that `jumar learn` wrote.")] = None,
        detail: Detail = False,
    ) -> Annotated[CallToolResult, Document]:
        """Score items from 1 to 5 with the cheap judge: no model is asked and nothing is paid."""

        def scored() -> Document:
            allowed, places = _allowed(roots), self.loops.places
            known = None if patterns is None else places.file(patterns, allowed)
            rules = rubric if rubric is None or rubric in {"story", "text"} else str(places.file(rubric, allowed))
            return items.evaluate_items(places.file(path, allowed), rules, known, detail=detail)

        return await _answered(scored, detail=detail)

    async def choose_k(
        self,
        *,
        scores: Annotated[
            list[float], Field(min_length=1, max_length=10_000, description="Similarities of the retrieved items.")
        ],
        strategy: Annotated[str, Field(description="largest_gap, elbow, otsu, ratio_to_top, …")] = "largest_gap",
        max_k: Annotated[int, Field(ge=1)] = 20,
    ) -> Annotated[CallToolResult, Document]:
        """Choose how many retrieved items to keep, from their scores."""
        return await _answered(lambda: items.choose_k(scores, strategy, max_k))


_TOOLS: Final[Mapping[str, ToolAnnotations]] = {
    "start_loop": _STARTS,
    "record_iteration": _ADDS,
    "best": _LOOKS,
    "status": _LOOKS,
    "diff": _LOOKS,
    "select": _SETS,
    "apply": _REPLACES,
    "undo": _REPLACES,
    "stop": _SETS,
    "evaluate_items": _LOOKS,
    "choose_k": _LOOKS,
}


def _add_resources(server: MCPServer, loops: Loops) -> None:
    places = loops.places

    @server.resource("jumar://loops", mime_type="application/json")
    async def names() -> str:
        """List the names of all loops."""
        return json.dumps(list(list_loops(places.root)))

    @server.resource("jumar://loops/{loop}/report", mime_type="text/markdown")
    async def report(loop: str) -> str:
        """Return a loop's report."""

        def text() -> str:
            with places.reading(loop) as store:
                return render_markdown(load_report(store))

        return await _resource(text)

    @server.resource("jumar://loops/{loop}/iterations/{iteration}/diff", mime_type="text/plain")
    async def changes(loop: str, iteration: int) -> str:
        """Return what an iteration changed against the start."""
        return await _resource(lambda: str(loops.diff(loop, iteration, None, "")["diff"]))


def _add_prompts(server: MCPServer) -> None:
    @server.prompt(name="improve-until")
    def improve_until(objective: str, check: str) -> str:
        """Work on something until a check passes, and end with the best state."""
        return (
            f"{objective}\n\nCall jumar's start_loop with this objective and checks=[{check!r}]. Then change one thing at a time "
            "and call record_iteration after each change; it answers with what still fails. Where an iteration is worse than the "
            "best, apply brings the best back. When the loop has ended, call apply and say which iteration it is and why."
        )

    @server.prompt(name="explain-selection")
    def explain_selection(loop: str) -> str:
        """Explain why an iteration was selected."""
        return (
            f"Call jumar's best with loop={loop!r} and detail=true, and diff for what it changed. Say in a few sentences which "
            "iteration is selected, why, what the last one was, and what would have been lost with it. Add nothing of your own."
        )


def _session(context: Context) -> str | None:
    """Return what tells clients apart: "" where there is only one, the session of HTTP, None where a request belongs to none."""
    return "" if context.headers is None else context.headers.get("mcp-session-id")


async def _answered(work: Callable[[], Document], *, detail: bool = False) -> CallToolResult:
    """Do ``work`` in a thread; an error that jumar foresees is the tool's answer."""
    try:
        document = fitted(await anyio.to_thread.run_sync(work), _LONG if detail else _SHORT)
    except JumarError as error:
        raise ToolError(cut(current().redact(str(error)), _SHORT)) from None
    except OSError as error:
        raise ToolError(cut(escape(str(error)), _SHORT)) from None
    return CallToolResult(content=[TextContent(type="text", text=_dumped(document))], structured_content=as_given(document))


def fitted(document: Document, most: int) -> Document:
    """Return ``document`` with its longest texts and lists cut so far that it has at most ``most`` bytes as JSON."""
    length = most
    while len(_dumped(document).encode("utf-8", "replace")) > most and length > _LEAST:
        length = length * 2 // 3
        document = {name: _cut(value, length, name) for name, value in document.items()}
    return document


def _cut(value: Any, length: int, name: str = "") -> Any:
    """Return ``value`` with texts of at most ``length`` characters; of what a program printed the end is kept, else the begin."""
    if isinstance(value, str) and len(value) > length:
        return f"{_CUT}{value[len(_CUT) - length :]}" if name == "output" else f"{value[: length - len(_CUT)]}{_CUT}"
    if isinstance(value, dict):
        return {key: _cut(inner, length, str(key)) for key, inner in cast("Document", value).items()}
    if not isinstance(value, list):
        return value
    items, kept = cast("list[Any]", value), max(2, length // _A_LINE)
    more = [f"{len(items) - kept:,} more: detail has them"] if len(items) > kept + 1 else []
    return [_cut(each, length) for each in (items[:kept] if more else items)] + more


def _dumped(document: Document) -> str:
    return json.dumps(as_given(document), ensure_ascii=False, separators=(",", ":"))


async def _ran(
    context: Context, work: Callable[[Callable[[Run], Document]], Document], *, detail: bool = False
) -> CallToolResult:
    """Do ``work``, which runs a loop: what it shows is its progress, and a call that is cancelled ends it."""
    running: list[Run] = []
    loop, lines = anyio.lowlevel.current_token(), 0

    async def tell(line: str) -> None:
        await context.report_progress(lines, message=line)

    def hear(line: str) -> None:
        nonlocal lines
        lines += 1
        anyio.from_thread.run(tell, line, token=loop)

    def outcome(run: Run) -> Document:
        running.append(run)
        return run.outcome(hear)

    try:
        return await _answered(functools.partial(work, outcome), detail=detail)
    except anyio.get_cancelled_exc_class():
        for run in running:
            run.end()
        raise


async def _resource(text: Callable[[], str]) -> str:
    try:
        return await anyio.to_thread.run_sync(text)
    except JumarError as error:
        raise ResourceError(current().redact(str(error))) from None
