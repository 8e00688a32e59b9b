"""Reading JUnit XML: which tests ran and which failed. The files come from a work tree that nobody vetted."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final
from xml.etree import ElementTree as ET

from jumar.loop.workfiles import UnreadableFileError

__all__ = ["JUnitReport", "parse_junit", "parse_xml", "short_identity"]

_LONGEST: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class JUnitReport:
    """Counts of test cases, and the identities (``classname::name``) of those that failed or had an error, sorted."""

    total: int
    failed: int
    skipped: int
    failures: tuple[str, ...]


class _NoDoctype(ET.TreeBuilder):
    """Refuses a document type: reports have none, and entities are what makes small XML files large."""

    def doctype(self, name: str, *_: str | None) -> None:
        raise UnreadableFileError(f"it declares a document type ({name}), which a report has no use for")


def parse_xml(content: bytes) -> ET.Element:
    """Return the root element. Errors: :class:`UnreadableFileError` for what is not well-formed or has a document type."""
    parser = ET.XMLParser(target=_NoDoctype())  # noqa: S314 - no entities without a document type, and size is capped
    try:
        parser.feed(content)
        return parser.close()
    except (ET.ParseError, ValueError, LookupError) as error:  # LookupError: an encoding that does not exist
        raise UnreadableFileError(f"not readable as XML ({error})") from error


def parse_junit(content: bytes) -> JUnitReport:
    """Read one report: ``testcase`` elements anywhere below the root, as every producer writes them.

    A test that ran again (an equal identity) counts once for each run. Errors: as :func:`parse_xml`.
    """
    root = parse_xml(content)
    total = failed = skipped = 0
    failures: set[str] = set()
    for case in root.iter():
        if _local(case) != "testcase":
            continue
        total += 1
        results = {_local(child) for child in case}
        if results & {"failure", "error"}:
            failed += 1
            failures.add(_identity(case))
        elif "skipped" in results:
            skipped += 1
    return JUnitReport(total=total, failed=failed, skipped=skipped, failures=tuple(sorted(failures)))


def _local(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def _identity(case: ET.Element) -> str:
    name = case.get("name", "")
    scope = case.get("classname") or case.get("file") or ""
    return short_identity(f"{scope}::{name}" if scope else name)


def short_identity(text: str) -> str:
    """Return ``text``, or its beginning and a hash where it is long: parametrised tests may carry their data in their name."""
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST - 20]}…{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
