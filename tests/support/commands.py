"""The command line in this process: quick, with both streams kept apart and as real text streams over bytes."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from jumar.cli.application import run_application
from jumar.loop.tracker import BestOutputTracker

CONTROL = {chr(code) for code in [*range(32), 127, *range(0x80, 0xA0)]} - {"\n", "\t"}


@dataclass(frozen=True)
class Called:
    code: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """What is on stdout without line breaks: sentences are wrapped."""
        return " ".join(self.out.split())

    @property
    def document(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)


def unwrapped(text: str) -> str:
    """Return what a command printed with each note and error on one line: they are wrapped below themselves."""
    notes = re.sub(r"(?m)^note      .*(?:\n {10}\S.*)+", lambda found: re.sub(r"\n +", " ", found[0]), text)
    return re.sub(r"\n {7}(?=\S)", " ", notes) if "jumar: " in text else notes


class _Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def call(*arguments: object, terminal: bool = False, encoding: str = "utf-8", check: int | None = None) -> Called:
    """Run ``jumar ARGUMENTS`` here; ``terminal`` makes stdout say that it is one."""
    kind = _Terminal if terminal else io.TextIOWrapper
    out, err = kind(io.BytesIO(), encoding=encoding), io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    with mock.patch.object(sys, "stdout", out), mock.patch.object(sys, "stderr", err):
        code = run_application([str(argument) for argument in arguments])
        out.flush()
        err.flush()
    printed, told = out.buffer.getvalue().decode(encoding), err.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]
    called = Called(code, unwrapped(printed), unwrapped(told))
    if check is not None:
        assert check == called.code, called
    return called


def call_json(*arguments: object, check: int = 0) -> Any:
    """Run with ``--json`` and return the document; stderr stays free for messages."""
    command, *rest = arguments
    return call(command, "--json", *rest, check=check).document


def record(
    scores: Sequence[float | Mapping[str, Any]], *, loop: str = "t", root: Path | None = None, start: int = 1, **options: Any
) -> BestOutputTracker:
    """Record a tracker's loop below ``root`` (``.jumar``): each score of 0–1 is one dimension, or a mapping of what to record."""
    directory = (root or Path(".jumar")) / "loops" / loop
    weights = {"validation": 1.0, "completeness": 0.0, "correctness": 0.0, "readability": 0.0, "efficiency": 0.0}
    tracker = BestOutputTracker(loop, storage_path=directory, quality_weights=weights, **options)
    for number, score in enumerate(scores, start=start):
        given: dict[str, Any] = dict(score) if isinstance(score, Mapping) else {"score": score}
        text = Path(given.pop("file", "text.md"))
        text.write_text(given.pop("text", f"pass {number}\n"))
        tracker.record_iteration(
            iteration_number=number,
            dimensions={"validation": given.pop("score")},
            artifacts=[str(text)],
            **{"verification_status": "passed", **given},
        )
    tracker.close()
    return tracker
