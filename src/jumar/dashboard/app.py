"""The application: addresses, what answers each, and what a mistake is answered with."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import parse_qs, quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from jumar.app.decide import apply_selected, select_iteration, undo_apply
from jumar.core.given import as_given
from jumar.core.redaction import current, redacted_json
from jumar.core.rendering.html import redacted, style_sheet
from jumar.core.text import natural
from jumar.dashboard import pages
from jumar.dashboard.audit import audit
from jumar.dashboard.compare import comparison
from jumar.dashboard.deciding import decide, last_decision
from jumar.dashboard.guard import Access, Guard
from jumar.dashboard.library import Kind, Library, Run
from jumar.dashboard.selections import selections
from jumar.errors import JumarError, NotFoundError, UsageError
from jumar.judging.report.page import render_item
from jumar.judging.report.read import items_of, read_item
from jumar.learning.report.life import life_of
from jumar.learning.report.render import render_pattern
from jumar.processes.asking import asking_program

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_POLL_SECONDS: Final = 0.25
_POLLS_BETWEEN_LOOKS: Final = 4
_MOST_BODY: Final = 64 << 10
_SHEETS: Final = (
    ("jumar.loop.report", "report.css"),
    ("jumar.cases.report", "cases.css"),
    ("jumar.learning.report", "learning.css"),
    ("jumar.judging.report", "evaluation.css"),
    ("jumar.dashboard", "dashboard.css"),
)

Handler = Callable[["Dashboard", Request], str]


@dataclass(frozen=True, slots=True)
class Dashboard:
    """What the pages are made from: the runs, and who may change them."""

    library: Library
    access: Access
    is_ending: Callable[[], bool]
    changing: threading.Lock

    def frame(self, title: str, *trail: tuple[str, str]) -> pages.PageFrame:
        """Return what stands around a page: its name, and the way back to the first one."""
        return pages.PageFrame(title=title, trail=trail, form_token="" if self.access.read_only else self.access.form_token)


def create_app(
    library: Library, access: Access, *, is_ending: Callable[[], bool] = lambda: False, changing: threading.Lock | None = None
) -> ASGIApp:
    """Return the application over ``library``; ``access`` says who may ask and change what, streams end when it ``is_ending``.

    ``changing`` is held while something is changed.
    """
    board = Dashboard(library, access, is_ending, changing or threading.Lock())
    routes = [
        Route("/healthz", _healthz),
        Route("/favicon.ico", _no_icon),
        Route("/static/{name}", _static),
        Route("/events/{kind}/{key}", _events(board)),
        Route("/loops/{key}/iterations/{number:int}/files/{path:path}", _artifact(board)),
        *(Route(path, _page(board, handler)) for path, handler in PAGES.items()),
        *(Route(path, _document(board, handler)) for path, handler in DOCUMENTS.items()),
        *(Route(path, _change(board, handler), methods=["POST"]) for path, handler in CHANGES.items()),
    ]
    return Guard(Starlette(routes=routes), access)


def _page(board: Dashboard, handler: Handler) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        status, text = await run_in_threadpool(_rendered, board, handler, request)
        return Response(text, status, media_type="text/html")

    return answer


def _rendered(board: Dashboard, handler: Handler, request: Request) -> tuple[int, str]:
    try:
        return 200, redacted(handler(board, request))
    except NotFoundError as error:
        return 404, pages.problem(board.frame("Not found"), current().redact(str(error)))
    except UsageError as error:
        return 400, pages.problem(board.frame("Not possible"), current().redact(str(error)))
    except (JumarError, OSError) as error:
        return 500, pages.problem(board.frame("This run cannot be read"), current().redact(str(error)))


def _runs(board: Dashboard, request: Request) -> str:
    asked = pages.Asked.of(request.query_params)
    return pages.runs(board.frame("Runs"), board.library.runs(), asked, complete=board.library.complete)


def _loop(board: Dashboard, request: Request) -> str:
    run = board.library.find("loop", request.path_params["key"])
    store, report = board.library.loop(run.key)
    return pages.loop(board.frame(report.loop_id, ("Runs", "/")), run, store, report)


def _iteration(board: Dashboard, request: Request) -> str:
    run = board.library.find("loop", request.path_params["key"])
    store, report = board.library.loop(run.key)
    number, against = request.path_params["number"], request.query_params.get("against", "parent")
    frame = board.frame(f"Iteration {number}", ("Runs", "/"), (report.loop_id, run.address))
    return pages.iteration(frame, run, store, report, number, against)


def _decide(board: Dashboard, request: Request) -> str:
    run = board.library.find("loop", request.path_params["key"])
    store, report = board.library.loop(run.key)
    return decide(board.frame("Decide", ("Runs", "/"), (report.loop_id, run.address)), run, store, report)


def _cases(board: Dashboard, request: Request) -> str:
    key = request.path_params["key"]
    return pages.cases(board.frame(board.library.find("cases", key).name, ("Runs", "/")), board.library.cases(key))


def _learning(board: Dashboard, request: Request) -> str:
    key = request.path_params["key"]
    run = board.library.find("learn", key)
    return pages.learning(board.frame(run.name, ("Runs", "/")), run, board.library.learning(key))


def _evaluation(kind: Kind) -> Handler:
    def page(board: Dashboard, request: Request) -> str:
        key = request.path_params["key"]
        report = board.library.evaluation(kind, key, request.path_params.get("number"))
        run = board.library.find(kind, key)
        return pages.evaluation(board.frame(f"Evaluation {report.number}", *pages.trail_of(run)), run, report)

    return page


def _item(kind: Kind) -> Handler:
    def page(board: Dashboard, request: Request) -> str:
        key = request.path_params["key"]
        report = board.library.evaluation(kind, key, request.path_params["number"])
        run, item = board.library.find(kind, key), request.path_params["item"]
        address = pages.evaluation_address(run, report.number)
        frame = board.frame(item, *pages.trail_of(run), (f"Evaluation {report.number}", address))
        return render_item(report, read_item(report, item), frame.layout())

    return page


def _pattern(board: Dashboard, request: Request) -> str:
    key = request.path_params["key"]
    run, evaluation = board.library.find("learn", key), board.library.evaluation("learn", key)
    life = life_of(board.library.learning(key), request.path_params["pattern"], evaluation, items_of(evaluation))
    links = f"{pages.evaluation_address(run, evaluation.number)}/items/"
    return render_pattern(life, board.frame(life.says, *pages.trail_of(run)).layout(links=links))


def _selections(board: Dashboard, request: Request) -> str:
    file = request.query_params.get("file", "")
    frame = board.frame(file, ("topk", "/topk")) if file else board.frame("topk")
    return selections(frame, board.library, request.query_params)


PAGES: Final[Mapping[str, Handler]] = {
    "/": _runs,
    "/loops/{key}": _loop,
    "/loops/{key}/iterations/{number:int}": _iteration,
    "/loops/{key}/decide": _decide,
    "/cases/{key}": _cases,
    "/learn/{key}": _learning,
    "/learn/{key}/patterns/{pattern:path}": _pattern,
    "/learn/{key}/iterations/{number:int}": _evaluation("learn"),
    "/learn/{key}/iterations/{number:int}/items/{item:path}": _item("learn"),
    "/compare": lambda board, request: comparison(board.frame("Compare"), board.library, request.query_params),
    "/audit": lambda board, request: audit(board.frame("Audit"), board.library, request.query_params),
    "/topk": _selections,
    "/evaluations/{key}": _evaluation("evaluation"),
    "/evaluations/{key}/iterations/{number:int}": _evaluation("evaluation"),
    "/evaluations/{key}/iterations/{number:int}/items/{item:path}": _item("evaluation"),
}
"""A page a line: its address and what makes it."""

DOCUMENTS: Final[Mapping[str, Callable[[Dashboard, Request], Mapping[str, Any]]]] = {
    "/api/loops": lambda board, _: pages.loops_document(board.library.runs()),
    "/api/loops/{key}": lambda board, request: pages.loop_document(board.library.loop(request.path_params["key"])[1]),
    "/api/cases/{key}": lambda board, request: pages.cases_document(board.library.cases(request.path_params["key"])),
    "/api/learn/{key}": lambda board, request: pages.learning_document(board.library.learning(request.path_params["key"])),
}
"""What the command line prints with --json."""


def _artifact(board: Dashboard) -> Callable[[Request], Any]:
    """Return what answers with a file of an iteration, to be saved and never shown: nobody knows what an agent put into it."""

    def opened(key: str, number: int, path: str) -> Iterator[bytes]:
        store, report = board.library.loop(key)
        entry = None if report.find(number) is None else store.manifest(number).entries.get(path)
        gone = None if entry is None else store.without_snapshot(number)
        if gone is not None:
            raise NotFoundError(f"the snapshot of iteration {number} {gone}; its record is all that is left of it")
        if entry is not None and entry.kind == "file":
            chunks = store.content(number).chunks(entry)
            return chain((next(chunks, b""),), chunks)  # what is missing is missing before anything is sent
        raise NotFoundError(f"iteration {number} has no file '{path}'")

    async def answer(request: Request) -> Response:
        path = request.path_params["path"]
        try:
            chunks = await run_in_threadpool(opened, request.path_params["key"], request.path_params["number"], path)
        except (JumarError, OSError) as error:
            return PlainTextResponse(f"{current().redact(str(error))}\n", 404)
        name = quote(path.rpartition("/")[2], safe="")
        headers = {"content-disposition": f"attachment; filename*=UTF-8''{name}"}
        return StreamingResponse(chunks, media_type="application/octet-stream", headers=headers)

    return answer


def _document(board: Dashboard, make: Callable[[Dashboard, Request], Mapping[str, Any]]) -> Callable[[Request], Any]:
    def made(request: Request) -> Response:
        try:
            return _json(redacted_json(make(board, request), current().redact))
        except NotFoundError as error:
            return _json({"error": str(error)}, 404)
        except (JumarError, OSError) as error:
            return _json({"error": current().redact(str(error))}, 500)

    async def answer(request: Request) -> Response:
        return await run_in_threadpool(made, request)

    return answer


def _json(document: Mapping[str, Any], status: int = 200) -> Response:
    """Return JSON in ASCII: names of undecodable bytes are lone surrogates, which no other encoding takes."""
    return Response(json.dumps(as_given(document), allow_nan=False), status, media_type="application/json")


# ------------------------------------------------------------------------------------------------------------- changes


Change = Callable[[Dashboard, str, Mapping[str, str]], None]


def _select(board: Dashboard, key: str, form: Mapping[str, str]) -> None:
    given = form.get("use", "")
    use = natural(given) if given not in {"best", "final"} else cast("Any", given)
    if use is None:
        raise UsageError("choose an iteration")
    store, _ = board.library.loop(key)
    decision = select_iteration(store, use, reason=form.get("reason", ""))
    if decision.kind == "held":
        raise UsageError("a program of this loop still runs, so the choice is written down and waits: confirm it in a terminal")


def _apply(board: Dashboard, key: str, _form: Mapping[str, str]) -> None:
    apply_selected(board.library.loop(key)[0])


def _undo(board: Dashboard, key: str, form: Mapping[str, str]) -> None:
    undo_apply(board.library.loop(key)[0], force=form.get("force") == "yes")


CHANGES: Final[Mapping[str, Change]] = {
    "/loops/{key}/select": _select,
    "/loops/{key}/apply": _apply,
    "/loops/{key}/undo": _undo,
}


def _change(board: Dashboard, change: Change) -> Callable[[Request], Any]:
    def made(key: str, form: Mapping[str, str]) -> None:
        with board.changing:  # a button that is pressed twice asks twice, and the second one would take back more
            if form.get("seen") != last_decision(board.library.loop(key)[0]):
                raise UsageError("something was decided since this page was shown: look at it again, then decide")
            change(board, key, form)

    async def answer(request: Request) -> Response:
        form = await _form(request)
        if form is None or not _same_form(board, form):
            return PlainTextResponse("This form is not one of this page's; reload it and try again.\n", 403)
        program = await run_in_threadpool(asking_program, request.scope.get("client"), request.scope.get("server"))
        if program is not None:
            said = f"{program} asked for this. Changes are for people, in a browser or a terminal of their own.\n"
            return PlainTextResponse(said, 403)
        key = request.path_params["key"]
        status, text = await run_in_threadpool(_rendered, board, lambda _board, _request: made(key, form) or "", request)
        return RedirectResponse(f"/loops/{key}/decide", 303) if status == 200 else Response(text, status, media_type="text/html")

    return answer


def _same_form(board: Dashboard, form: Mapping[str, str]) -> bool:
    return Guard(cast("Any", None), board.access).is_ours(form.get("token", ""))


async def _form(request: Request) -> Mapping[str, str] | None:
    """Return the fields of a form, None where it is too large or no form of a page."""
    if request.headers.get("content-type", "").partition(";")[0] != "application/x-www-form-urlencoded":
        return None
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MOST_BODY:
            return None
    return {name: values[-1] for name, values in parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True).items()}


# ---------------------------------------------------------------------------------------------------------------- live


def _events(board: Dashboard) -> Callable[[Request], Any]:
    """Return the stream that says when a run changed. It ends when the browser goes away, and when the server does."""

    async def answer(request: Request) -> Response:
        try:
            kind = cast("Kind", request.path_params["kind"])
            run = await run_in_threadpool(board.library.find, kind, request.path_params["key"])
        except NotFoundError:
            return PlainTextResponse("", 404)
        stream = () if request.method == "HEAD" else _changes_of(board, run, request)
        return StreamingResponse(stream, media_type="text/event-stream")

    return answer


async def _changes_of(board: Dashboard, run: Run, request: Request) -> AsyncIterator[str]:
    seen, waited = board.library.stamp(run), 0
    yield "retry: 2000\n\n"
    while not (board.is_ending() or await request.is_disconnected()):
        await asyncio.sleep(_POLL_SECONDS)
        waited = (waited + 1) % _POLLS_BETWEEN_LOOKS
        if waited:
            continue
        now = await run_in_threadpool(board.library.stamp, run)
        yield f"event: changed\ndata: {json.dumps(now)}\n\n" if now != seen else ": still here\n\n"
        seen = now


async def _healthz(_request: Request) -> Response:
    return PlainTextResponse("ok\n")


async def _no_icon(_request: Request) -> Response:
    return Response(status_code=204)


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name == "dashboard.css":
        return Response("".join(style_sheet(package, (sheet,)) for package, sheet in _SHEETS), media_type="text/css")
    if name == "dashboard.js":
        text = files("jumar.dashboard").joinpath("static", name).read_text("utf-8")
        return Response(text, media_type="text/javascript")
    return PlainTextResponse("There is no such file.\n", 404)
