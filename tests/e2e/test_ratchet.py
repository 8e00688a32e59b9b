"""A loop does not slip: every iteration starts from the best, and a tie undoes no work. Real processes, read from outside."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from calc import RIGHT, write_calc, write_project
from commands import call, call_json

AGENT = """
n=$JUMAR_ITERATION
cp "$JUMAR_PROMPT_FILE" prompts/$n.md
echo $n >> work.txt
sed -n "${n}p" scores.txt > score.txt
"""
CONFIG = """
[loop]
id = "t"
{loop}

[artifacts]
include = ["work.txt", "score.txt"]

[generator]
command = "sh agent.sh"

[[scorers]]
dimension = "quality"
command = "cat score.txt"

{more}
"""


@pytest.fixture
def place(fresh_place: Path) -> Path:
    (fresh_place / "prompts").mkdir()
    (fresh_place / "agent.sh").write_text(AGENT)
    (fresh_place / "work.txt").touch()
    return fresh_place


def run(place: Path, scores: Sequence[float], *, start: float = 0.5, loop: str = "", more: str = "", check: int = 0) -> Any:
    """Run an agent whose iterations score as given; each adds its number to what it starts from."""
    (place / "score.txt").write_text(f"{start}\n")
    (place / "scores.txt").write_text("".join(f"{score}\n" for score in scores))
    (place / "jumar.toml").write_text(CONFIG.format(loop=loop, more=more))
    return call_json("run", "-n", len(scores), check=check)


def work(place: Path) -> list[int]:
    """The iterations whose work is in the working directory."""
    return [int(line) for line in (place / "work.txt").read_text().split()]


def parents() -> list[int | None]:
    return [one["parent"] for one in call_json("report", "t", "--format", "json")["records"]]


def test_what_was_worse_is_undone_before_the_next_iteration(place: Path) -> None:
    result = run(place, [0.6, 0.8, 0.7, 0.3, 0.9])

    assert [None, 0, 1, 2, 2, 2] == parents()
    assert 5 == result["selected_iteration"]
    assert [1, 2, 5] == work(place)
    told = (place / "prompts" / "5.md").read_text()
    assert "It starts from iteration 2: 80 of 100. Iterations 3 and 4 were not kept: what was changed there is undone." in told
    assert "not kept" not in (place / "prompts" / "3.md").read_text()


def test_previous_stays_as_it_was(place: Path) -> None:
    run(place, [0.6, 0.8, 0.7, 0.3, 0.9], loop='continue_from = "previous"')

    assert [None, 0, 1, 2, 3, 4] == parents()
    assert [1, 2, 3, 4, 5] == work(place)


def test_the_best_is_the_one_that_would_be_selected_on_the_screen_and_in_the_prompt(place: Path) -> None:
    (place / "score.txt").write_text("0.2\n")
    (place / "scores.txt").write_text("0.5\n0.9\n0.6\n0.7\n")
    check = '[[checks]]\nname = "below"\ncommand = "grep -qv 0.9 score.txt"'
    (place / "jumar.toml").write_text(CONFIG.format(loop="", more=check))

    shown = call("run", "-n", 4, check=0).out
    rows = {line.split()[0]: line for line in shown.splitlines() if re.match(r" +\d ", line)}

    assert [1, 3, 4] == [int(number) for number, line in rows.items() if "★ best" in line]
    told = (place / "prompts" / "3.md").read_text()
    assert "Iteration 2 was not kept" in told
    assert "The best so far is iteration 2" not in told
    (loop,) = call_json("list")["loops"]
    assert (4, 70) == (loop["best_iteration"], loop["best_score"])


def test_among_equals_the_latest_goes_on(place: Path) -> None:
    result = run(place, [0.8, 0.8, 0.8, 0.7])

    assert [None, 0, 1, 2, 3] == parents()
    assert (1, False) == (result["selected_iteration"], result["tie_with_start"])
    assert [1] == work(place)  # better than the start: the earlier of equals is selected, as ever


def test_of_a_batch_the_best_goes_on_and_of_batches_the_latest(place: Path) -> None:
    run(place, [0.6, 0.8, 0.8, 0.8, 0.1, 0.1], loop="candidates = 2\nworkers = 1")

    assert [None, 0, 0, 2, 2, 3, 3] == parents()


@pytest.mark.parametrize(
    ("scores", "stays", "applied"),
    [
        ([0.5, 0.5, 0.5], [1, 2, 3], False),
        ([0.5, 0.4, 0.5], [1, 3], False),
        ([0.5, 0.5, 0.4], [1, 2], True),  # the third is worse, and gives way to what is as good as the start
        ([0.4, 0.4, 0.3], [], True),  # nothing is as good as the start but the start
    ],
)
def test_a_tie_with_the_start_undoes_no_work(place: Path, scores: list[float], stays: list[int], applied: bool) -> None:
    result = run(place, scores)

    kept = stays[-1] if stays else None
    assert (0, bool(stays), kept) == (result["selected_iteration"], result["tie_with_start"], result["kept"])
    assert applied == (result["applied"] is not None)
    assert stays == work(place)

    again = call_json("run", "-n", len(scores), check=2)
    assert (result["tie_with_start"], None) == (again["tie_with_start"], again["applied"])
    shown = " ".join(call("show", "t", check=0).out.split())  # however it was wrapped
    if stays:
        place_of_it = "applied here" if applied else "already in place"
        assert f"as good as the start: iteration {kept} is kept, {place_of_it}" in shown
        assert re.search(f"jumar apply --undo +put {'back what iteration 3 left' if applied else 'the start back'}", shown)
        assert f"iteration {kept} already" in " ".join(call("apply", "--dry-run", check=0).out.split())
        for _ in range(1 + applied):
            call("apply", "--undo", check=0)
        assert "jumar apply" in call("show", "t", check=0).out
    assert [] == work(place)
    assert "0.5\n" == (place / "score.txt").read_text()


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        ("echo 'def broken(' >> calc.py", "0/12"),
        ("sed -i /^def.test_add/,/assert/d test_calc.py", "2/12"),  # one of the 3 that passed is gone
        ("sed -i /^def.test_sub/,/assert/d test_calc.py", "3/12"),  # and here one that failed: nothing but the number tells
    ],
)
def test_a_score_of_ones_own_does_not_hide_what_the_checks_say(fresh_place: Path, harm: str, told: str) -> None:
    """The score is the same for all; a known test that fails or is gone is no equal of the start."""
    write_project(fresh_place)
    write_calc(tuple(name for name in RIGHT if name not in {"abs", "add", "max"}), fresh_place)
    before = {path.name: path.read_text() for path in fresh_place.glob("*.py")}
    command = ("--score", "echo 0.5", "--check", "python -m pytest -q -p no:cacheprovider", "--id", "t", "--", "sh", "-c")

    result = json.loads(call("run", "--json", "-n", 2, *command, f"test $JUMAR_ITERATION = 1 && {harm}; echo x >> more.txt").out)

    records = call_json("report", "t", "--format", "json")["records"]
    tests = ["{passed}/{total}".format_map(one["checks"][0]["tests"]) for one in records]
    assert ["3/12", told, "3/12"] == tests
    assert [None, 0, 0] == parents(), "the next one starts from what was not harmed"
    assert (0, 2, None) == (result["selected_iteration"], result["kept"], result["applied"])
    assert before == {path.name: path.read_text() for path in fresh_place.glob("*.py")}

    alone = json.loads(call("run", "--json", "-n", 1, "--new", *command, f"{harm}").out)
    assert (0, None, False) == (alone["selected_iteration"], alone["kept"], alone["tie_with_start"])
    assert before == {path.name: path.read_text() for path in fresh_place.glob("*.py")}
    shown = " ".join(call("show", alone["loop_id"], check=0).out.split())
    assert "Iteration 1 is next, with the same score, but its checks found it worse." in shown


def test_a_feature_from_a_green_start_stays_and_is_what_is_reported(place: Path) -> None:
    """`--keep-going`: nothing can be better than 100, so the latest iteration that is as good stands."""
    (place / "scores.txt").write_text("1\n" * 3)
    result = json.loads(
        call("run", "--json", "-n", 2, "--check", "true", "--keep-going", "--id", "t", "--", "sh", "agent.sh", check=0).out
    )
    assert (0, 2, None) == (result["selected_iteration"], result["kept"], result["applied"])
    assert "0 → 2" in call("diff", "t", "--stat", check=0).out
    assert (2, 2) == (call_json("show", "t")["chosen"], call_json("status", "t")["chosen"]["iteration"])
    assert "Iteration 2" in call("report", "t", check=0).out
    call("apply", "--undo", check=0)
    assert [] == work(place)
    call("apply", check=0)
    assert [1, 2] == work(place)


def test_a_person_may_select_another_one_after_a_tie(place: Path) -> None:
    run(place, [0.5, 0.5])
    call("select", "t", "--use", "1", "--reason", "half of it", check=0)
    call("apply", "t", check=0)
    assert [1] == work(place)

    result = call_json("run", "-n", 3)

    assert [None, 0, 1, 2] == parents()
    assert False is result["tie_with_start"]
    assert [1] == work(place)  # what a person selected stands


def test_what_known_noise_makes_equal_goes_on_too(place: Path) -> None:
    """Two answers of each scorer, far apart: 0.6 is within the noise of 0.62."""
    (place / "noisy.sh").write_text(
        's=$(cat score.txt); t=$(cat turn 2>/dev/null); echo $((1-${t:-0})) > turn\nawk "BEGIN { print $s + ${t:-0} * 0.1 }"\n'
    )
    more = "[noise]\nrescore = 0\n"
    (place / "score.txt").write_text("0.5\n")
    (place / "scores.txt").write_text("0.62\n0.60\n0.3\n0.3\n")
    config = CONFIG.format(loop="", more=more).replace('"cat score.txt"', '"sh noisy.sh"\nrepeat = 2')
    (place / "jumar.toml").write_text(config)

    result = call_json("run", "-n", 4)

    assert [None, 0, 1, 2, 2] == parents()
    assert 1 == result["selected_iteration"]


def test_one_that_tampered_with_the_checks_is_not_what_the_rest_starts_from(place: Path) -> None:
    (place / "check.sh").write_text("test -s work.txt\n")
    agent = AGENT + "test $n = 2 && echo true > check.sh; true\n"
    (place / "agent.sh").write_text(agent)
    more = '[[checks]]\nname = "work"\ncommand = "sh check.sh"\n\n[selection]\nmode = "highest_quality"\n'

    result = run(place, [0.6, 0.99, 0.7, 0.7], more=more, check=10)

    records = call_json("report", "t", "--format", "json")["records"]
    assert [2] == [one["iteration_number"] for one in records if one["tampering"]]
    assert 99.0 == records[2]["quality_score"]
    assert [None, 0, 1, 1, 3] == parents()
    assert 2 == result["selected_iteration"]  # this mode asks for the score alone, and it is told


def test_cleaning_up_keeps_what_the_next_iteration_starts_from(place: Path) -> None:
    run(place, [0.8, 0.8, 0.3])
    kept = {one["iteration"]: one["why"] for one in call_json("cleanup", "t", "--keep", 0)["kept"]}
    assert "the next iteration starts from it" == kept[2]

    (place / "scores.txt").write_text("0.8\n0.8\n0.3\n0.9\n")
    call_json("run", "-n", 4)

    assert [None, 0, 1, 2, 2] == parents()
    assert [1, 2, 4] == work(place)
    assert [] == list((place / ".jumar/loops/t/set-aside").glob("*"))


def test_of_a_score_that_is_the_same_everywhere_the_last_goes_on(place: Path) -> None:
    """Nothing is measured: a loop with a check that always passes is the plain loop that it always was."""
    (place / "scores.txt").write_text("1\n" * 3)
    command = ("--check", "true", "--keep-going", "--id", "t", "--", "sh", "agent.sh")

    result = json.loads(call("run", "--json", "-n", 3, *command, check=0).out)

    assert [None, 0, 1, 2] == parents()
    assert [1, 2, 3] == work(place)
    assert (0, True, None) == (result["selected_iteration"], result["tie_with_start"], result["applied"])
