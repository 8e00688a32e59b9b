"""``coverage``: the share of lines that tests execute, from a report of coverage.py (XML, JSON), of Cobertura's kind, or lcov."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import cast

from jumar.core.files import UnreadableFileError
from jumar.loop.checks.runners import parse_xml
from jumar.loop.scorers.reports import report_builtin
from jumar.processes.usage import ScoreValue


def count_lines(content: bytes) -> tuple[int, int]:
    """Return how many lines are covered and how many there are.

    XML: ``lines-covered`` and ``lines-valid`` of the root, else its ``line`` elements are counted. JSON:
    ``totals.covered_lines`` and ``totals.num_statements``. lcov: ``LH`` and ``LF``, else the ``DA`` records. Errors:
    :class:`jumar.processes.written_files.UnreadableFileError`.
    """
    start = content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    readers: dict[bytes, Callable[[bytes], tuple[int, int]]] = {b"<": _from_xml, b"{": _from_json}
    covered, valid = readers.get(start, _from_lcov)(content)
    if not 0 <= covered <= valid:
        raise UnreadableFileError(f"it counts {covered} covered lines of {valid}")
    return covered, valid


def _from_xml(content: bytes) -> tuple[int, int]:
    root = parse_xml(content)
    covered, valid = root.get("lines-covered", ""), root.get("lines-valid", "")
    if covered.isdecimal() and valid.isdecimal():
        return int(covered), int(valid)
    # methods repeat the lines of their class
    hits = [line.get("hits", "0") != "0" for owner in root.iter("class") for line in owner.iterfind("lines/line")]
    if not hits:
        raise UnreadableFileError("it has no line counts: not a coverage report in XML")
    return sum(hits), len(hits)


def _from_json(content: bytes) -> tuple[int, int]:
    try:
        parsed: object = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UnreadableFileError("it is not readable as JSON") from error
    totals = cast("dict[str, object]", parsed).get("totals")
    if isinstance(totals, dict):
        values = cast("dict[str, object]", totals)
        covered, valid = values.get("covered_lines"), values.get("num_statements")
        if _is_count(covered) and _is_count(valid):
            return cast("int", covered), cast("int", valid)
    raise UnreadableFileError("it has no totals.covered_lines and totals.num_statements: not a report of coverage.py")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < math.inf


def _from_lcov(content: bytes) -> tuple[int, int]:
    sums = {"LH": 0, "LF": 0}
    hits = lines = 0
    seen = False
    for line in content.decode("utf-8", "replace").splitlines():
        name, _, value = line.partition(":")
        number = value.partition(",")[2].partition(",")[0] if name == "DA" else value
        if name not in {"LH", "LF", "DA"} or not number.strip().lstrip("-").isdecimal():
            continue
        seen = True
        if name == "DA":
            lines += 1
            hits += int(number) > 0
        else:
            sums[name] += int(number)
    if not seen:
        raise UnreadableFileError("it is neither XML nor JSON nor lcov")
    return (sums["LH"], sums["LF"]) if sums["LF"] else (hits, lines)


def coverage_score(contents: list[bytes]) -> ScoreValue:
    """Return covered ÷ all lines over all files; invalid when there are no lines to cover."""
    counts = [count_lines(content) for content in contents]
    covered, valid = sum(count[0] for count in counts), sum(count[1] for count in counts)
    if valid == 0:
        return ScoreValue(score=None, invalid="the report has no lines to cover")
    return ScoreValue(score=covered / valid, reason=f"{covered:,} of {valid:,} lines covered")


COVERAGE = report_builtin("coverage", coverage_score, dimension="coverage")
