"""Attempts read quickly are those that the slow way reads, and what is damaged says so as before."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jumar.errors import FormatTooNewError, StoreDamagedError
from jumar.loop.store.layout import LoopPaths
from jumar.loop.store.quick_attempts import read_light_attempt
from jumar.loop.store.reading import light, read_attempt
from jumar.model.attempts import OUTCOMES, PURPOSES, AttemptEnd, AttemptStart
from jumar.model.records import FAILURES, Usage

words = st.sampled_from(["", "a", "é\n"])
counts = st.none() | st.integers(0, 10**15)
amounts = st.none() | st.integers(0, 5) | st.floats(0, 10, allow_nan=False)
usages = st.builds(
    Usage,
    tokens_used=counts,
    token_cost_usd=amounts,
    model=st.none() | words,
    completed=st.none() | st.booleans(),
    blocked=st.none() | words,
    retry_after=amounts,
)
starts = st.builds(
    AttemptStart,
    number=st.just(7),
    iteration=st.integers(0, 9),
    parent=counts,
    nonce=words,
    started_at=words,
    purpose=st.sampled_from(PURPOSES),
    batch=counts,
    candidate=counts,
    reserve_cost_usd=amounts,
    reserve_tokens=counts,
)
ends = st.builds(
    AttemptEnd,
    outcome=st.sampled_from(OUTCOMES),
    seconds=amounts,
    ended_at=words,
    exit_code=st.none() | st.integers(-11, 255),
    detail=words,
    output_tail=words,
    usage=st.just(Usage()) | usages,
    commits=st.lists(words, max_size=2).map(tuple),
    notes=st.lists(words, max_size=1).map(tuple),
    known_cost_usd=amounts,
    printed=st.none() | st.booleans(),
    failure=st.none() | st.sampled_from(FAILURES),
)
names = st.sampled_from([*AttemptStart.__dataclass_fields__, *AttemptEnd.__dataclass_fields__, "format"])
wrong = st.sampled_from([None, True, "x", -1, 2.5, [], {}, [1], 10**400, float("nan"), float("inf"), 99])


def read(function: Any, paths: LoopPaths, *, ended: bool) -> object:
    try:
        return function(paths, 7, ended=ended)
    except (StoreDamagedError, FormatTooNewError) as error:
        return type(error), str(error)


@given(start=starts, end=st.none() | ends, damage=st.none() | st.tuples(names, wrong), cut=st.booleans())
def test_the_quick_way_reads_what_the_slow_way_reads(
    start: AttemptStart, end: AttemptEnd | None, damage: tuple[str, Any] | None, cut: bool
) -> None:
    with tempfile.TemporaryDirectory() as place:
        paths = LoopPaths(Path(place))
        paths.attempts.mkdir()
        for path, part in ((paths.attempt_start(7), start), (paths.attempt_end(7), end)):
            if part is None:
                continue
            data = part.to_json()
            if damage is not None and damage[0] in data:
                data[damage[0]] = damage[1]
            text = json.dumps(data)
            path.write_text(text[: len(text) // 2] if cut and damage is not None else text)

        def slowly(paths: LoopPaths, number: int, *, ended: bool) -> object:
            return light(read_attempt(paths, number, ended=ended))

        ended = end is not None
        assert read(slowly, paths, ended=ended) == read(read_light_attempt, paths, ended=ended)
