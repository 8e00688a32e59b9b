"""What a run says before it pays for anything: what the checks have to do with the score and the target, and what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from calc import FAILING, write_calc, write_project
from commands import call

CHECK = ("--check", "python -m pytest -q -p no:cacheprovider")
AGENT = Path(__file__).parents[1] / "support" / "calc.py"


@pytest.fixture
def place(fresh_place: Path) -> Path:
    """A project whose 12 tests fail in 9 cases; the agent leaves 3 failing, then 2, 1, 4."""
    write_project(fresh_place)
    return fresh_place


def run(*options: object, agent: str = f"python3 {AGENT}") -> str:
    done = call("run", *options, *CHECK, "--agent", agent)
    return " ".join((done.out + done.err).split())


def test_a_target_below_100_counts_the_score_of_the_checks(place: Path) -> None:
    said = run("-n", 4, "-p", "mend it", "--target", 80)
    assert "Ended: target 80 reached by iteration 2 (83.3)." in said
    assert "at iteration 2 (not all checks pass), already in place" in said
    assert "target" not in said.partition("Result")[0], "there is nothing to say of it at the beginning"
    assert "the start reaches the target of 20" in run("-n", 4, "-p", "mend it", "--target", 20, "--new", agent="true")


def test_with_a_score_of_ones_own_it_asks_for_checks_that_pass_and_that_is_said(place: Path) -> None:
    said = run("-n", 2, "-p", "x", "--target", 80, "--score", "echo 0.9")
    assert said.count("the target of 80 counts once no check fails: they fail at the start") == 1
    assert said.count("the checks fail at the start, and they only verify: mending tests does not raise this score.") == 1
    assert "target 80" not in said.partition("Result")[2]
    again = run("-n", 3, "-p", "x", "--target", 80, "--score", "echo 0.9")
    assert "only verify" not in again, "it is said once"

    write_calc((), place)
    green = run("-n", 1, "-p", "x", "--target", 95, "--score", "echo 0.9", "--new", agent="echo x > x.txt")
    assert "only verify" not in green
    assert "counts once" not in green


def test_scored_with_the_checks_beside_it_mending_tests_counts(place: Path) -> None:
    (place / "jumar.toml").write_text(
        f"""
[generator]
command = "python3 {AGENT}"
[[checks]]
name = "tests"
command = "{CHECK[1]}"
[[scorers]]
dimension = "quality"
command = "echo 0.5"
[[scorers]]
builtin = "checks"
[weights]
quality = 0.5
validation = 0.5
"""
    )
    done = call("run", "--json", "-n", 2)
    assert "only verify" not in done.err
    assert 2 == json.loads(done.out)["selected_iteration"]


@pytest.mark.parametrize("options", [("--keep-going",), ()])
def test_a_green_start_is_told_to_add_a_red_check_unless_it_is_to_keep_going(place: Path, options: tuple[str, ...]) -> None:
    write_calc(FAILING[0], place)
    said = run("-n", 1, "-p", "a feature", *options, agent="echo x > feature.txt")
    assert ("add a check that is red" in said) == (options == ())


def test_an_agent_without_an_objective_is_told_of(place: Path) -> None:
    note = "note the agent is given no objective: say what is to be done with -p 'make the tests pass', or -p @FILE"
    assert note in run("-n", 1)
    assert note not in run("-n", 1, "-p", "mend it", "--new")
    assert note not in " ".join(call("run", "-n", 1, *CHECK, "--new", "--", "true").err.split())
    assert "" == call("run", "-q", "-n", 1, *CHECK, "--new", "--agent", "true").err


@pytest.mark.parametrize(
    ("files", "options", "in_file"),
    [
        (("tests/test_a.py",), "--protect 'tests/**'", '["tests/**"]'),
        (("test/a.js",), "--protect 'test/**'", '["test/**"]'),
        (("src/a/x.test.js", "src/b/y.test.js"), "--protect 'src/**/*.test.js'", '["src/**/*.test.js"]'),
        (("a_test.go", "b/b_test.go"), "--protect '*_test.go'", '["*_test.go"]'),
        (("tests/x.py", "test_calc.py"), "--protect 'tests/**' --protect 'test_*.py'", '["tests/**", "test_*.py"]'),
        ((), "--protect 'tests/**'", '["tests/**"]'),
    ],
)
def test_the_note_on_unprotected_tests_names_where_they_are_and_comes_once(
    fresh_place: Path, files: tuple[str, ...], options: str, in_file: str
) -> None:
    for name in files:
        (fresh_place / name).parent.mkdir(parents=True, exist_ok=True)
        (fresh_place / name).write_text("x = 1\n")
    note = "nothing keeps the generator from weakening the tests;"
    command = ("--check", "pytest --version", "--keep-going", "--", "sh", "-c", "date +%N > x.txt")
    assert f"{note} {options} puts them back before they run" in " ".join(call("run", "-n", 1, *command).out.split())
    assert note not in call("run", "-n", 2, *command).out, "the same loop"
    (fresh_place / "jumar.toml").write_text(
        '[generator]\ncommand = "date +%N > x.txt"\n[[checks]]\nname = "t"\ncommand = "pytest --version"\n'
    )
    assert f"{note} [loop] protect = {in_file} puts" in " ".join(call("run", "-n", 1, "--keep-going").out.split())
