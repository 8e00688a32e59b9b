"""Node's own test runner: the tree of its ``spec`` reporter, and its ``dot`` reporter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from jumar.loop.checks.runners.suite import Outcome, SuiteRun, numbered, short_identity

_OPENED: Final = re.compile(r"( {0,64})▶ (.+)")
_ENDED: Final = re.compile(r"( {0,64})([✔✖﹣⚠▶]) (.+?) \([\d.]{1,20}ms\)( # (?:SKIP|TODO)(?: .*)?)?")
_DOTS: Final = re.compile(r"[.X]+")
_ASKED: Final = re.compile(r"--test-reporter[= ]['\"]?dot\b")


def spec_tree(body: str) -> Iterator[Mapping[str, Outcome]]:
    """Yield what the tree says: its leaves, then all: a test with subtests counts, a suite does not, and they look alike."""
    path: list[str] = []
    failing: list[bool] = []
    ended: list[tuple[str, Outcome, bool]] = []
    before = ""
    for line in body.split("\n"):
        found = _ENDED.fullmatch(line)
        repeated, before = before.startswith("test at "), line  # a run tells its failures again after its closing lines
        if repeated:
            continue
        opened = _OPENED.fullmatch(line) if found is None else None
        if opened is not None:
            depth = min(len(opened[1]) // 2, len(path))
            path[depth:], failing[depth:] = [_below(path[:depth], opened[2])], [False]
        if found is None:
            continue
        depth = min(len(found[1]) // 2, len(path))
        name = _below(path[:depth], found[3])
        parent = path[depth : depth + 1] == [name]
        failed = found[2] == "✖" or (found[2] == "▶" and parent and failing[depth])  # Node 18 does not say how a parent ended
        ended.append((name, "skipped" if found[4] else "failed" if failed else "passed", parent))
        del path[depth:], failing[depth:]
        failing[:] = [True] * depth if ended[-1][1] == "failed" else failing
    yield numbered((name, outcome) for name, outcome, parent in ended if not parent)
    yield numbered((name, outcome) for name, outcome, _ in ended)


def _below(path: list[str], name: str) -> str:
    return short_identity(f"{path[-1]} > {name}" if path else name)


def read_dots(output: str) -> list[SuiteRun]:
    """Return the run that an output of nothing but dots shows, failures told below; suites count as tests, and todo as it ended.

    Dots may be anything: read them only where no other runner spoke, and where the failures or a line that asks for this reporter
    (npm and make tell what they run) say whose they are.
    """
    body, failures, _ = output.partition("\nFailed tests:\n")
    lines = [line for line in body.split("\n") if line and not line.startswith("> ") and not _ASKED.search(line)]
    dots = "".join(line for line in lines if _DOTS.fullmatch(line))
    alone = len(dots) == sum(map(len, lines)) and _ASKED.search(body) is not None
    if not dots or not (alone or failures):
        return []
    return [SuiteRun(runner="node --test", passed=dots.count("."), failed=dots.count("X"), skipped=0)]
