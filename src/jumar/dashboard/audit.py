"""Every decision of every loop: when, what, by whom and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from jumar.core.rendering.figures import UNKNOWN, moment
from jumar.core.text import plural
from jumar.loop.report.reasons import kind_words

if TYPE_CHECKING:
    from jumar.dashboard.library import Decided, Library
    from jumar.dashboard.pages import PageFrame

_ROWS: Final = 100


def audit(frame: PageFrame, library: Library, query: Mapping[str, str]) -> str:
    """Return the page of the decisions that an address asks for, the newest first."""
    trail = library.trail()
    search, kind, page = query.get("q", "").strip().lower(), query.get("kind", ""), query.get("page", "1")
    number = max(1, int(page)) if page.isascii() and page.isdigit() and len(page) < 7 else 1
    asked_for = [row for row in trail.rows if not kind or row.entry.decision.kind == kind]
    found = [row for row in asked_for if search in _words(row).lower()] if search else asked_for
    first = (number - 1) * _ROWS
    values: dict[str, Any] = {
        "search": query.get("q", ""),
        "kind": kind,
        "kinds": sorted({row.entry.decision.kind for row in trail.rows}),
        "count": plural(len(found), "decision"),
        "left_out": trail.left_out,
        "unread": trail.unread,
        "complete": library.complete,
        "any": bool(trail.rows),
        "rows": [_row(row) for row in found[first : first + _ROWS]],
        "before": _address(query, number - 1) if number > 1 else "",
        "next": _address(query, number + 1) if len(found) > first + _ROWS else "",
    }
    return frame.page("audit.html.j2", values)


def _words(row: Decided) -> str:
    made = row.entry.decision
    return " ".join((row.run.name, kind_words(row.entry), made.by, made.reason))


def _row(row: Decided) -> dict[str, Any]:
    made, address = row.entry.decision, quote(row.run.address)
    number = made.data.get("wanted") if made.kind == "held" else made.best_iteration
    return {
        "at": moment(made.at),
        "loop": row.run.name,
        "address": f"{address}/decide" if row.run.kind == "loop" else address,
        "kind": kind_words(row.entry),
        "waits": row.waits,
        "iteration": number,
        "iteration_address": f"{address}/iterations/{number}" if number or row.run.kind == "loop" else "",
        "by": made.by or UNKNOWN,
        "reason": made.reason or UNKNOWN,
    }


def _address(query: Mapping[str, str], page: int) -> str:
    return "?" + urlencode({**{name: query[name] for name in ("q", "kind") if query.get(name)}, "page": page})
