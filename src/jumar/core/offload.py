"""Calls on an executor that may be elsewhere: their results in order, and errors that a person can use."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import CancelledError, Executor, Future
from concurrent.futures import TimeoutError as NotYetError
from typing import Any, Final, Protocol, TypeVar

from jumar.core.text import escape
from jumar.errors import JumarError

_POLL_SECONDS: Final = 0.2
_WAITING: Final = 32
Given = TypeVar("Given")
Result = TypeVar("Result")


class ExecutorError(JumarError):
    """An executor broke, or raised what is no error of jumar's."""


class Submits(Protocol):
    """What is needed of an executor."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]: ...


def as_executor_error(error: Exception) -> JumarError:
    """Return an error that a person can use, for whatever an executor or the way to it raised."""
    if isinstance(error, JumarError):
        return error
    lost = "it was taken back, as when a scheduler is gone" if isinstance(error, CancelledError) else "no more is known"
    reason = " ".join(str(error).split()) or lost
    return ExecutorError(f"it could not be run by the executor: {type(error).__name__}: {escape(reason)}")


def in_order(
    executor: Executor | Submits,
    function: Callable[[Given], Result],
    calls: Iterable[Given],
    halted: Callable[[], bool] = lambda: False,
) -> Generator[Result]:
    """Yield ``function`` of each of ``calls``, in their order, at most 32 of them handed over at a time.

    Errors: :class:`ExecutorError` for whatever the executor raises; KeyboardInterrupt once ``halted``.
    """
    waiting: deque[Future[Result]] = deque()
    try:
        for call in calls:
            waiting.append(_submitted(executor, function, call))
            if len(waiting) > _WAITING:
                yield _result(waiting.popleft(), halted)
        while waiting:
            yield _result(waiting.popleft(), halted)
    finally:
        for future in waiting:
            future.cancel()


def _submitted(executor: Executor | Submits, function: Callable[..., Any], call: object) -> Future[Any]:
    try:
        return executor.submit(function, call)
    except Exception as error:  # an executor that broke meanwhile raises what it likes
        raise as_executor_error(error) from error


def _result(future: Future[Any], halted: Callable[[], bool]) -> Any:
    while True:
        if halted():
            future.cancel()
            raise KeyboardInterrupt
        try:
            return future.result(timeout=_POLL_SECONDS)
        except NotYetError as error:
            if future.done():  # it is what the call itself raised
                raise as_executor_error(error) from error
        except Exception as error:  # as above
            raise as_executor_error(error) from error
