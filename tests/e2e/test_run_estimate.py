"""`jumar run --estimate`: passes that the budget buys, said before anything is paid for."""

from __future__ import annotations

import json
from pathlib import Path

from commands import call

CONFIG = """
[loop]
id = "night"
objective = "count"
max_iterations = {passes}
{more}
[generator]
command = 'echo x >> out.txt; printf "{{\\"token_cost_usd\\": 0.25, \\"tokens_used\\": 100}}" > "$JUMAR_USAGE_FILE"'

[[checks]]
name = "there"
command = "test -s out.txt"

[[scorers]]
builtin = "checks"
"""


def configure(place: Path, *, passes: int = 40, more: str = "") -> None:
    (place / "jumar.toml").write_text(CONFIG.format(passes=passes, more=more))
    (place / "out.txt").write_text("start\n")


def estimated(*options: str) -> dict:
    return json.loads(call("run", "--estimate", "--json", *options, check=0).out)


def test_before_the_first_pass_only_the_reservation_is_known(fresh_place: Path):
    configure(fresh_place)
    nothing = estimated("--max-cost", "3")
    assert (nothing["exists"], nothing["passes_made"]) == (False, 0)
    assert nothing["estimate"]["passes"] == {"low": None, "typical": None, "high": 40}
    configure(fresh_place, more="[budget]\nmax_cost_usd = 3\nreserve_cost_usd = 0.5")
    assert estimated()["estimate"]["passes"] == {"low": 6, "typical": 6, "high": 6}
    configure(fresh_place, more='[budget]\nmax_cost_usd = 3\nmodel = "gpt-5"')
    prompt = estimated()["estimate"]
    assert prompt["passes"]["typical"] is None
    assert prompt["rows"][0]["a_pass"]["low"] > 0
    text = call("run", "--estimate", check=0).out
    assert (
        "at most 40 iterations by max_iterations; what an iteration takes of max_cost_usd is not known before the first one"
        in text
    )
    configure(fresh_place, more="[budget]\nmax_cost_usd = 3\nreserve_cost_usd = 0.5")
    text = call("run", "--estimate", check=0).out
    assert "about 6 iterations, if each takes what is set aside for it; max_cost_usd is reached first" in text
    text = call("run", "--estimate", "--max-seconds", "600", check=0).out
    assert (
        "about 6 iterations by max_cost_usd, if each takes what is set aside for it; what an iteration "
        "takes of max_seconds is not" in text
    )
    assert not (fresh_place / ".jumar").exists(), "nothing was run or written"


def test_afterwards_what_the_passes_took_is_known(fresh_place: Path):
    configure(fresh_place, passes=2)
    call("run", "--quiet", check=0)
    before = {path: path.stat().st_mtime_ns for path in (fresh_place / ".jumar").rglob("*")}
    found = estimated("--max-cost", "3", "-n", "40")
    assert found["passes_made"] == 2
    assert found["spend"]["cost_usd"] == 0.5
    assert found["estimate"]["passes"] == {"low": 10, "typical": 10, "high": 10}
    assert found["estimate"]["limited_by"] == "max_cost_usd"
    assert found["estimate"]["rows"][0]["source"] == "2 iterations of this loop"
    text = call("run", "--estimate", "--max-cost", "3", "-n", "40", check=0).out
    assert "loop      night: 2 iterations made, $0.5000 spent" in text
    assert "the budget buys about 10 iterations; max_cost_usd is reached first" in text
    assert before == {path: path.stat().st_mtime_ns for path in (fresh_place / ".jumar").rglob("*")}, "nothing was written"


def test_a_new_loop_learns_from_an_earlier_one_with_the_same_generator(fresh_place: Path):
    configure(fresh_place, passes=2)
    call("run", "--quiet", check=0)
    found = estimated("--new", "--max-cost", "3", "-n", "40")
    assert (found["loop_id"], found["exists"], found["passes_made"]) == ("night-2", False, 0)
    assert found["estimate"]["passes"]["typical"] == 12
    assert found["estimate"]["rows"][0]["source"] == "2 iterations of loop 'night', which has the same generator"
    other = CONFIG.format(passes=40, more="").replace("echo x", "echo y")
    (fresh_place / "jumar.toml").write_text(other)
    assert estimated("--new", "--max-cost", "3")["estimate"]["passes"]["typical"] is None, "another generator"


def test_without_a_limit_there_are_only_the_passes(fresh_place: Path):
    configure(fresh_place, passes=7)
    assert estimated()["estimate"]["passes"] == {"low": 7, "typical": 7, "high": 7}


def test_what_cannot_be_is_refused_before_anything_is_estimated(fresh_place: Path):
    configure(fresh_place, more='[budget]\nmodel = "gtp-5"')
    refused = call("run", "--estimate", check=2)
    assert "[budget] model: the table of prices has no model 'gtp-5' (did you mean 'gpt-5'?)" in refused.err


def test_after_the_end_it_says_that_the_loop_has_ended_and_what_is_left(fresh_place: Path):
    configure(fresh_place, passes=2, more="[budget]\nmax_cost_usd = 3\nreserve_cost_usd = 0.1")
    call("run", "--quiet", check=0)
    text = call("run", "--estimate", check=0).out
    assert "the loop has ended (2 of 2 iterations done); left are $2.5000 of max_cost_usd, 0 of max_iterations\n" in text
    assert "buys" not in text
    assert "2 of 2 iterations done" == estimated()["ended"]
    more = estimated("-n", "5")
    assert (None, 3) == (more["ended"], more["estimate"]["passes"]["typical"])
