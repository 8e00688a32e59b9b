"""Real loops over a program that hangs, forks, floods, refuses, cheats, crashes and lies, killed now and then; the same model.

``JUMAR_SWEEP=full`` runs a hundred.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from wild_runs import Ran, audit
from wild_world import Ask, Deed, Scenario

from jumar.app.config.config import load_config
from jumar.app.run.preflight import refuse_generator
from jumar.model import StopRules
from jumar.model.budget.pricing import Budget

SEEDS = range(100) if os.environ.get("JUMAR_SWEEP") == "full" else (0, 1, 2, 3, 4, 5, 6, 19)  # 19: a limit and no reserve
COUNTS: Counter[str] = Counter()
PROGRAM = Path(__file__).parents[1] / "support" / "wild_program.py"

WORKING = ("setsid", "daemon", "many", "flood", "both", "escapes", "wiped-child", "sleep", "sleep", "sleep")
ENDING = {
    "fail": (("fail",), ("exit-2",), ("setsid", "exit-1")),
    "crash": (("segv",), ("daemon", "segv")),
    "hang": (("hang",), ("daemon", "hang"), ("setsid", "hang")),
}
WIPED = "/bin/sleep 300"  # the child without an environment: only group, session and parent give it away, until jumar is killed
CHEATS = ("edit-check", "edit-store", "plant", "edit-start")

pytestmark = [pytest.mark.sweep, pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")]


@dataclass(frozen=True, kw_only=True)
class RealScenario(Scenario):
    """What a program does beside writing a text; its judge costs nothing and always answers."""

    def deed(self, iteration: int, run: int) -> Deed:
        rng = random.Random(f"{self.seed} real {iteration} {run}")
        deed = replace(super().deed(iteration, run), seconds=-1.0, turns=0.0)
        if deed.kind in ENDING:
            return replace(deed, acts=rng.choice(ENDING[deed.kind]))
        if deed.kind == "limited":
            if rng.random() < 0.5:
                return replace(deed, usage={}, acts=("429",))
            return replace(deed, usage={"retry_after": 0.2}, acts=("exit-75",))
        if deed.kind == "mute":
            return deed
        if deed.kind == "write" and rng.random() < 0.2:
            return replace(deed, acts=(rng.choice(CHEATS),), cheats=True)
        return replace(deed, acts=(rng.choice(WORKING),))

    def ask(self, iteration: int, run: int) -> Ask:
        del iteration, run
        return Ask(broken=None, cost=0.0, known=0.0, tokens=0, seconds=0.0)


def draw(seed: int) -> RealScenario:
    rng = random.Random(f"real {seed}")
    return RealScenario(
        seed=seed,
        candidates=(candidates := rng.choice((1, 1, 1, 2, 3))),
        workers=min(candidates, rng.randint(1, 2)),
        continue_from=rng.choice(("previous", "best")),
        rules=StopRules(max_iterations=rng.randint(3, 6), consecutive_failures=3),
        budget=Budget(
            max_cost_usd=rng.choice((None, 0.5, 1.0)),
            max_tokens=rng.choice((None, 9_000)),
            max_iterations=rng.choice((None, 6)),
            reserve_cost_usd=rng.choice((None, 0.1)),
            on_unknown_cost=rng.choice(("charge_reserve", "allow")),
        ),
        retries={"generator_failed": rng.choice((0, 1)), "generator_timeout": 0, "rate_limited": 20, "broken": 1},
    )


def write(directory: Path, scenario: RealScenario) -> None:
    """Write the configuration, and what the program will do."""
    directory.mkdir()
    (directory / "out.txt").write_text("0.3")
    (directory / "check.sh").write_text("! grep -qx 0.7 out.txt\n")
    numbers = range(1, scenario.rules.max_iterations + 1)
    deeds = {number: [asdict(scenario.deed(number, run)) for run in range(30)] for number in numbers}
    (directory / "deeds.json").write_text(json.dumps(deeds))
    arguments = [str(PROGRAM), str(directory / "deeds.json"), str(directory / ".jumar/loops/t")]
    budget = {name: value for name, value in asdict(scenario.budget).items() if value is not None}
    # an output that nothing is read from: in a configuration that can tell the cost no limit in dollars needs a reserve
    usage = "" if "reserve_cost_usd" in budget else 'usage = { cost = "cost" }'
    (directory / "jumar.toml").write_text(
        f"""
[loop]
id = "t"
max_iterations = {scenario.rules.max_iterations}
candidates = {scenario.candidates}
workers = {scenario.workers}
continue_from = "{scenario.continue_from}"
[stop]
consecutive_failures = {scenario.rules.consecutive_failures}
[artifacts]
include = ["out.txt"]
[generator]
command = {json.dumps([sys.executable, "-I", "-S", *arguments])}
timeout = 2
{usage}
[retry]
{_table(scenario.retries)}
[budget]
{_table(budget)}
[[checks]]
name = "wild"
command = "sh check.sh"
[[scorers]]
dimension = "quality"
command = "cat out.txt"
"""
    )


def _table(values: dict[str, Any]) -> str:
    return "\n".join(f"{name} = {json.dumps(value)}" for name, value in values.items())


def run(directory: Path, kill_after: float | None) -> dict[str, Any] | None:
    """Run the loop; None when it was killed after so many seconds, else the final JSON."""
    process = subprocess.Popen(
        [sys.executable, "-m", "jumar.cli.entry", "run", "--json", "--allow-broken-start"],
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    if kill_after is not None:
        time.sleep(kill_after)
        process.send_signal(signal.SIGKILL)
    output, errors = process.communicate(timeout=120)
    if process.returncode == -signal.SIGKILL:
        COUNTS["kills"] += 1
        return None
    assert "Traceback" not in errors, errors
    document = json.loads(output)
    assert "error" not in document, (document, errors)
    return document


def running_in(directory: Path, *, end: bool = False) -> list[str]:
    """Return the commands of the processes that work there; ``end`` ends those that no jumar can know after it was killed."""
    found: list[str] = []
    for process in psutil.process_iter():
        try:
            if Path(process.cwd()).is_relative_to(directory) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.cmdline()))
                if end and found[-1] == WIPED:
                    process.kill()
        except (psutil.Error, OSError):
            continue
    return found


def test_every_configuration_that_is_drawn_is_one_that_runs(tmp_path: Path) -> None:
    drawn = [draw(seed) for seed in range(100)]
    for scenario in drawn:
        write(tmp_path / f"{scenario.seed}", scenario)
        config = load_config(tmp_path / f"{scenario.seed}/jumar.toml")
        refuse_generator(config, tmp_path, configured=True, cost_known=lambda: False)
    assert {(b.max_cost_usd is None, b.reserve_cost_usd is None, b.on_unknown_cost) for b in (one.budget for one in drawn)} == {
        (capped, bare, unknown) for capped in (True, False) for bare in (True, False) for unknown in ("charge_reserve", "allow")
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_the_promises_hold_for_real_programs(tmp_path: Path, seed: int) -> None:
    scenario, directory = draw(seed), tmp_path / "loop"
    write(directory, scenario)
    ran, rng = Ran(directory, scenario), random.Random(f"kills {seed}")
    for _ in range(seed % 3):
        if not ran.is_at_its_end() and run(directory, rng.uniform(0.5, 2)) is None:
            ran.kills += 1
    ended = ran.is_at_its_end()  # killed before it said so, or never reached by the kill
    try:
        if not ended or ran.store().decisions()[-1].data["stop_reason"] != "blocked":  # run again, that would go on
            ran.said = run(directory, None)
            assert ran.said is not None
        audit(ran)
        assert [] == [one for one in running_in(directory, end=True) if not (ran.kills and one == WIPED)]
    except BaseException as error:
        error.add_note(f"seed {seed}, {ran.kills} kills: {scenario}")
        raise
    COUNTS["loops"] += 1
    COUNTS["attempts"] += len(ran.store().attempts())
    COUNTS["caught"] += sum(bool(record.tampering) for record in ran.store().records())


def test_counts_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(
            f"\nreal programs: {COUNTS['loops']} loops, {COUNTS['attempts']} attempts, {COUNTS['kills']} kills, "
            f"{COUNTS['caught']} cheats caught"
        )
