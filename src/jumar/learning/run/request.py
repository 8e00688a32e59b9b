"""What ``jumar learn`` and ``jumar prove`` are asked and give, and ``request.json``: proving needs the folder only."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Literal, cast

from jumar.core.files import as_write_error, make_directory, read_bytes, replace_file
from jumar.core.redaction import current
from jumar.core.text import escape
from jumar.errors import ConfigError, FormatTooNewError, StoreDamagedError
from jumar.judging.asking.settings import JudgeConfig
from jumar.judging.asking.summary import JudgeInterruptedError
from jumar.judging.history import FEWEST_ITERATIONS
from jumar.learning.material import Profile
from jumar.learning.proposals import ProposerName
from jumar.loop.engine.outcome import LoopOutcome

LOOP: Final = "learn"
ROOT: Final = ".jumar"
RESULT: Final = "result.json"
SEALED_TESTS: Final = "sealed_tests.json"
"""Tests of single proposals on the held-out items, of all looks; their ``iteration`` is the number of the look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnRequest:
    """A learning run into ``output``.

    ``heldout`` is the share of groups held out. ``patterns`` is the set to begin with, None for none. ``proposer`` says who
    proposes: statistics of ``terms``, or the model of the ``judge``. Before ``min_iterations``
    a run is not converged, whatever it found. ``robust``: points are fitted so that making an item worse or longer raises
    no score.
    """

    items: Path
    output: Path
    judge: JudgeConfig
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    patterns: Path | None = None
    rubric: str | None = None
    heldout: float = 0.4
    seed: int = 0
    max_iterations: int = 10
    min_iterations: int = FEWEST_ITERATIONS
    profile: Profile = "evidence"
    proposer: ProposerName = "terms"
    robust: bool = False


def prove_request(request: LearnRequest) -> ProveRequest:
    """Return what `jumar prove` is asked of the same run."""
    return ProveRequest(
        **{field.name: getattr(request, field.name) for field in fields(ProveRequest) if hasattr(request, field.name)}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnResult:
    """How a run ended. ``summary`` is what ``result.json`` holds; None when the run was stopped before there was a verdict.

    ``ended`` says in words why there was no further iteration, empty for what the loop says. ``cut_off`` says how it was stopped
    while the held-out items were being judged, None when it was not.
    """

    output: Path
    outcome: LoopOutcome
    summary: Mapping[str, Any] | None
    cut_off: Literal["interrupted", "terminated"] | None = None
    ended: str = ""

    @property
    def exit_code(self) -> int:
        """0 with a verdict, whichever; else the loop's own."""
        if self.cut_off is not None:
            return 128 + signal.SIGTERM if self.cut_off == "terminated" else JudgeInterruptedError.exit_code
        return 0 if self.summary is not None else self.outcome.exit_code

    def document(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        stop = {"stop_reason": self.outcome.stop.reason, "stop_detail": self.ended or self.outcome.stop.detail}
        shared = {**stop, "resumed": self.outcome.resumed, "output": str(self.output.absolute())}
        return {**(self.summary or {"verdict": None}), **shared}


REQUEST: Final = "request.json"
_FORMAT: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProveRequest:
    """What to prove: the set, the split and the verdicts of ``output``; with the judge and the items that it was learned from.

    ``extra_look`` allows one beyond the plan.
    """

    output: Path
    items: Path
    judge: JudgeConfig
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    rubric: str | None = None
    extra_look: bool = False


def remember(request: ProveRequest) -> None:
    """Write ``request.json``: what decides about items and verdicts, with absolute paths. Errors: StoreWriteError."""
    judge = request.judge
    document = {
        "format": _FORMAT,
        "items": str(request.items.absolute()),
        "fields": dict(request.fields),
        "rubric": _absolute(request.rubric),
        "judge": _absolute_judge(judge.spec),
        "repeat": judge.settings.repeat,
        "judge_scale": list(judge.settings.scale),
        "explain": judge.settings.explain,
        "max_tokens": judge.max_tokens,
        "cache": None if judge.cache is None else str(judge.cache.absolute()),
    }
    path = request.output / REQUEST
    with as_write_error("write", path):
        make_directory(request.output)
        replace_file(path, current().redact_bytes((json.dumps(document, indent=2) + "\n").encode()))


def recorded_options(known: Mapping[str, Any]) -> dict[str, Any]:
    """Return what :func:`recall` found, as options of the command line: the judge's, and the rubric."""
    if not known:
        return {}
    names = ("judge", "rubric", "max_tokens", "judge_scale")
    given = {name: known[name] for name in names if known.get(name) is not None}
    return {**given, "repeat": known.get("repeat"), "no_reasons": not known["explain"]}


def _absolute(rubric: str | None) -> str | None:
    return rubric if rubric in {None, "story", "text"} else str(Path(cast("str", rubric)).absolute())


def _absolute_judge(spec: str) -> str:
    """A recorded judge is a file, and proving starts in another directory than learning did."""
    kind, colon, rest = spec.strip().partition(":")
    return f"{kind}{colon}{Path(rest).absolute()}" if kind == "replay" and rest else spec


def recall(output: Path) -> dict[str, Any]:
    """Return what ``request.json`` holds, empty where there is none.

    Errors: :class:`jumar.errors.StoreDamagedError` that names the file and the way out, :class:`jumar.errors.FormatTooNewError`.
    """
    path = output / REQUEST
    try:
        found = json.loads(read_bytes(path))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{escape(str(path))} cannot be read ({error.strerror})") from error
    except ValueError:
        found = None
    known = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    version = known.get("format")
    if isinstance(version, int) and version > _FORMAT:
        raise FormatTooNewError(f"{escape(str(path))}: format {version}; this jumar reads up to {_FORMAT}, update it")
    types = {"items": str, "fields": dict, "judge": str, "judge_scale": list, "max_tokens": int, "explain": bool}
    wrong = [name for name, kind in types.items() if not isinstance(known.get(name), kind)]
    if wrong:
        raise StoreDamagedError(f"{escape(str(path))} is damaged ('{wrong[0]}'); move it away, and give --items and --judge")
    return known
