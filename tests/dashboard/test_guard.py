"""Whom the dashboard answers: hosts, origins, methods and tokens, asked as a browser of another site would."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from starlette.responses import PlainTextResponse
from visits import visit

from jumar.dashboard.guard import COOKIE, Access, Guard, local_hosts
from jumar.processes.asking import asking_program

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

OURS = {"host": "127.0.0.1:8400", "origin": "http://127.0.0.1:8400", "sec-fetch-site": "same-origin"}


async def _inside(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("inside")(scope, receive, send)


def ask(access: Access, method: str = "GET", path: str = "/", query: str = "", **headers: str) -> tuple[int, dict[str, str]]:
    return visit(Guard(_inside, access), f"{path}?{query}", method=method, **headers)[:2]


HERE = Access(hosts=local_hosts(8400))


@pytest.mark.parametrize("host", ["127.0.0.1:8400", "localhost:8400", "[::1]:8400", "LOCALHOST:8400"])
def test_this_machine_is_answered(host: str):
    status, headers = ask(HERE, host=host)
    assert status == 200
    assert "script-src 'self'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


def test_the_usual_port_is_left_out_by_browsers():
    usual = Access(hosts=local_hosts(80))
    assert ask(usual, host="localhost")[0] == 200
    assert ask(usual, "POST", host="localhost", origin="http://localhost")[0] == 200
    assert ask(usual, host="evil.example")[0] == 403


OTHER_HOSTS = (
    "evil.example:8400 127.0.0.1:80 127.0.0.1 127.0.0.1.evil.example:8400 127.0.0.1.:8400 localhost.:8400 u@127.0.0.1:8400 "
    "127.0.0.1:8400@evil.example 127.0.0.1:08400 0x7f000001:8400 2130706433:8400 [::ffff:127.0.0.1]:8400 "
    "127.0.0.1:8400,evil 0.0.0.0:8400"
)


@pytest.mark.parametrize("host", ["", *OTHER_HOSTS.split()])
def test_another_name_of_the_host_is_refused_first(host: str):
    assert ask(HERE, host=host)[0] == 403
    assert ask(HERE, "POST", **(OURS | {"host": host, "origin": f"http://{host}"}))[0] == 403


@pytest.mark.parametrize(
    "other",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": ""},
        {"origin": "http://127.0.0.1:9000"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
        {"origin": "http://localhost:8400"},
        {"origin": "http://127.0.0.1:8400.evil.example"},
        {"origin": "127.0.0.1:8400"},
        {"origin": "http://evil.example", "x-forwarded-host": "127.0.0.1:8400", "x-http-method-override": "POST"},
    ],
)
def test_a_change_from_elsewhere_is_refused(other: dict[str, str]):
    assert ask(HERE, "POST", **(OURS | other))[0] == 403


def test_a_change_from_here_reaches_its_page_unless_nothing_may_be_changed():
    assert ask(HERE, "POST", **OURS)[0] == 200
    assert ask(Access(hosts=local_hosts(8400), read_only=True), "POST", **OURS)[0] == 403


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"])
def test_other_methods_are_none(method: str):
    assert ask(HERE, method, **OURS)[0] == 405


def test_other_sites_may_link_here_and_embed_nothing():
    assert ask(HERE, host="127.0.0.1:8400", sec_fetch_site="cross-site", sec_fetch_mode="navigate")[0] == 200
    assert ask(HERE, host="127.0.0.1:8400", sec_fetch_site="cross-site", sec_fetch_mode="no-cors")[0] == 403


def test_a_token_is_asked_for_and_kept_as_a_cookie():
    access = Access(hosts=None, token="s3cret-token")
    assert ask(access, host="anything")[0] == 401
    assert ask(access, host="anything", query="token=wrong")[0] == 401
    assert ask(access, host="anything", authorization="Bearer s3cret-token")[0] == 200
    assert ask(access, host="anything", cookie=f"{COOKIE}=s3cret-token")[0] == 200
    assert ask(access, host="anything", cookie=f"{COOKIE}=s3cret-toke")[0] == 401
    assert ask(access, path="/healthz", host="anything")[0] == 200
    status, headers = ask(access, path="/loops/a", host="anything", query="x=1&token=s3cret-token")
    assert (status, headers["location"]) == (303, "/loops/a?x=1")
    elsewhere = ask(access, path="//evil.example/", host="anything", query="token=s3cret-token")[1]
    assert elsewhere["location"] == "/evil.example/"
    assert {"httponly", "samesite=strict"} <= {part.strip().lower() for part in headers["set-cookie"].split(";")}


def test_any_host_without_a_token_is_a_mistake():
    with pytest.raises(ValueError, match="token"):
        Access(hosts=None)


ASKING = """
import os, signal, socket, sys
how, port = sys.argv[1], int(sys.argv[2])
asking = socket.create_connection(("127.0.0.1", port))
asking.sendall(b"x")
if how == "gone":
    asking.close()
print(os.getpid(), flush=True)
signal.pause()
"""


@pytest.mark.parametrize(
    ("how", "loop", "said"),
    [
        ("stays", "t", "A program of loop t"),
        ("stays", None, None),
        ("gone", "t", "A program that did not wait for the answer"),
        ("gone", None, "A program that did not wait for the answer"),
    ],
)
def test_a_program_of_a_loop_is_known_even_if_it_does_not_wait(how: str, loop: str | None, said: str | None):
    assert _asked_by(how, loop) == said


def test_a_browser_with_the_same_port_at_another_address_excuses_nobody():
    with socket.create_server(("127.0.0.1", 0)) as server:
        browser = socket.create_connection(server.getsockname(), source_address=("127.0.0.3", 0))
        port = browser.getsockname()[1]
        with browser, socket.create_connection(server.getsockname(), source_address=("127.0.0.2", port)):
            assert asking_program(("127.0.0.4", port), server.getsockname()) is not None, "nobody is at this end"


def _asked_by(how: str, loop: str | None) -> str | None:
    given = {name: value for name, value in os.environ.items() if not name.startswith("JUMAR_")}
    if loop is not None:
        given |= {"JUMAR_LOOP_ID": loop, "JUMAR_ITERATION": "1"}
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        command = [sys.executable, "-c", ASKING, how, str(port)]
        with subprocess.Popen(command, env=given, stdout=subprocess.PIPE) as asking:
            accepted, client = server.accept()
            assert asking.stdout is not None
            asking.stdout.readline()
            with accepted:
                try:
                    return asking_program(client, accepted.getsockname())
                finally:
                    asking.send_signal(signal.SIGKILL)
