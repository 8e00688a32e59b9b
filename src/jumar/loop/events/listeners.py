"""Several listeners as one: each is shielded from the others, and the loop from all of them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from jumar.core.text import escape
from jumar.loop.events.events import Event, Listener, Notice

__all__ = ["Hook", "Listeners"]

_log = logging.getLogger("jumar.loop")
_SLOW: Final = 1.0  # seconds for one event, after which the person is told what the loop waited for


@dataclass(frozen=True, slots=True)
class Hook:
    """A listener of the person's own, with the name that messages call it by. What it returns is ignored."""

    name: str
    function: Callable[[Event], object]

    def __call__(self, event: Event) -> None:
        self.function(event)


class Listeners:
    """Hands each event to every listener, in their order.

    One that raises, whatever it is but ``KeyboardInterrupt``, is told of once, in a :class:`Notice` to the others; its traceback
    is logged each time, at the level debug. It goes on being called, because the next event may be one that it can take. One that
    needs more than a second for an event is told of once too. Nothing that it raises reaches the loop; one that never returns
    holds the loop up, as it runs in its thread.
    """

    def __init__(self, listeners: Iterable[Listener], *, time_source: Callable[[], float] = time.perf_counter) -> None:
        self._listeners = tuple(listeners)
        self._time = time_source
        self._told: set[tuple[int, str]] = set()

    def __call__(self, event: Event) -> None:
        """Hand ``event`` to all."""
        news: list[tuple[int, str]] = []
        for index, listener in enumerate(self._listeners):
            began = self._time()
            problem = self._hand(listener, event)
            seconds = self._time() - began
            if problem is not None and self._is_first(index, "failed"):
                news.append((index, f"{_name(listener)} failed and is passed over: {problem}"))
            elif seconds > _SLOW and self._is_first(index, "slow"):
                news.append(
                    (index, f"{_name(listener)} took {seconds:.1f} s for one event ({event.type}); the loop waits for it")
                )
        for index, message in news:
            for other, listener in enumerate(self._listeners):
                if other != index:
                    self._hand(listener, Notice(message=message))

    def _is_first(self, index: int, what: str) -> bool:
        first = (index, what) not in self._told
        self._told.add((index, what))
        return first

    def _hand(self, listener: Listener, event: Event) -> str | None:
        """Return what the listener raised, as one line; None when it took the event."""
        try:
            listener(event)
        except KeyboardInterrupt:
            raise  # a person's, where a caller handles no signals
        except BaseException as error:  # noqa: BLE001 - a panic of an extension module is no Exception, and not the loop's either
            _log.debug("jumar.listener_failed: %s", _name(listener), exc_info=True)
            return escape(f"{type(error).__name__}: {error}")
        return None


def _name(listener: Listener) -> str:
    if isinstance(listener, Hook):
        return f"the hook {escape(listener.name)}"
    return f"the listener {getattr(listener, '__qualname__', type(listener).__name__)}"
