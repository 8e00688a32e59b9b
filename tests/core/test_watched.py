"""A sampling profiler, a debugger and a Dask worker hold frames, and with them what is in their variables, for a while."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Generator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from jumar.core.codec import encode
from jumar.core.marks import marked, origin
from jumar.loop.snapshots.objects import Objects


@pytest.fixture
def frames_that_stay() -> Generator[list[FrameType]]:
    held: list[FrameType] = []

    def hold(frame: FrameType, _event: str, _arg: Any) -> None:
        held.append(frame)

    sys.setprofile(hold)
    try:
        yield held
    finally:
        sys.setprofile(None)


def test_a_record_is_marked_while_its_frames_are_held(frames_that_stay: list[FrameType]) -> None:
    data = encode({"format": 1, "name": "x" * 100_000}, sealed=True, place="here")
    again = marked(b'{\n  "a": 1\n}\n', "there")
    sys.setprofile(None)
    assert ("ours", "ours") == (origin(data, "here"), origin(again, "there"))
    assert len(frames_that_stay) > 10


def test_contents_are_packed_while_frames_are_held(tmp_path: Path, frames_that_stay: list[FrameType]) -> None:
    contents = [f"{number}\n".encode() * 8_000 for number in range(100)]
    with Objects(tmp_path / "objects").adding() as adding:
        adding.begin()
        for data in contents:
            adding.add(hashlib.sha256(data).hexdigest(), data)
        adding.finish()
    sys.setprofile(None)
    objects = Objects(tmp_path / "objects")
    objects.refresh()
    assert all(objects.is_sound(hashlib.sha256(data).hexdigest()) for data in contents)
    assert len(frames_that_stay) > 100
