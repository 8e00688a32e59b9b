"""TAP, the Test Anything Protocol, versions 12 to 14: ``1..3``, ``ok 1 - adds``, subtests, ``# SKIP``, ``# TODO``, ``Bail out!``.

Tests are the leaves: a point with subtests is counted by them, unless it fails although they all pass. Node's runner, which ends
with ``# tests 3`` … ``# duration_ms 9``, counts every point that is no suite, and its own counts hold. Several streams may follow
each other. Points without a plan or a version line are no TAP.

A number that comes again is noise when it is ok, and a failure when it is not; ok beyond the plan is noise. What cannot be told
apart is a test that prints a point that the plan has room for: it can stand for one that did not run, never for one that failed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from jumar.loop.checks.runners.suite import Outcome, SuiteRun, numbered

_POINT: Final = re.compile(r"(not )?ok(?: +(\d{1,9}))?(?: *- +| +|$)(.*)")
_NUMBERED: Final = re.compile(r" *(?:not )?ok +\d")
_PLAN: Final = re.compile(r"1\.\.(\d{1,9})(?: *#.*)?")
_VERSION: Final = re.compile(r"TAP version 1[234]")
_DIRECTIVE: Final = re.compile(r"(?:^|(?<!\\) )# *(?:(skip|todo)|time=[\d.]+m?s)", re.IGNORECASE)
_NODE: Final = re.compile(r"# (tests|pass|fail|cancelled|skipped|todo) (\d{1,9})")
_DEEPEST: Final = 32


@dataclass(slots=True)
class _Point:
    number: int | None
    outcome: Outcome
    name: str
    children: list[_Point] = field(default_factory=list["_Point"])
    suite: bool = False  # of Node's runner, which says so
    unloaded: bool = False  # a file that Node's runner could not load
    plan: int | None = None  # of the subtests in its braces


@dataclass(slots=True)
class _Plan:
    tests: int


@dataclass(slots=True)
class _Mark:
    """A version line, a bail-out, or a comment with a count of Node's runner."""

    kind: str
    count: int = 0


_Token = _Point | _Plan | _Mark


@dataclass(slots=True)
class _Stream:
    points: dict[int, _Point] = field(default_factory=dict[int, _Point])
    unloaded: int = 0  # files, which have the numbers of others
    plan: int | None = None
    version: bool = False
    bailed: bool = False
    node: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def complete(self) -> bool:
        return self.plan is not None and len(self.points) + self.unloaded >= self.plan

    def add(self, point: _Point) -> None:
        if point.unloaded:
            self.unloaded += 1
            return
        number = point.number or len(self.points) + 1
        beyond = self.plan is not None and number > self.plan
        if point.outcome == "failed" or not (beyond or number in self.points):
            self.points[number] = point


def read_tap(lines: Sequence[str]) -> list[SuiteRun]:
    """Return each stream, in order."""
    return [run for stream in _streams(list(_tokens(lines))) for run in _runs(stream)]


def _tokens(lines: Sequence[str]) -> Iterator[_Token]:
    """Yield what stands at the outermost level, with subtests inside their points.

    Where there are numbers, a line without one only begins with ok. A brace closes what has run all its plan; any other is
    noise, and what stays open ends with the next point beside it or above.
    """
    numbered = any(_NUMBERED.match(line) for line in lines)
    waiting: dict[int, list[_Point]] = {}  # points of a level whose parent comes after them, or is still open
    opened: dict[int, _Point] = {}
    latest: _Point | None = None
    yaml = latest_indent = -1
    for line in lines:
        content = line.lstrip(" ")
        indent = len(line) - len(content)
        if yaml >= 0 and (not content or indent >= yaml):
            if latest is not None and indent == yaml:
                latest.suite |= content == "type: 'suite'"
                latest.unloaded |= content.startswith("exitCode: ")
                yaml = -1 if content == "..." else yaml
            continue
        yaml = -1
        if content == "---" and latest is not None and indent in {latest_indent + 2, latest_indent + 4}:
            yaml = indent
            continue
        level, odd = divmod(indent, 4)
        if odd or level > _DEEPEST or not content:
            continue
        if content == "}" and level in opened:
            plan = opened[level].plan
            if plan is not None and len(waiting.get(level + 1, ())) >= plan:
                _close(level, opened, waiting)
            continue
        point = _point(content)
        if point is not None and point.number is None and numbered:
            continue
        if point is None:
            if level == 0:
                yield from _outer(content)
            elif level - 1 in opened and (found := _PLAN.fullmatch(content)) and opened[level - 1].plan is None:
                opened[level - 1].plan = int(found[1])
            continue
        _close(level, opened, waiting)
        latest, latest_indent = point, indent
        children = waiting.pop(level + 1, [])
        if content.endswith(" {"):
            opened[level] = point
        else:
            point.children = children
        if level == 0:
            yield point
        else:
            waiting.setdefault(level, []).append(point)
    _close(0, opened, waiting)


def _close(level: int, opened: dict[int, _Point], waiting: dict[int, list[_Point]]) -> None:
    """Give each point that is open at ``level`` or deeper the subtests that wait for it."""
    for deeper in sorted((at for at in opened if at >= level), reverse=True):
        opened.pop(deeper).children = waiting.pop(deeper + 1, [])


def _point(content: str) -> _Point | None:
    found = _POINT.fullmatch(content)
    if found is None:
        return None
    name = found[3].removesuffix(" {")
    directive = _DIRECTIVE.search(name)
    outcome: Outcome = "failed" if found[1] else "passed"
    if directive is not None:
        name = name[: directive.start()]
        outcome = "skipped" if directive[1] else outcome
    name = re.sub(r"\\([#\\])", r"\1", name).strip()
    return _Point(number=None if found[2] is None else int(found[2]), outcome=outcome, name=name)


def _outer(content: str) -> Iterator[_Token]:
    plan, count = _PLAN.fullmatch(content), _NODE.fullmatch(content)
    if plan is not None:
        yield _Plan(int(plan[1]))
    elif count is not None:
        yield _Mark(count[1], int(count[2]))
    elif _VERSION.fullmatch(content):
        yield _Mark("version")
    elif content.startswith("Bail out!"):
        yield _Mark("bail")


def _streams(tokens: Sequence[_Token]) -> list[_Stream]:
    streams = [_Stream()]
    following: list[int | None] = [None] * len(tokens)  # number of the next point: a stream begins at 1
    number: int | None = None
    for index in range(len(tokens) - 1, -1, -1):
        following[index] = number
        token = tokens[index]
        number = token.number if isinstance(token, _Point) else number
    for token, coming in zip(tokens, following, strict=True):
        stream = streams[-1]
        if _begins(token, stream, coming):
            streams.append(stream := _Stream())
        if isinstance(token, _Point):
            stream.add(token)
        elif isinstance(token, _Plan):
            stream.plan = token.tests if stream.plan is None else stream.plan
        elif token.kind == "version":
            stream.version = True
        elif token.kind == "bail":
            stream.bailed = True
        else:
            stream.node[token.kind] = token.count
    return streams


def _begins(token: _Token, stream: _Stream, coming: int | None) -> bool:
    if isinstance(token, _Point):
        return (
            token.number == 1
            and not token.unloaded
            and 1 in stream.points
            and (stream.complete or (stream.plan is None and coming == 2))
        )
    if isinstance(token, _Plan):
        return stream.plan is not None and coming in {1, None}
    return token.kind == "version" and bool(stream.points or stream.plan is not None) and coming in {1, None}


def _runs(stream: _Stream) -> Iterator[SuiteRun]:
    if stream.plan is None and not stream.version:
        return
    if not stream.points and not stream.unloaded and not stream.bailed and not stream.version and stream.plan != 0:
        return
    counts = stream.node
    node = len(counts) == 6 and sum(counts.values()) == 2 * counts["tests"]
    points = [
        point
        for number, point in sorted(stream.points.items())
        if stream.plan is None or number <= stream.plan or point.outcome == "failed"
    ]
    tests = list(_tests(points, node=node))
    tally = Counter(point.outcome for _, point in tests)
    passed = counts["pass"] if node else tally["passed"]
    failed = max(0, counts["fail"] + counts["cancelled"] - stream.unloaded) if node else tally["failed"]
    named = all(point.name or point.outcome == "skipped" for _, point in tests) and (passed, failed) == (
        tally["passed"],
        tally["failed"],
    )
    yield SuiteRun(
        runner="node --test" if node else "TAP",
        passed=passed,
        failed=failed,
        skipped=counts["skipped"] + counts["todo"] if node else tally["skipped"],
        outcomes=numbered((name, point.outcome) for name, point in tests if point.name) if named else None,
        cut_short=stream.bailed or stream.plan is None or len(stream.points) + stream.unloaded < stream.plan,
        collection_errors=stream.unloaded,
    )


def _tests(points: Iterable[_Point], *, node: bool, above: str = "") -> Iterator[tuple[str, _Point]]:
    for point in points:
        name = f"{above}{point.name}"
        yield from _tests(point.children, node=node, above=f"{name} > ")
        explained = point.outcome != "failed" or any(child.outcome == "failed" for child in point.children)
        if not point.suite if node else not (point.children and explained):
            yield name, point
