"""Who may ask what: the name of the host first, then where the request comes from, then the tokens. All else is refused.

A page of another site can make a browser send requests here, under this host's name (CSRF) or under its own (DNS rebinding).
Names of hosts are listed, changes need an origin of ours and a token that only our pages hold, and nobody else may read answers.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE: Final = "jumar-token"
_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What is let through. ``hosts`` are the values of the Host header, None for any: then a ``token`` is asked for.

    ``form_token`` stands in every form of ours and nowhere else. ``read_only``: nothing may be changed.
    """

    hosts: frozenset[str] | None
    token: str | None = None
    read_only: bool = False
    form_token: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    def __post_init__(self) -> None:
        if self.hosts is None and not self.token:
            raise ValueError("without a list of hosts a token is needed")


def local_hosts(port: int) -> frozenset[str]:
    """Return the Host headers that a browser on this machine sends to a server on the loopback interface."""
    ends = (f":{port}", "") if port == 80 else (f":{port}",)  # the usual one is left out
    return frozenset(f"{name}{end}" for name in ("127.0.0.1", "localhost", "[::1]") for end in ends)


class Guard:
    """Refuses what :class:`Access` does not let through, and adds the headers that browsers hold a page to."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        answer = self._refusal(scope) or self._signed_in(scope)
        await (self._app if answer is None else answer)(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> Response | None:
        headers, method = Headers(scope=scope), scope["method"]
        hosts, host = self._access.hosts, headers.get("host", "").lower()
        if hosts is not None and host not in hosts:
            return PlainTextResponse("This address is not one of this page's.\n", 403)
        if method not in {"GET", "HEAD", "POST"}:
            return PlainTextResponse("There is nothing to do with this method.\n", 405)
        site = headers.get("sec-fetch-site", "")
        if method == "POST":
            if self._access.read_only:
                return PlainTextResponse("This page was started with --read-only.\n", 403)
            origin = headers.get("origin", "")
            if origin.partition("://")[2].lower() != host or site not in {"", "same-origin"}:
                return PlainTextResponse("Changes are made from this page only.\n", 403)
        elif site in {"cross-site", "same-site"} and headers.get("sec-fetch-mode") != "navigate":
            return PlainTextResponse("This is not for other sites.\n", 403)
        return None

    def _signed_in(self, scope: Scope) -> Response | None:
        """Ask for the token where there is one: in the address once, which is answered with a cookie, or in a header."""
        token = self._access.token
        if token is None or scope["path"] == "/healthz":
            return None
        headers = Headers(scope=scope)
        bearer = headers.get("authorization", "").partition("Bearer ")[2]
        if _same(bearer, token) or _same(_cookie(headers.get("cookie", "")), token):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if scope["method"] == "GET" and any(name == "token" and _same(value, token) for name, value in query):
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            answer = RedirectResponse("/" + scope["path"].lstrip("/") + (f"?{rest}" if rest else ""), 303)
            answer.set_cookie(COOKIE, token, httponly=True, samesite="strict")
            return answer
        return PlainTextResponse("A token is needed: open the address that `jumar dashboard` printed.\n", 401)

    def is_ours(self, given: str) -> bool:
        """Whether a form was one of ours."""
        return _same(given, self._access.form_token)


def _same(given: str, wanted: str) -> bool:
    return secrets.compare_digest(given.encode(), wanted.encode())


def _cookie(header: str) -> str:
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sending
