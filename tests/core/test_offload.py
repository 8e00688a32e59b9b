"""Calls on an executor: in order, a few at a time, with errors for people, and never waited for once halted."""

from __future__ import annotations

from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any

import pytest

from jumar.core.offload import in_order
from jumar.errors import ItemError, JumarError


class Deaf:
    """Takes what it is given and never does it."""

    def __init__(self) -> None:
        self.taken: list[Future[Any]] = []

    def submit(self, *_args: Any, **_keywords: Any) -> Future[Any]:
        self.taken.append(Future())
        return self.taken[-1]


def fails(error: Exception) -> None:
    raise error


def test_results_come_in_the_order_of_the_calls() -> None:
    with ThreadPoolExecutor(3) as pool:
        assert [number * number for number in range(200)] == list(in_order(pool, lambda number: number * number, range(200)))


@pytest.mark.parametrize("error", [CancelledError(), TimeoutError("too long"), ValueError("2\nlines"), OSError()])
def test_whatever_is_raised_elsewhere_is_an_error_for_people(error: Exception) -> None:
    with ThreadPoolExecutor(1) as pool, pytest.raises(JumarError) as told:
        list(in_order(pool, fails, [error]))
    assert f"it could not be run by the executor: {type(error).__name__}: " in str(told.value)


def test_our_own_errors_stay_as_they_are() -> None:
    with ThreadPoolExecutor(1) as pool, pytest.raises(ItemError, match="line 3"):
        list(in_order(pool, fails, [ItemError("line 3")]))


def test_an_executor_that_is_gone_is_an_error_for_people() -> None:
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(JumarError, match="RuntimeError: cannot schedule new futures after shutdown"):
        list(in_order(pool, str, [1]))


def test_halted_it_waits_for_nobody_and_takes_back_what_waits() -> None:
    deaf = Deaf()
    with pytest.raises(KeyboardInterrupt):
        list(in_order(deaf, str, range(100), lambda: len(deaf.taken) > 5))
    assert 33 == len(deaf.taken)
    assert all(future.cancelled() for future in deaf.taken)
