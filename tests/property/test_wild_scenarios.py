"""A generator and a judge that fail, hang, refuse, lie and turn the clock, over a hundred seeded loops, against a plain model.

``JUMAR_SWEEP=full`` runs thousands. A failure names its seed and scenario.
"""

from __future__ import annotations

import os
import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from wild_runs import COUNTS, audit, carry_out, carry_out_again, facts
from wild_world import draw

from jumar.model.budget.pricing import Budget

FULL = os.environ.get("JUMAR_SWEEP") == "full"
BLOCK = 20
BLOCKS = 200 if FULL else 3

pytestmark = pytest.mark.sweep


def seeds(block: int) -> range:
    return range(block * BLOCK, (block + 1) * BLOCK)


@pytest.mark.parametrize("block", range(BLOCKS))
def test_the_promises_hold_whatever_the_generator_does(tmp_path: Path, block: int) -> None:
    for seed in seeds(block):
        scenario = draw(seed)
        for name, kills in (("whole", 0), ("killed", 1 + seed % 4)):
            place = tmp_path / f"{seed}-{name}"
            try:
                ran = carry_out(place, scenario, kills=kills)
                audit(ran)
            except Exception as error:
                error.add_note(f"seed {seed}, {name}: {scenario}")
                raise
            shutil.rmtree(place)


@pytest.mark.parametrize("block", range(BLOCKS // 3))
def test_the_same_seed_decides_the_same_and_killed_as_not_killed(tmp_path: Path, block: int) -> None:
    """Without limits on what an attempt that was killed is charged for, nobody can tell that there were kills."""
    for seed in seeds(1000 + block):
        scenario = draw(seed)
        scenario = replace(scenario, budget=Budget(), candidates=1 + seed % 3, workers=1 + seed % 3 % 2)
        if scenario.candidates > 1:  # how many others had begun when one gives up depends on who was killed
            scenario = replace(scenario, retries=scenario.retries | {"rate_limited": 20})
        expected = carry_out(tmp_path / f"{seed}-a", scenario)
        for name, kills in (("b", 0), ("c", 1), ("d", 1 + seed % 6)):
            ran = carry_out(tmp_path / f"{seed}-{name}", scenario, kills=kills, salt=name)
            try:
                audit(ran)
                assert facts(expected) == facts(ran)
                if expected.outcome is not None and ran.outcome is not None:
                    assert expected.outcome.stop == ran.outcome.stop
                    assert expected.outcome.selection == ran.outcome.selection
                if not kills and scenario.workers == 1:
                    assert expected.outcome is not None
                    assert ran.outcome is not None
                    assert expected.outcome.to_json()["spend"] == ran.outcome.to_json()["spend"]
                    assert [one.seconds for one in expected.waits] == [one.seconds for one in ran.waits]
            except Exception as error:
                error.add_note(f"seed {seed}, {name}, {ran.kills} kills: {scenario}")
                raise
        COUNTS["compared"] += 3
        for name in "abcd":
            shutil.rmtree(tmp_path / f"{seed}-{name}")


def test_what_a_judge_or_a_generator_is_paid_is_in_the_ledger_and_in_nothing_else(tmp_path: Path) -> None:
    """A finished loop pays nothing when it is run again, whatever happened in it."""
    for seed in random.Random(6).sample(range(10_000, 20_000), 25 if not FULL else 1000):
        scenario = draw(seed)
        ran = carry_out(tmp_path / str(seed), scenario)
        assert ran.outcome is not None
        before = (len(ran.store().attempts()), facts(ran))
        if ran.outcome.stop.reason in {"blocked", "rate_limited"}:
            continue  # a person saw to it: these go on
        again = carry_out_again(ran)
        assert again.already_finished
        assert before == (len(ran.store().attempts()), facts(ran))
        assert ran.outcome.to_json()["spend"] == again.to_json()["spend"]


def test_counts_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        ends = ", ".join(f"{name.removeprefix('ended: ')} {count}" for name, count in sorted(COUNTS.items()) if "ended" in name)
        print(
            f"\nwild: {COUNTS['scenarios']} loops, {COUNTS['kills']} kills, {COUNTS['attempts']} attempts, "
            f"{COUNTS['iterations']} iterations, {COUNTS['compared']} compared; ended by {ends}"
        )
