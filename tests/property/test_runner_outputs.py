"""Closing lines with any counts, noise between the lines, and trees of tests told as TAP and by go, against a plain count."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from runner_outputs import OUTPUTS, counts, read_output, spoken

from jumar.loop.checks.runners.table import RUNNERS, cleaned

# ------------------------------------------------------------------------------------------------------------ any counts


def listed(separator: str, **numbers: int) -> str:
    """Return what is not zero: ``1 failed, 2 passed``."""
    return separator.join(f"{number} {word.replace('_', ' ')}" for word, number in numbers.items() if number)


def closing(runner: str, passed: int, failed: int, skipped: int) -> str:
    total = passed + failed + skipped
    commas, bars = (listed(mark, failed=failed, passed=passed, skipped=skipped) for mark in (", ", " | "))
    jest = listed(", ", failed=failed, skipped=skipped, passed=passed, total=total)
    pending, failing = [f"  {skipped} pending"] * bool(skipped), [f"  {failed} failing"] * bool(failed)
    node, skip = [f"ℹ tests {total}", f"ℹ pass {passed}", f"ℹ fail {failed}"], [f" {skipped} skip"] * bool(skipped)
    told = {"Failures": failed, "Skipped": skipped}
    phpunit = "".join(f", {word}: {number}" for word, number in told.items() if number)
    lines = {
        "pytest": [f"=== {commas} in 0.12s ==="],
        "unittest": ["-" * 70, f"Ran {total} tests in 0.001s", "", f"FAILED (failures={failed}, skipped={skipped})"],
        "jest": ["Test Suites: 1 failed, 1 total", f"Tests:       {jest}", "Snapshots:   0 total"],
        "vitest": [" Test Files  1 failed (1)", f"      Tests  {bars} ({total})", "   Start at  10:00:00"],
        "mocha": ["", f"  {passed} passing (9ms)", *pending, *failing, ""],
        "node --test": [*node, "ℹ cancelled 0", f"ℹ skipped {skipped}", "ℹ todo 0", "ℹ duration_ms 9.5"],
        "bun test": [f" {passed} pass", *skip, f" {failed} fail", f"Ran {total} tests across 1 file."],
        "cargo test": [
            f"running {total} tests",
            "",
            f"test result: ok. {passed} passed; {failed} failed; {skipped} ignored; 0 measured; 0 filtered out",
            "",
        ],
        "cargo nextest": [
            "─" * 12,
            f"     Summary [   0.1s] {passed + failed} tests run: {passed} passed, {failed} failed, {skipped} skipped",
        ],
        "dotnet test": [f"Failed!  - Failed:  {failed}, Passed:    {passed}, Skipped:   {skipped}, Total:   {total}"],
        "Maven Surefire": [f"[ERROR] Tests run: {total}, Failures: {failed}, Errors: 0, Skipped: {skipped}", "[INFO]"],
        "Gradle": ["", f"{total} tests completed, {failed} failed, {skipped} skipped"],
        "rspec": ["Finished in 0.1 seconds", f"{total} examples, {failed} failures, {skipped} pending"],
        "PHPUnit": ["FAILURES!", f"Tests: {total}, Assertions: 9{phpunit}."],
        "bats": ["", f"{total} tests, {failed} failures, {skipped} skipped"],
    }
    return "\n".join(lines[runner])


NUMBER = st.one_of(st.integers(0, 3), st.integers(0, 99_999))


@pytest.mark.parametrize(
    "runner",
    [
        *(
            "pytest",
            "unittest",
            "jest",
            "vitest",
            "mocha",
            "node --test",
            "bun test",
            "cargo test",
            "cargo nextest",
            "dotnet test",
        ),
        *("Maven Surefire", "Gradle", "rspec", "PHPUnit", "bats"),
    ],
)
@given(expected=st.lists(st.tuples(NUMBER, NUMBER, NUMBER).filter(any), min_size=1, max_size=3))
def test_counts_that_a_runner_closes_with_are_summed(runner: str, expected: list[tuple[int, int, int]]):
    start = "=== test session starts ===\n" if runner == "pytest" else ""
    run = spoken("\n".join(f"{start}{closing(runner, *numbers)}" for numbers in expected))
    assert tuple(map(sum, zip(*expected, strict=True))) == counts(run)
    assert runner == run.runner


# ----------------------------------------------------------------------------------------------------------------- noise

NEAR = (
    *(
        "100 passed",
        "100 passed in a row",
        "OK",
        "PASS",
        "ok",
        "FAILED",
        "not ok",
        "Tests: 100 passed",
        "100 passing",
        "# passed 9",
    ),
    *(
        "test result: ok",
        "12 examples",
        "Ran 100 tests",
        "-----",
        "====",
        "Summary",
        "1..",
        "ℹ pass 9",
        "error: none",
        "{}",
        "}",
        "\t",
        " ",
    ),
)
NOISE = st.lists(st.one_of(st.sampled_from(NEAR), st.text(max_size=40).map(lambda text: text.replace("\n", " "))), max_size=6)

NOISY = (
    *("pytest", "pytest-q", "pytest-x", "pytest-xdist", "unittest-ok", "unittest-failfast", "jest", "vitest", "mocha", "bun"),
    *("cargo-all", "nextest", "go", "go-v", "go-json", "dotnet-normal", "dotnet-minimal", "maven", "rspec", "phpunit", "ctest"),
    *(
        "gradle",
        "bats",
        "bats-tap13",
        "bats-pretty",
        "node24-spec",
        "node24-tap",
        "vitest-tap",
        "vitest-tap-flat",
        "tape",
        "perl",
    ),
    *("npm-workspaces", "node-tap"),
)


def gaps(text: str) -> list[int]:
    """Return where a line may be put in between: not inside the lines that a runner closes with."""
    closed = [found.span() for runner in RUNNERS for found in runner.closing.finditer(text)]
    ends = [index for index, char in enumerate(text) if char == "\n"]
    inside = [range(start - 1, end + 1) for start, end in closed]
    if "\nRan " in text and "-" * 70 in text:
        inside.append(range(text.rindex("-" * 70) - 1, len(text)))
    return [0, *(end + 1 for end in ends if not any(end in span for span in inside))]


@pytest.mark.parametrize("name", NOISY)
@given(data=st.data())
def test_noise_between_the_lines_changes_no_count(name: str, data: st.DataObject):
    text = cleaned(OUTPUTS[name].text)
    places = sorted(data.draw(st.lists(st.sampled_from(gaps(text)), max_size=6)), reverse=True)
    noisy = text
    for place in places:
        noisy = noisy[:place] + "".join(f"{line}\n" for line in data.draw(NOISE)) + noisy[place:]
    assert counts(spoken(text)) == counts(spoken(noisy))


@given(st.text())
def test_any_text_is_read_without_an_error(text: str):
    read_output(text)


@given(st.lists(st.sampled_from("".join(output.text for output in OUTPUTS.values()).split("\n")), max_size=30))
def test_any_lines_of_runners_are_read_without_an_error(lines: list[str]):
    run = read_output("\n".join(lines))
    if run is not None:
        assert min(counts(run)) >= 0
        if run.outcomes is not None:
            assert (run.passed, run.failed) == (len(run.named("passed")), len(run.named("failed")))


# ----------------------------------------------------------------------------------------------------------------- trees

LEAF = st.sampled_from(["passed", "failed", "skipped"])
TREE: Any = st.recursive(LEAF, lambda below: st.lists(below, min_size=1, max_size=4), max_leaves=20)
TREES = st.lists(TREE, min_size=1, max_size=5)


def leaves(tree: Any) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    else:
        for one in tree:
            yield from leaves(one)


def tap(trees: list[Any], depth: int = 0, *, buffered: bool) -> Iterator[str]:
    margin = "    " * depth
    yield f"{margin}1..{len(trees)}"
    for number, tree in enumerate(trees, 1):
        failed = "failed" in leaves(tree)
        point = f"{margin}{'not ' * failed}ok {number} - test {number}"
        if isinstance(tree, str):
            yield f"{point} # SKIP later" if tree == "skipped" else point
            yield from (f"{margin}  ---", f"{margin}  error: |", f"{margin}    ok 7 - quoted", f"{margin}  ...")
        elif buffered:
            yield f"{point} {{"
            yield from tap(tree, depth + 1, buffered=True)
            yield f"{margin}}}"
        else:
            yield from tap(tree, depth + 1, buffered=False)
            yield point


@given(trees=TREES, buffered=st.booleans())
def test_the_leaves_of_tap_are_counted(trees: list[Any], buffered: bool):
    run = spoken("TAP version 14\n" + "\n".join(tap(trees, buffered=buffered)))
    every = list(leaves(trees))
    assert (every.count("passed"), every.count("failed"), every.count("skipped")) == counts(run)
    assert len(every) == len(run.outcomes or {})


def test_a_brace_that_closes_nothing_hides_no_test():
    text = cleaned(OUTPUTS["vitest-tap"].text)
    opening = "time=9.59ms {\n"
    assert (4, 1, 2) == counts(spoken(text)) == counts(spoken(text.replace(opening, opening + "}\n")))


def go(trees: list[Any], above: str = "") -> Iterator[str]:
    words = {"passed": "PASS", "failed": "FAIL", "skipped": "SKIP"}
    for number, tree in enumerate(trees):
        name = f"{above}Test{number}"
        yield f"=== RUN   {name}"
        outcome = tree if isinstance(tree, str) else "failed" if "failed" in leaves(tree) else "passed"
        if not isinstance(tree, str):
            yield from go(tree, f"{name}/")
        yield f"{'    ' * name.count('/')}--- {words[outcome]}: {name} (0.00s)"


@given(TREES, TREES)
def test_the_leaves_of_go_are_counted(first: list[Any], second: list[Any]):
    lines = [*go(first), "FAIL\tx/a\t0.1s".replace("0.1", "0.100"), *go(second), "ok  \tx/b\t(cached)"]
    run = spoken("\n".join(lines))
    every = [*leaves(first), *leaves(second)]
    assert (every.count("passed"), every.count("failed"), every.count("skipped")) == counts(run)
    assert len(every) == len(run.outcomes or {})
