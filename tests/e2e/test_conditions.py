"""Real programs that wait, are blocked, fail at times and cost money: what the loop makes of them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from loops import jumar, jumar_json, write_loop

AGENT = """
import json, os, sys
from pathlib import Path

calls = Path("calls.log")
done = calls.read_text().split() if calls.exists() else []
n = int(os.environ["JUMAR_ITERATION"])
mine = sum(word == str(n) for word in done)
calls.write_text(" ".join([*done, str(n)]))
plan = {plan!r}.get(n, ["ok"])
what = plan[min(mine, len(plan) - 1)]
usage = {{"token_cost_usd": {cost!r}, "tokens_used": 10}}
if what == "wait":
    usage["retry_after"] = 0.4
    print("slow down")
if what == "polite":
    usage.update(rate_limited=True, retry_after=0.1)
if what == "limited":
    print("HTTP 429: rate limit; retry after 300ms", file=sys.stderr)
if what in ("ok", "blocked"):
    Path("score.txt").write_text(str(0.5 + n / 100))
    Path("text.md").write_text("pass %d" % n)
if what == "silent":
    usage = {{}}
    Path("score.txt").write_text(str(0.5 + n / 100))
    Path("text.md").write_text("pass %d" % n)
if what == "blocked":
    print("cannot read the key of the database")
Path(os.environ["JUMAR_USAGE_FILE"]).write_text(json.dumps(usage))
sys.exit({{"wait": 75, "limited": 1, "fail": 3, "blocked": 77}}.get(what, 0))
"""


def loop_of(
    directory: Path, plan: dict[int, list[str]], *, passes: int = 2, cost: float | None = 0.25, extra: str = "", **more: Any
) -> Path:
    config = write_loop(directory, [0.5] * passes, extra=extra, **more)
    (directory / "agent.py").write_text(AGENT.format(plan=plan, cost=cost))
    return config


def outcomes(directory: Path, purpose: str = "generate") -> list[tuple[int, str]]:
    """Return iteration and outcome of the attempts in order."""
    attempts = directory / ".jumar" / "loops" / "t" / "attempts"
    found: list[tuple[int, str]] = []
    for start in sorted(attempts.glob("*.start.json")):
        begun = json.loads(start.read_text())
        end = json.loads(start.with_name(start.name.replace("start", "end")).read_text())
        if begun["purpose"] == purpose:
            found.append((begun["iteration"], end["outcome"]))
    return found


def test_a_provider_that_refuses_is_waited_for_and_takes_no_iteration(tmp_path: Path) -> None:
    loop_of(tmp_path, {1: ["wait", "limited", "polite", "ok"]})
    began = time.monotonic()

    result = jumar_json(tmp_path, "run")

    assert outcomes(tmp_path) == [*[(1, "rate_limited")] * 3, (1, "ok"), (2, "ok")]
    assert result["final_iteration"] == 2
    assert result["failures"] == {"rate_limited": 3}
    assert result["spend"]["iterations"] == 5
    assert result["spend"]["cost_usd"] == 1.25, "what refused runs report is paid too"
    assert time.monotonic() - began >= 0.7


def test_a_provider_that_keeps_refusing_ends_the_loop_which_can_go_on(tmp_path: Path) -> None:
    loop_of(tmp_path, {1: ["wait", "wait", "ok"]}, extra="[retry]\nrate_limited = 1\n")

    result = jumar_json(tmp_path, "run")
    assert result["stop_reason"] == "rate_limited"
    assert outcomes(tmp_path) == [(1, "rate_limited")] * 2

    again = jumar_json(tmp_path, "run")
    assert again["stop_reason"] == "max_iterations"
    assert outcomes(tmp_path)[2:] == [(1, "ok"), (2, "ok")]


def test_a_blocked_generator_ends_the_loop_and_running_it_again_goes_on(tmp_path: Path) -> None:
    loop_of(tmp_path, {2: ["blocked"]}, passes=3)

    result = jumar_json(tmp_path, "run")
    assert result["stop_reason"] == "blocked"
    assert "cannot read the key of the database" in result["stop_detail"]
    assert result["failures"] == {"blocked": 1}
    assert result["selected_iteration"] == 2, "what a blocked pass made is scored all the same"

    again = jumar_json(tmp_path, "run")
    assert again["stop_reason"] == "max_iterations"
    assert again["final_iteration"] == 3


def test_failed_runs_are_tried_again_as_often_as_told(tmp_path: Path) -> None:
    loop_of(tmp_path, {1: ["fail", "fail", "ok"], 2: ["fail"]}, extra="[retry]\ngenerator_failed = 2\n")

    result = jumar_json(tmp_path, "run")

    assert outcomes(tmp_path) == [(1, "failed"), (1, "failed"), (1, "ok"), (2, "failed"), (2, "failed"), (2, "failed")]
    assert result["failures"] == {"generator_failed": 5}
    assert result["final_iteration"] == 2
    assert result["selected_iteration"] == 1


def test_a_scorer_that_could_not_answer_is_asked_again_and_the_generator_is_not(tmp_path: Path) -> None:
    loop_of(tmp_path, {}, passes=1)
    flaky = "test -e asked || { touch asked; kill -9 $$; }; cat score.txt"
    config = tmp_path / "jumar.toml"
    config.write_text(config.read_text().replace('command = "cat score.txt"', f'command = "{flaky}"'))

    result = jumar_json(tmp_path, "run")

    assert outcomes(tmp_path, "score") == [(0, "broken"), (0, "ok"), (1, "ok")]
    assert outcomes(tmp_path) == [(1, "ok")]
    assert result["failures"] == {"scorer_broken": 1}
    assert result["selected_iteration"] == 1


def test_passes_that_change_nothing_end_the_loop(tmp_path: Path) -> None:
    loop_of(tmp_path, {n: ["nothing"] for n in range(1, 9)}, passes=8)

    result = jumar_json(tmp_path, "run")

    assert result["stop_reason"] == "consecutive_failures"
    assert "produced nothing" in result["stop_detail"]
    assert result["failures"] == {"produced_nothing": 3}


def test_a_dollar_cap_keeps_room_for_the_next_pass_and_survives_a_resume(tmp_path: Path) -> None:
    loop_of(tmp_path, {}, passes=9, extra="[budget]\nmax_cost_usd = 0.8\nreserve_cost_usd = 0.25\n")

    result = jumar_json(tmp_path, "run")
    assert result["stop_reason"] == "max_cost"
    assert result["spend"]["cost_usd"] == 0.75
    assert result["budget_left"]["cost_usd"] == 0.8 - 0.75
    assert result["final_iteration"] == 3

    assert jumar_json(tmp_path, "run", check=2)["spend"]["cost_usd"] == 0.75
    (tmp_path / "jumar.toml").write_text((tmp_path / "jumar.toml").read_text().replace("0.8", "1.0"))
    more = jumar_json(tmp_path, "run")
    assert more["final_iteration"] == 4
    assert more["spend"]["cost_usd"] == 1.0


def test_an_unknown_cost_is_null_and_stops_a_cap_that_has_nothing_to_charge(tmp_path: Path) -> None:
    loop_of(tmp_path, {1: ["ok", "silent"]}, passes=3)
    jumar_json(tmp_path, "run", "-n", "1")  # which tells that it can be known

    result = jumar_json(tmp_path, "run", "--new", "--max-cost", "5", "--id", "capped")

    assert result["stop_reason"] == "unknown_cost"
    assert result["spend"]["cost_usd"] is None
    assert result["final_iteration"] == 1, "what was paid for is scored"


def killed_when(directory: Path, path: str) -> None:
    """Start ``jumar run`` and kill it with SIGKILL as soon as ``path`` exists."""
    run = subprocess.Popen([sys.executable, "-m", "jumar.cli.entry", "run", "-q"], cwd=directory)
    try:
        end = time.monotonic() + 60
        while not (directory / path).exists():
            assert time.monotonic() < end
            time.sleep(0.02)
    finally:
        run.send_signal(signal.SIGKILL)
        run.wait()


def test_what_a_killed_pass_had_reported_is_charged_and_not_a_guess(tmp_path: Path) -> None:
    loop_of(tmp_path, {}, passes=2, extra="[budget]\nreserve_cost_usd = 0.1\n")
    agent = (tmp_path / "agent.py").read_text()
    hang = "if not os.path.exists('go'): open('told', 'w').close(); import time; time.sleep(60)\n"
    (tmp_path / "agent.py").write_text(agent.replace("sys.exit", hang + "sys.exit"))
    killed_when(tmp_path, "told")
    (tmp_path / "go").touch()

    done = jumar(tmp_path, "run", "--json")
    result = json.loads(done.stdout)

    assert result["failures"] == {"lost": 1}
    assert result["spend"]["cost_usd"] == 0.75
    assert result["spend"]["assumed_cost_usd"] == 0
    assert "$0.25 are charged, as it had reported" in done.stderr


def test_edits_made_after_a_kill_in_scoring_are_set_aside_and_told(tmp_path: Path) -> None:
    config = loop_of(tmp_path, {}, passes=1)
    slow = f"test -e {tmp_path}/go || test $JUMAR_ITERATION = 0 || {{ touch {tmp_path}/scoring; sleep 60; }}; cat score.txt"
    config.write_text(config.read_text().replace('command = "cat score.txt"', f'command = "{slow}"'))
    killed_when(tmp_path, "scoring")
    (tmp_path / "go").touch()
    (tmp_path / "text.md").write_text("mine")

    done = jumar(tmp_path, "run", "--json")

    assert "text.md; what was there is in" in done.stderr
    assert (tmp_path / ".jumar/loops/t/set-aside/0001/artifacts/text.md").read_text() == "mine"
    assert json.loads(done.stdout)["spend"]["iterations"] == 1, "the iteration is scored, not made again"


def test_candidates_of_a_killed_run_are_made_again_and_counted_once(tmp_path: Path) -> None:
    config = loop_of(tmp_path, {}, passes=4, loop="candidates = 2")
    text = config.read_text().replace('"agent.py"', json.dumps(str(tmp_path / "agent.py")))
    config.write_text(text)
    agent = (tmp_path / "agent.py").read_text()
    slow = (
        f"import os, time\nif os.environ['JUMAR_CANDIDATE'] == '2' and not os.path.exists('{tmp_path}/killed'): time.sleep(60)\n"
    )
    (tmp_path / "agent.py").write_text(slow + agent)
    killed_when(tmp_path, ".jumar/loops/t/iterations/iteration-001")
    (tmp_path / "killed").touch()

    result = jumar_json(tmp_path, "run")

    assert outcomes(tmp_path).count((2, "lost")) == 1
    assert sorted(number for number, outcome in outcomes(tmp_path) if outcome == "ok") == [1, 2, 3, 4]
    assert result["failures"] == {"lost": 1}
    assert result["final_iteration"] == 4
    assert jumar(tmp_path, "verify", "t").returncode == 0


def test_finalists_of_candidates_are_read_again_outside_of_the_persons_tree(tmp_path: Path) -> None:
    config = loop_of(tmp_path, {}, passes=4, loop="candidates = 2\nworkers = 1", extra="[noise]\nrescore = 1\n")
    number = "(int(e['JUMAR_SEED']) * 7 + 31 * int(e.get('JUMAR_REPEAT', 0))) % 97"
    noisy = f'python3 -c \\"import os; e = os.environ; print(0.5 + {number} / 1000)\\"'
    spy = f"pwd >> {tmp_path}/where.log; "
    text = config.read_text().replace('"agent.py"', json.dumps(str(tmp_path / "agent.py")))
    config.write_text(text.replace('command = "cat score.txt"', f'command = "{spy}{noisy}"\nrepeat = 2'))

    result = jumar_json(tmp_path, "run")

    read_in = (tmp_path / "where.log").read_text().split()
    assert read_in[:2] == [str(tmp_path)] * 2, "the start is scored where it lies"
    assert str(tmp_path) not in read_in[2:], "nothing else is"
    assert len(read_in) > 2 * 5, "finalists were read again"
    assert result["final_iteration"] == 4
    assert (tmp_path / "text.md").read_text() == (
        "pass 0\n" if result["selected_iteration"] == 0 else f"pass {result['selected_iteration']}"
    )
