"""`jumar run` under a budget: each limit ends the loop by name, a higher one goes on, and nothing unknown is taken for free."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from commands import call

from jumar.loop.store.loop_reader import LoopReader
from jumar.model.budget.ledger import spend
from jumar.model.budget.pricing import Budget

SAYS = '{"token_cost_usd": 0.25, "tokens_used": 100}'


def configure(more: str = "", *, says: str = SAYS) -> None:
    report = "cp report.json $JUMAR_USAGE_FILE; sleep 0.01" if says else "true"
    Path("report.json").write_text(says)
    Path("out.txt").write_text("start\n")
    Path("jumar.toml").write_text(
        f'[loop]\nid = "night"\nmax_iterations = 12\n{more}\n[generator]\ncommand = "echo x >> out.txt; {report}"\n'
        '[artifacts]\ninclude = ["out.txt"]\n[[checks]]\nname = "there"\ncommand = "test -s out.txt"\n'
        '[[scorers]]\nbuiltin = "checks"\n'
    )


def run(*options: str) -> dict[str, Any]:
    return json.loads(call("run", "--json", *options, check=0).out)


@pytest.mark.usefixtures("fresh_place")
@pytest.mark.parametrize(
    ("more", "reason", "passes"),
    [
        ("max_cost_usd = 1\nreserve_cost_usd = 0.25", "max_cost", 4),
        ("max_cost_usd = 0.9\nreserve_cost_usd = 0.2", "max_cost", 3),
        ("max_tokens = 250", "max_tokens", 2),
        ("max_iterations = 5", "max_attempts", 5),
        ("max_cost_usd = 1\nreserve_cost_usd = 0.6", "max_cost", 2),
        ("max_cost_usd = 3\nreserve_cost_usd = 0.25", "max_cost", 12),
    ],
)
def test_a_limit_ends_the_loop_by_its_name(more: str, reason: str, passes: int):
    configure(f"[budget]\n{more}")
    done = run()
    expected = (reason if passes < 12 else "max_iterations", passes, passes * 0.25, passes * 100)
    spend = done["spend"]
    assert (done["stop_reason"], spend["iterations"], spend["cost_usd"], spend["tokens"]) == expected


@pytest.mark.usefixtures("fresh_place")
def test_time_is_a_limit_too():
    configure()
    assert run("--max-seconds", "0.001")["stop_reason"] == "max_seconds"


@pytest.mark.usefixtures("fresh_place")
def test_a_budget_that_is_used_up_pays_nothing_and_a_higher_one_goes_on():
    configure()
    assert run("--max-cost", "0.5", "--reserve-cost", "0.25")["spend"]["cost_usd"] == 0.5
    again = call("run", "--max-cost", "0.5", check=2)
    assert "Nothing was run: this loop has ended before." in again.out
    assert "jumar run --max-cost 1 " in again.out
    assert "resume it with a higher limit (--max-cost)" in call("run", "--max-cost", "0.5", "--quiet", check=2).err
    more = run("--max-cost", "1.25")
    assert (more["resumed"], more["spend"]["cost_usd"], more["stop_reason"]) == (True, 1.25, "max_cost")


@pytest.mark.usefixtures("fresh_place")
def test_a_cap_from_the_command_line_stands_on_a_resume_until_another_is_given():
    configure("[budget]\nmax_cost_usd = 2.5")
    assert run("--max-cost", "0.5", "--reserve-cost", "0.25")["spend"]["cost_usd"] == 0.5
    assert call("run", "--json", check=2).document["spend"]["cost_usd"] == 0.5, "said once, it holds for the loop"

    more = call("run", "--json", "--max-cost", "1", "-n", "3", check=0)
    assert more.document["spend"]["cost_usd"] == 0.75
    told = call("run", "--json", check=0)
    assert (told.document["spend"]["cost_usd"], told.document["stop_reason"]) == (1.0, "max_cost")
    assert "the limit of $1.00 given with --max-cost stands" in told.err
    estimated = json.loads(call("run", "--estimate", "--json", check=0).out)
    assert estimated["budget"]["max_cost_usd"] == 1

    configure("[budget]\nmax_cost_usd = 1.5")
    edited = call("run", "--json", check=0)
    assert (edited.document["spend"]["cost_usd"], edited.document["stop_reason"]) == (1.5, "max_cost")
    assert "[budget] max_cost_usd is $1.50 now (in the run before: $2.50), and the one given with --max-cost" in edited.err
    reasons = [
        json.loads(path.read_text())["reason"] for path in sorted(Path(".jumar/loops/night/decisions").glob("*-limits.json"))
    ]
    capped, *others = [reason.split("; ") for reason in reasons]
    assert "--max-cost: $0.50 → $1.00" in capped
    assert [["max_cost_usd in the configuration: $2.50 → $1.50"]] == [each for each in others if "options" not in each[0]]
    assert call("verify", "night").code == 0


@pytest.mark.usefixtures("fresh_place")
def test_a_cap_from_the_command_line_stands_after_a_kill():
    configure()
    config = Path("jumar.toml").read_text()
    jumar = [sys.executable, "-m", "jumar.cli.entry", "run", "--max-cost", "0.75", "--max-seconds", "500"]
    jumar += ["--max-tokens", "9000", "--reserve-cost", "0.25"]
    Path("jumar.toml").write_text(config.replace("sleep 0.01", "touch begun; sleep 60"))
    process = subprocess.Popen(jumar, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while not Path("begun").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.kill()
    process.wait()
    Path("jumar.toml").write_text(config + "[stop]\nmax_seconds = 900\n[budget]\nreserve_tokens = 100\n")

    told = call("run", "--json", "--accept-changes", check=0)

    assert told.document["stop_reason"] == "max_cost"
    assert "the limit of $0.75 given with --max-cost stands" in told.err
    assert "the limit of $0.25 given with --reserve-cost stands" in told.err
    assert "the limit of 9,000 tokens given with --max-tokens stands" in told.err
    assert "[budget] max_seconds is 900 s now (in the run before: none)" in told.err


@pytest.mark.usefixtures("fresh_place")
def test_the_same_command_again_buys_no_second_budget():
    Path("report.json").write_text(SAYS)
    Path("out.txt").write_text("start\n")
    agent = (
        "--keep-going",
        "--check",
        "test -s out.txt",
        "--include",
        "out.txt",
        "--",
        "sh",
        "-c",
        "echo x >> out.txt; cp report.json $JUMAR_USAGE_FILE",
    )
    first = run("-n", "6", "--max-cost", "0.5", "--reserve-cost", "0.25", *agent)
    assert (first["stop_reason"], first["spend"]["cost_usd"]) == ("max_cost", 0.5)

    for same in (("-n", "6", "--max-cost", "0.5"), ("-n", "6"), ("-n", "9", "--max-cost", "0.4")):
        again = call("run", "--json", *same, *agent, check=2)
        assert (again.document["loop_id"], again.document["already_finished"]) == (first["loop_id"], True)
    assert "resume it with a higher limit (--max-cost)" in again.err

    more = run("-n", "3", "--max-cost", "2", *agent)
    assert (more["loop_id"], more["spend"]["cost_usd"], more["stop_reason"]) == (first["loop_id"], 0.75, "max_iterations")
    new = run("-n", "3", "--max-cost", "2", *agent)
    assert (new["loop_id"] == first["loop_id"], new["spend"]["cost_usd"]) == (False, 0.75)
    assert run("-n", "1", "--new", "--max-cost", "2", *agent)["spend"]["cost_usd"] == 0.25


@pytest.mark.usefixtures("fresh_place")
def test_an_unknown_cost_is_null_and_ends_a_loop_that_cannot_keep_its_limit():
    configure(says="")
    assert run("-n", "1")["spend"]["cost_usd"] is None
    done = call("run", "--json", "--max-cost", "1", check=2)
    assert (done.document["stop_reason"], done.document["spend"]["iterations"]) == ("unknown_cost", 1), "nothing was paid for"
    assert "--reserve-cost" in done.err
    more = run("--max-cost", "1", "--reserve-cost", "0.25")
    spend = more["spend"]
    assert (more["stop_reason"], spend["iterations"]) == ("max_cost", 4), "the first one is charged too, now that it is said what"
    assert (spend["cost_usd"], spend["assumed_cost_usd"], spend["unknown_costs"]) == (None, 1.0, 4)


@pytest.mark.usefixtures("fresh_place")
def test_allow_counts_what_is_known_and_stop_takes_no_unknown():
    configure('[budget]\non_unknown_cost = "allow"', says="")
    assert run("--max-cost", "1", "-n", "3")["stop_reason"] == "max_iterations"
    configure('[budget]\non_unknown_cost = "stop"', says="")
    assert run("--new")["stop_reason"] == "unknown_cost"


@pytest.mark.usefixtures("fresh_place")
@pytest.mark.parametrize("given", [("--max-cost", "-1"), ("--max-cost", "nan"), ("--max-tokens", "-1"), ("--max-seconds", "0")])
def test_options_that_are_no_limit_are_refused(given: tuple[str, str]):
    configure()
    refused = call("run", *given, check=2)
    assert given[0].removeprefix("--").split("-")[1] in refused.err
    assert not Path(".jumar/loops").exists()


LESS = """printf '{"cost_usd": 0, "tokens_used": 0, "model": "free"}' > $JUMAR_USAGE_FILE; date +%N > out.txt"""
PRICES = "[budget.price.dear]\ninput = 2\noutput = 2\n[budget.price.free]\ninput = 0\noutput = 0\n"


@pytest.mark.parametrize(
    ("then", "usage"),
    [
        ("""echo '{"cost": 0.25}'""", '{cost = "cost"}'),
        ("""echo '{"in": 125000, "out": 0}'""", '{input = "in", output = "out"}'),
        ("exit 1", '{cost = "cost"}'),
        ("kill -KILL $(ps -o ppid= $$)", '{cost = "cost"}'),
    ],
    ids=["dollars", "tokens", "no report", "killed"],
)
def test_a_usage_file_takes_nothing_off_what_the_output_is_to_tell(fresh_place: Path, then: str, usage: str) -> None:
    (fresh_place / "agent.sh").write_text(f"{LESS}\n{then}\n")
    configure()
    config = Path("jumar.toml").read_text().partition("[generator]")
    limits = '[stop]\nconsecutive_failures = 9\n[budget]\nmax_cost_usd = 1\nreserve_cost_usd = 0.25\nmodel = "dear"\n'
    generator = f"[generator]\ncommand = ['sh', 'agent.sh']\nusage = {usage}\n"
    Path("jumar.toml").write_text(f"{config[0]}{generator}[artifacts]{config[2].partition('[artifacts]')[2]}{limits}{PRICES}")
    command = [sys.executable, "-m", "jumar.cli.entry", "run", "--no-input"]
    ends = [
        subprocess.run(command, capture_output=True, check=False, timeout=60).returncode
        for _ in range(5 if "kill" in then else 1)
    ]
    loop = LoopReader(".jumar/loops/night")
    generated = [attempt for attempt in loop.attempts() if attempt.start.purpose == "generate"]
    assert 4 == len(generated), ends
    assert 1.0 == spend(loop.attempts(), Budget()).charged_cost_usd


TAMPERS = """printf '{"input_tokens": 1000000, "output_tokens": 0, "model": "m"}' > $JUMAR_USAGE_FILE; date +%N > out.txt
[ -e once ] || { touch once; sed -i 's/input = 0.25/input = 0/' prices.toml; THEN; }
"""


@pytest.mark.parametrize("then", ["true", "kill -KILL $(ps -o ppid= $$)"], ids=["ends", "killed"])
def test_the_prices_in_use_are_no_agents_to_lower(fresh_place: Path, then: str) -> None:
    (fresh_place / "agent.sh").write_text(TAMPERS.replace("THEN", then))
    (fresh_place / "prices.toml").write_text('version = "mine"\n[models.m]\ninput = 0.25\noutput = 1\n')
    configure('[budget]\nmax_cost_usd = 1\nreserve_cost_usd = 0.25\nprices = "prices.toml"')
    before, _, after = Path("jumar.toml").read_text().partition('command = "echo x')
    Path("jumar.toml").write_text(f'{before}command = "exec sh agent.sh"{after.partition(chr(34))[2]}')
    command = [sys.executable, "-m", "jumar.cli.entry", "run", "--no-input"]
    if "kill" in then:
        assert -9 == subprocess.run(command, capture_output=True, check=False, timeout=60).returncode
        assert "digests.[budget] prices: 'sha256:" in " ".join(call("run", check=2).err.split())
        prices = fresh_place / "prices.toml"
        prices.write_text(prices.read_text().replace("input = 0", "input = 0.25"))
    done = run()
    assert ("max_cost", 4, 1.0) == (done["stop_reason"], done["spend"]["iterations"], done["spend"]["cost_usd"])
    assert "input = 0.25" in (fresh_place / "prices.toml").read_text()
