"""Tells people how a run of a loop ended, through apprise. Needs the extra ``notify``.

One message at the end of a run: which loop, what came of it, why it ended, what to do next. It is sent when the loop is over and
its locks are released, so that a service that is away or slow costs the loop nothing and the person at most :data:`PATIENCE`.
The addresses hold tokens: what is said of one is its service and its place in ``[notify] urls``, never the address.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from jumar.core.lazy import need_extra
from jumar.core.redaction import current
from jumar.core.text import cut, escape, escape_block
from jumar.errors import ConfigError, JumarError, LockedError
from jumar.loop.engine.outcome import LoopOutcome
from jumar.loop.report.ending import KEPT, Situation, result, why
from jumar.loop.report.read import load_report
from jumar.loop.report.spending import going_on
from jumar.model.selection import LIMIT_REASONS, REQUESTED_REASONS, EndKind

if TYPE_CHECKING:
    from jumar.loop.store.loop_store import LoopStore

PATIENCE: Final = 15.0
"""Seconds that all services together get; one that is not done by then is left behind."""

_LONGEST: Final = 500  # characters of a line
_HEADS: Final[dict[EndKind, str]] = {
    "end": "has ended",
    "limit": "has reached a limit",
    "failure": "failed",
    "needs_person": "needs you",
}


@dataclass(frozen=True, slots=True)
class Message:
    """What is sent: plain text without control characters or known secrets."""

    kind: EndKind
    title: str
    body: str


class Notifier:
    """Sends messages to ``urls``, of the kinds in ``on``. Errors: :class:`ConfigError` for one that apprise cannot read."""

    def __init__(self, urls: Sequence[str], on: Collection[EndKind]) -> None:
        need_extra("notify", "[notify]", "apprise")
        import apprise

        library: Any = apprise
        log = logging.getLogger("apprise")
        if not log.hasHandlers():  # then Python itself prints what is a warning, and that may name an address
            log.addHandler(logging.NullHandler())
        asset = library.AppriseAsset(app_id="jumar", app_desc="jumar", app_url="")
        self._on = frozenset(on)
        self._services: list[tuple[str, Callable[[Message], bool]]] = []
        for place, url in enumerate(urls, 1):
            service = library.Apprise.instantiate(url, asset=asset)
            if service is None:
                raise ConfigError(
                    f"[notify] urls: apprise cannot read address {place} of {len(urls)} (not shown: it may hold a token); "
                    "github.com/caronc/apprise/wiki has how each service's is written"
                )
            self._services.append((f"{service.service_name} (address {place})", _sender(library, service)))

    @property
    def names(self) -> list[str]:
        """The services, without their addresses."""
        return [escape(name) for name, _ in self._services]

    def tell(self, store: LoopStore, outcome: LoopOutcome | BaseException) -> str | None:
        """Send what is to be told of the end of a run; return what did not arrive, None where all did. Raises nothing."""
        try:
            message = message_of(store, outcome)
        except Exception as error:  # noqa: BLE001 - the loop is over: nothing that goes wrong here takes its result away
            return f"[notify]: nothing was sent: {escape(f'{type(error).__name__}: {error}')}"
        return None if message is None or message.kind not in self._on else self.send(message)

    def send(self, message: Message) -> str | None:
        """Send ``message``; return which services did not take it in time, None when all did."""
        took: set[str] = set()

        def hand(name: str, send: Callable[[Message], bool]) -> None:
            if send(message):
                took.add(name)

        # daemons: a service that never answers must not keep the process
        threads = [threading.Thread(target=hand, args=service, daemon=True) for service in self._services]
        ends = time.monotonic() + PATIENCE
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, ends - time.monotonic()))
        missing = [escape(name) for name, _ in self._services if name not in took]
        return f"[notify]: no message reached {', '.join(missing)}; the loop is not affected" if missing else None


def _sender(library: Any, service: Any) -> Callable[[Message], bool]:
    """Return what asks one service by itself: apprise's own queue would keep the process until the last one has answered."""

    def send(message: Message) -> bool:
        kinds, text = library.NotifyType, library.NotifyFormat.TEXT
        kind = {"end": kinds.SUCCESS, "limit": kinds.WARNING}.get(message.kind, kinds.FAILURE)
        try:
            return bool(service.notify(body=message.body, title=message.title, notify_type=kind, body_format=text))
        except Exception:  # noqa: BLE001 - whatever a service's plug-in raises: it may name the address, and is told of by its place
            return False

    return send


def message_of(store: LoopStore, outcome: LoopOutcome | BaseException) -> Message | None:
    """Return what to tell of the end of a run; None where nothing ran, and where somebody stopped it, who knows."""
    if isinstance(outcome, LockedError | KeyboardInterrupt):
        return None
    if not isinstance(outcome, LoopOutcome):
        known = isinstance(outcome, JumarError)
        ended = f"Ended: {outcome if known else f'{type(outcome).__name__}: {outcome}'}"
        return _message(store, "failure", [ended], "jumar run, once that is mended")
    if outcome.already_finished or outcome.stop.reason in REQUESTED_REASONS:
        return None
    report = load_report(store, stop=outcome.stop)
    place = "applied" if outcome.applied is not None else "refused" if outcome.apply_problem else "nowhere"
    situation = Situation(state="finished", place=place, stop=outcome.stop, problem=outcome.apply_problem or "")
    lines = [*result(report, situation), *why(report, situation)]
    return _message(store, _kind(outcome), lines, going_on(outcome.stop.reason, outcome.spend, report.passes))


def _kind(outcome: LoopOutcome) -> EndKind:
    if outcome.stop.reason == "blocked" or outcome.apply_problem is not None:
        return "needs_person"
    if outcome.stop.reason == "consecutive_failures" or outcome.selection is None:
        return "failure"
    return "limit" if outcome.stop.reason in LIMIT_REASONS else "end"


def _message(store: LoopStore, kind: EndKind, lines: Sequence[str], resume: str | None) -> Message:
    following = [] if resume is None else [f"Resume: {resume}"]
    where = "" if store.workdir is None else f"In {store.workdir}: "
    lines = [*lines, *following, f"{where}jumar show {store.loop_id}, jumar report {store.loop_id} --open"]
    body = "\n".join(cut(current().redact(escape_block(line.replace(KEPT, " "))), _LONGEST) for line in lines)
    return Message(kind, f"jumar: {escape(store.loop_id)} {_HEADS[kind]}", body)
