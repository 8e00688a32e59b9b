"""``go test``: each test under ``-v`` and ``-json``, only packages without: then a package is what passes or fails.

Tests are the leaves: one that has subtests is counted by them, unless it fails although they all pass. A test that began and
never ended failed. What cannot be told apart is an output that imitates a package's line; ``=== RUN`` has to come before
``--- PASS``, and a test that failed once stays failed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from jumar.loop.checks.runners.suite import Outcome, SuiteRun, short_identity, worse

# not at the start: a test may print without a line feed
_ENDED: Final = re.compile(r"--- (PASS|FAIL|SKIP): (\S+) \(\d{1,9}\.\d\ds\)$")
_PACKAGE: Final = re.compile(r"(ok  |FAIL)\t(\S+)\t(?:\d{1,9}\.\d{3}s|\(cached\))(?:\tcoverage: .*)?( \[no tests to run\])?")
_UNBUILT: Final = re.compile(r"FAIL\t(\S+) \[(?:build|setup) failed\]")
_OUTCOMES: Final[dict[str, Outcome]] = {"pass": "passed", "fail": "failed", "skip": "skipped"}


def read_go(lines: Sequence[str]) -> list[SuiteRun]:
    """Return all packages as one run, or none."""
    reader = _Reader()
    for line in lines:
        reader.take(line)
    return reader.runs()


class _Reader:
    def __init__(self) -> None:
        self.packages: dict[str, dict[str, Outcome | None]] = {}  # None: it began
        self.verdicts: dict[str, Outcome] = {}  # of packages whose tests are not named
        self.unbuilt: set[str] = set()
        self.running: dict[str, Outcome | None] = {}  # under -v the package is named after its tests
        self.panicked = False

    def take(self, line: str) -> None:
        if line.startswith('{"'):
            self._event(line)
        elif line.startswith("=== RUN   "):
            self.running.setdefault(line[10:], None)
        elif line.startswith("panic: "):
            self.panicked = True
        elif line.startswith(("ok  \t", "FAIL\t")):
            self._package(line)
        elif "--- " in line:
            ended = _ENDED.search(line)
            if ended is not None and ended[2] in self.running:
                self.running[ended[2]] = worse(self.running[ended[2]], _OUTCOMES[ended[1].lower()])

    def _package(self, line: str) -> None:
        unbuilt = _UNBUILT.fullmatch(line)
        if unbuilt is not None:
            self.unbuilt.add(unbuilt[1])
        found = _PACKAGE.fullmatch(line)
        if found is None:
            return
        if self.running:
            self._named(found[2])
        elif found[3] is None:
            self.verdicts[found[2]] = worse(self.verdicts.get(found[2]), "passed" if found[1] == "ok  " else "failed")

    def _event(self, line: str) -> None:
        try:
            event: Any = json.loads(line)
        except (ValueError, RecursionError):
            return
        action, package, test = (event.get(key) for key in ("Action", "Package", "Test"))
        if not isinstance(package, str) or not isinstance(action, str):
            return
        if not isinstance(test, str):
            if event.get("FailedBuild") or (action == "output" and _UNBUILT.fullmatch(str(event.get("Output")).rstrip())):
                self.unbuilt.add(package)
        elif action == "run":
            self.packages.setdefault(package, {}).setdefault(test, None)
        elif action in _OUTCOMES and test in self.packages.get(package, {}):
            self.packages[package][test] = worse(self.packages[package][test], _OUTCOMES[action])

    def _named(self, package: str) -> None:
        """Take the tests that ran since the package before."""
        tests = self.packages.setdefault(package, {})
        for test, outcome in self.running.items():
            tests[test] = worse(tests.get(test), outcome or "failed")
        self.running = {}

    def runs(self) -> list[SuiteRun]:
        if self.running:  # killed, so that the package is not named
            self._named("?")
        outcomes: dict[str, Outcome] = {}
        for package, tests in self.packages.items():
            outcomes |= {short_identity(f"{package}::{test}"): outcome for test, outcome in _leaves(tests).items()}
        for package, outcome in self.verdicts.items():
            if package not in self.packages:
                outcomes[short_identity(package)] = outcome
        if not outcomes and not self.unbuilt:
            return []
        cut_short = self.panicked and "failed" in outcomes.values()
        return [SuiteRun.of("go test", outcomes, cut_short=cut_short, collection_errors=len(self.unbuilt))]


def _leaves(tests: Mapping[str, Outcome | None]) -> dict[str, Outcome]:
    ended: dict[str, Outcome] = {test: outcome or "failed" for test, outcome in tests.items()}
    parents = {test.rpartition("/")[0] for test in ended}
    explained = {test.rpartition("/")[0] for test, outcome in ended.items() if outcome == "failed"}
    return {
        test: outcome for test, outcome in ended.items() if test not in parents or (outcome == "failed" and test not in explained)
    }
