"""unittest, and what is built on it, such as Django's: ``Ran 12 tests in 0.003s`` and its verdict, below a rule.

Tests are named under ``-v``. What cannot be told apart is an output that imitates rule, count and verdict. A class that is
skipped as a whole counts as one skipped test, although its tests did not run.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from jumar.loop.checks.runners.suite import Outcome, SuiteRun, numbered, short_identity

_CLOSING: Final = re.compile(
    r"^-{70}\nRan (\d{1,9}) tests? in \d{1,9}\.\d+s\n\n(?:OK|FAILED|NO TESTS RAN)(?: \(([a-z]+[a-z=, \d]*)\))?$", re.MULTILINE
)
_UNLOADED: Final = "unittest.loader._FailedTest"
_COUNT: Final = re.compile(r"([a-z ]+)=(\d{1,9})")
_PROBLEM: Final = re.compile(r"^={70}\n(?:FAIL|ERROR): (\S+) \((\S+)\)", re.MULTILINE)
_NAMED: Final = re.compile(r"(\w+) \(([\w.]+)\)")
_ENDED: Final[dict[str, Outcome]] = {
    "ok": "passed",
    "FAIL": "failed",
    "ERROR": "failed",
    "unexpected success": "failed",
    "expected failure": "skipped",
}


def read_unittest(output: str) -> list[SuiteRun]:
    """Return each run in the cleaned ``output``."""
    runs: list[SuiteRun] = []
    start = 0
    for closing in _CLOSING.finditer(output):
        runs.append(_run(output[start : closing.start()], int(closing[1]), closing[2] or ""))
        start = closing.end()
    return runs


def _run(body: str, ran: int, verdict: str) -> SuiteRun:
    told: Counter[str] = Counter({word.strip(): int(number) for word, number in _COUNT.findall(verdict)})
    found = _PROBLEM.findall(body)
    problems = {_identity(name, scope) for name, scope in found}  # a subtest has its test's name
    modules = {name for name in problems if name.startswith(_UNLOADED)}  # counted as tests that ran
    fixtures = {name for name in problems if name.rpartition(".")[2].startswith(("setUp", "tearDown"))}  # of a class or module
    failing = problems - modules - fixtures
    counted = told["failures"] + told["errors"]
    if len(found) < counted:  # the output is not whole: what closes it is
        failing, counted = set[str](), counted - len(modules | fixtures)
    else:
        counted = len(failing)
    failed = counted + told["unexpected successes"]
    skipped = told["skipped"] + told["expected failures"]
    passed = max(0, ran - len(modules) - failed - skipped)
    listed = _listed(body)
    outcomes = _outcomes(listed, failing)
    tally = Counter(outcomes.values())
    # without -v only what fails is named: where all do, that is no list of the tests
    agree = bool(listed) and (tally["passed"], tally["failed"]) == (passed, failed)
    return SuiteRun(
        runner="unittest",
        passed=passed,
        failed=failed,
        skipped=skipped,
        outcomes=outcomes if agree else None,
        failing=tuple(map(short_identity, sorted(failing))) if not agree and len(failing) == failed else (),
        collection_errors=len(modules | fixtures),
    )


def _listed(body: str) -> dict[str, Outcome]:
    """Return what ``-v`` says of each test: on the line that names it, or on the next, behind its docstring."""
    outcomes: dict[str, Outcome] = {}
    name = ""
    for line in body.partition("=" * 70)[0].split("\n"):
        named = _NAMED.match(line)
        name = _identity(named[1], named[2]) if named is not None else name
        ended = line.rpartition(" ... ")[2]
        outcome: Outcome | None = "skipped" if ended.startswith("skipped ") else _ENDED.get(ended)
        if name and outcome is not None:
            outcomes[name], name = outcome, ""
    return outcomes


def _outcomes(listed: dict[str, Outcome], failing: set[str]) -> dict[str, Outcome]:
    """Return the outcome of each test by its name, subtests counted with their test."""
    outcomes = dict(listed)
    outcomes.update((name, "failed") for name in sorted(failing))
    return numbered((name, outcome) for name, outcome in outcomes.items() if not name.startswith(_UNLOADED))


def _identity(name: str, scope: str) -> str:
    return scope if scope.endswith(f".{name}") else f"{scope}.{name}"
