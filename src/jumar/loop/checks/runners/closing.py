"""Reading the lines with which a test runner closes, as one row of the table describes them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from jumar.loop.checks.runners.suite import Outcome, SuiteRun, joined, numbered, short_identity

_NUMBER: Final = re.compile(r"<(\w+)>")


def lines(*patterns: str) -> re.Pattern[str]:
    """Return what matches these whole lines, one after the other. ``<passed>`` stands for a number of that name."""
    return re.compile("^" + "\n".join(_NUMBER.sub(r"(?P<\1>\\d{1,9})", pattern) for pattern in patterns) + "$", re.MULTILINE)


def anywhere(pattern: str) -> re.Pattern[str]:
    """Return what matches whole lines, in one pattern."""
    return re.compile(f"^{pattern}$", re.MULTILINE)


def words(*, passed: str, failed: str, skipped: str = "") -> dict[str, Outcome]:
    """Return what each word means; those of one kind are written with ``|`` between them."""
    kinds: tuple[tuple[str, Outcome], ...] = ((passed, "passed"), (failed, "failed"), (skipped, "skipped"))
    return {word: outcome for listed, outcome in kinds for word in listed.split("|")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """How one runner speaks.

    ``hint`` is a text that no closing lacks: an output without it is not searched. The numbers of ``closing`` are named
    ``passed``, ``failed``, ``skipped`` or ``total``, with an ending after ``_`` where there are several of one kind; what is not
    told is the rest of the total. They add up to a number that was ``announced`` before, where the runner does that.

    A run of ``part`` files or tests out of a ``whole`` is cut short, and so is one that prints ``cut_short`` and does not print
    ``went_on``. ``unloaded`` is the number of files that could not be loaded; where only their names are told, ``unloads`` finds
    them. ``unloaded_fails`` says that the runner has them among its failed tests.

    ``tests`` finds the line of one test (groups ``name`` and ``word``), of which ``words`` has the outcome; where that takes
    more, ``named`` returns the ways to read the output before the closing. Names are used when they agree with the counts.
    ``scopes`` finds what to put before the names of each closing, in order. ``failing`` finds what failed where the rest has no
    names; a name of several lines is joined by ``>``.
    """

    name: str
    hint: str
    closing: re.Pattern[str]
    announced: re.Pattern[str] | None = None
    cut_short: re.Pattern[str] | None = None
    went_on: re.Pattern[str] | None = None
    unloads: re.Pattern[str] | None = None
    unloaded_fails: bool = False
    tests: re.Pattern[str] | None = None
    words: Mapping[str, Outcome] = field(default_factory=dict[str, Outcome])
    named: Callable[[str], Iterable[Mapping[str, Outcome]]] | None = None
    scopes: re.Pattern[str] | None = None
    failing: re.Pattern[str] | None = None

    def read(self, output: str) -> SuiteRun | None:
        """Return all runs of this runner in the cleaned ``output`` as one, None when it did not speak."""
        if self.hint not in output:
            return None
        closings = list(self._closings(output))
        scopes = [found[1] for found in self.scopes.finditer(output)] if self.scopes is not None else []
        unloaded = {found[1] for found in self.unloads.finditer(output)} if self.unloads is not None and closings else set[str]()
        runs: list[SuiteRun] = []
        start = 0
        for index, closing in enumerate(closings):
            run = self._counted(closing)
            body = output[start : closing.start()]
            runs.append(self._with_names(run, body, f"{scopes[index]}::" if len(scopes) == len(closings) else ""))
            start = closing.end()
        run = joined(runs)
        if run is None:
            return None
        ended_early = self.cut_short is not None and self.cut_short.search(output) is not None
        went_on = self.went_on is not None and self.went_on.search(output) is not None
        run = replace(self._without(run, unloaded), cut_short=run.cut_short or (ended_early and not went_on))
        names = {_one_line(found[1]) for found in self.failing.finditer(output)} if self.failing is not None else set[str]()
        return replace(run, failing=tuple(sorted(names))) if run.outcomes is None and len(names) == run.failed else run

    def _closings(self, output: str) -> Iterator[re.Match[str]]:
        announced = list(self.announced.finditer(output))[::-1] if self.announced is not None else []
        waiting: Counter[int] = Counter()
        for closing in self.closing.finditer(output):
            while announced and announced[-1].start() < closing.start():
                waiting[int(announced.pop()[1])] += 1
            total = sum(int(number or 0) for number in closing.groups())
            if self.announced is None or waiting[total]:
                waiting[total] -= 1
                yield closing

    def _counted(self, closing: re.Match[str]) -> SuiteRun:
        counts: Counter[str] = Counter()
        for name, number in closing.groupdict(default="0").items():
            counts[name.partition("_")[0]] += int(number)
        if self.unloaded_fails:
            counts["failed"] -= counts["unloaded"]
        if "total" in counts:
            counts["passed"] = counts["total"] - counts["failed"] - counts["skipped"]
        return SuiteRun(
            runner=self.name,
            passed=max(0, counts["passed"]),
            failed=max(0, counts["failed"]),
            skipped=counts["skipped"],
            cut_short=counts["part"] < counts["whole"],
            collection_errors=counts["unloaded"],
        )

    def _without(self, run: SuiteRun, unloaded: set[str]) -> SuiteRun:
        """Take the files that could not be loaded out of the tests that failed."""
        if not unloaded:
            return run
        outcomes = run.outcomes
        if outcomes is not None and self.unloaded_fails:
            outcomes = {name: outcome for name, outcome in outcomes.items() if name not in unloaded}
        failed = max(0, run.failed - len(unloaded)) if self.unloaded_fails else run.failed
        return replace(run, failed=failed, outcomes=outcomes, collection_errors=len(unloaded))

    def _with_names(self, run: SuiteRun, body: str, scope: str) -> SuiteRun:
        """Return ``run`` with the first reading that agrees with its counts; some count a skipped test as passed."""
        for outcomes in self.named(body) if self.named is not None else self._single(body):
            tally = Counter(outcomes.values())
            if tally["failed"] == run.failed and tally["passed"] <= run.passed <= tally["passed"] + tally["skipped"]:
                scoped = {f"{scope}{name}": outcome for name, outcome in outcomes.items()}
                return replace(run, passed=tally["passed"], skipped=max(run.skipped, tally["skipped"]), outcomes=scoped)
        return run

    def _single(self, body: str) -> Iterator[Mapping[str, Outcome]]:
        if self.tests is not None:
            found = [match for match in self.tests.finditer(body) if match["word"] in self.words]
            yield numbered((str(match["name"]), self.words[match["word"]]) for match in found)


def _one_line(name: str) -> str:
    return short_identity(" > ".join(line.strip() for line in name.split("\n")))
