"""Reading JUnit XML: which tests ran and which failed. The files come from a working directory that nobody vetted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final
from xml.etree import ElementTree as ET

from jumar.core.files import UnreadableFileError
from jumar.loop.checks.runners.suite import Outcome, SuiteRun, short_identity, worse

_BEGAN: Final = re.compile(rb"<testsuite\b[^>]*\btimestamp=\"([^\"]{10,40})\"")


class _NoDoctype(ET.TreeBuilder):
    """Refuses a document type: reports have none, and entities are what makes small XML files large."""

    def doctype(self, name: str, *_: str | None) -> None:
        raise UnreadableFileError(f"it declares a document type ({name}), which a report has no use for")


class _Cases(_NoDoctype):
    """Collects the test cases, each with its outcome, None for a module that pytest could not load, and forgets what is in them.

    A report of many failures is mostly tracebacks, and would fill memory ten times its size.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, Outcome | None]] = []

    def end(self, tag: str) -> ET.Element:
        element = super().end(tag)
        if _local(element) == "testcase":
            unloaded = any(child.get("message") == "collection failure" for child in element)
            self.found.append((_identity(element), None if unloaded else _outcome(element)))
            element.clear()
        return element


def parse_xml(content: bytes, builder: _NoDoctype | None = None) -> ET.Element:
    """Return the root element. Errors: :class:`UnreadableFileError` for what is not well-formed or has a document type."""
    parser = ET.XMLParser(target=builder or _NoDoctype())  # noqa: S314 - no entities without a document type, and size is capped
    try:
        parser.feed(content)
        return parser.close()
    except (ET.ParseError, ValueError, LookupError) as error:  # LookupError: an encoding that does not exist
        raise UnreadableFileError(f"not readable as XML ({error})") from error


def read_junit(contents: Iterable[bytes]) -> SuiteRun:
    """Read the reports of one run: ``testcase`` elements anywhere below the root, as every producer writes them.

    Each ``testcase`` is counted. In ``outcomes`` an identity, ``classname::name``, stands once, failed if it ever failed: a test
    that ran again, or failed and then failed to be torn down. No report gives a run of nothing. Errors: as :func:`parse_xml`.
    """
    counts: Counter[Outcome] = Counter()
    outcomes: dict[str, Outcome] = {}
    unloaded = 0
    for content in contents:
        cases = _Cases()
        parse_xml(content, cases)
        for name, outcome in cases.found:
            if outcome is None:
                unloaded += 1
                continue
            counts[outcome] += 1
            outcomes[name] = worse(outcomes.get(name), outcome)
    return SuiteRun(
        runner="JUnit",
        passed=counts["passed"],
        failed=counts["failed"],
        skipped=counts["skipped"],
        outcomes=outcomes,
        collection_errors=unloaded,
    )


def read_sessions(reports: Sequence[bytes]) -> list[SuiteRun]:
    """Read what pytest wrote at the end of each session, in that order; what cannot be read is left out.

    A session that began before one that ended earlier ran around it: the other was a test's, as of a plugin's, and is left out.
    """
    runs: list[SuiteRun] = []
    earliest = float("inf")
    for report in reversed(reports):
        began = _began(report)
        if began is None or began <= earliest:
            with suppress(UnreadableFileError):
                runs.append(read_junit([report]))
        earliest = earliest if began is None else min(earliest, began)
    return runs[::-1]


def _began(report: bytes) -> float | None:
    """Return when a session began, in seconds since 1970; None where the report does not say."""
    found = _BEGAN.search(report, 0, 4_096)
    with suppress(ValueError, OverflowError, OSError):
        return None if found is None else datetime.fromisoformat(found[1].decode()).timestamp()
    return None


def _outcome(case: ET.Element) -> Outcome:
    results = {_local(child) for child in case}
    if results & {"failure", "error"}:
        return "failed"
    return "skipped" if "skipped" in results else "passed"


def _local(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def _identity(case: ET.Element) -> str:
    name = case.get("name", "")
    scope = case.get("classname") or case.get("file") or ""
    return short_identity(f"{scope}::{name}" if scope else name)
