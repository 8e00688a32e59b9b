"""Pages of other sites in a real browser, beside a dashboard that runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
from boards import Served, hidden_fields, project, root_of, serving
from loops import jumar

pytest.importorskip("uvicorn")

# they know even the tokens of our forms: what a browser lets them send, and what they get to see
ATTACKS = {
    "form": '<form id="f" method="post" action="{to}">{fields}</form><script>f.submit()</script>',
    "form without a referrer": '<meta name="referrer" content="no-referrer"><form id="f" method="post" action="{to}">{fields}'
    "</form><script>f.submit()</script>",
    "form of text": '<form id="f" method="post" enctype="text/plain" action="{to}">{fields}</form><script>f.submit()</script>',
    "form of parts": '<form id="f" method="post" enctype="multipart/form-data" action="{to}">{fields}</form>'
    "<script>f.submit()</script>",
    "form in a frame": "<iframe sandbox='allow-scripts allow-forms' srcdoc='<form id=f method=post action={to}>{fields}</form>"
    "<script>f.submit()</script>'></iframe>",
    "link": '<form id="f" action="{to}?_method=POST">{fields}</form><script>f.submit()</script>',
    "script": '<script>fetch("{to}", {{method: "POST", mode: "no-cors", body: new URLSearchParams({{use: "1"}})}})</script>',
    "reading": '<script>window.got = []; for (const at of ["/", "/api/loops", "/loops/t/decide"]) fetch("{root}" + at)'
    '.then(answer => answer.text()).then(text => got.push(text)).catch(() => got.push("refused"));'
    'new EventSource("{root}/events/loop/t").onopen = () => got.push("live");</script>',
    "frame": '<iframe src="{root}/loops/t/decide"></iframe>',
    "opened": '<script>window.other = open("{root}/loops/t/decide")</script>',
}


@pytest.fixture
def loop(fresh_place: Path) -> Path:
    jumar(project(fresh_place), "run", check=0)
    return fresh_place


@pytest.fixture
def served(loop: Path) -> Iterator[Served]:
    with serving(loop) as running:
        yield running


@pytest.fixture
def elsewhere(served: Served) -> Iterator[int]:
    """Serve the attacks on another port of this machine."""
    fields = {"use": "1", "reason": "mine"} | hidden_fields(served)
    inputs = "".join(f"<input name={name} value={value}>" for name, value in fields.items())

    class Attacks(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            attack = ATTACKS.get(unquote(self.path[1:]), "")
            page = attack.format(to=f"{root_of(served)}/loops/t/select", root=root_of(served), fields=inputs)
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the base calls it
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Attacks) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_pages_of_other_sites_change_nothing_and_see_nothing(browser: Any, served: Served, loop: Path, elsewhere: int):
    decided = sorted((loop / ".jumar/loops/t/decisions").iterdir())
    for host in ("127.0.0.1", "localhost"):
        for name in ATTACKS:
            context = browser.new_context()
            page = context.new_page()
            page.goto(f"http://{host}:{elsewhere}/{quote(name)}")
            page.wait_for_timeout(400)
            if name == "reading":
                assert page.evaluate("got") == ["refused"] * 3
            elif name == "frame":
                assert [frame.url for frame in page.frames][1:] == ["chrome-error://chromewebdata/"]
            elif name == "opened":
                assert page.evaluate("(() => { try { return other.document.title } catch { return '' } })()") == ""
            assert sorted((loop / ".jumar/loops/t/decisions").iterdir()) == decided, name
            context.close()
    assert served.ask("POST", "/loops/t/select", "use=1")[0] == 403
