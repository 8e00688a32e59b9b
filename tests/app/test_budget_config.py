"""`[budget]`: what is refused, with the key's name, and how command-line options are laid over it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jumar import BestOutputTracker
from jumar.app.config.config import load_config
from jumar.app.run.request import _places, configured
from jumar.errors import ConfigError
from jumar.model import Budget

REST = '[generator]\ncommand = "true"\n[[checks]]\nname = "t"\ncommand = "true"\n'


def load(tmp_path: Path, text: str):
    file = tmp_path / "jumar.toml"
    file.write_text(text + REST)
    return load_config(file)


def test_all_keys_become_limits(tmp_path: Path):
    text = (
        "[budget]\nmax_cost_usd = 2\nmax_tokens = 1000\nmax_seconds = 3600.5\nmax_iterations = 7\nmax_calls_per_hour = 20\n"
        'reserve_cost_usd = 0.25\nreserve_tokens = 50\non_unknown_cost = "stop"\n'
    )
    assert load(tmp_path, text).budget.limits() == Budget(
        max_cost_usd=2.0,
        max_tokens=1000,
        max_seconds=3600.5,
        max_iterations=7,
        max_calls_per_hour=20,
        reserve_cost_usd=0.25,
        reserve_tokens=50,
        on_unknown_cost="stop",
    )
    assert load(tmp_path, "").budget.limits() == Budget()


@pytest.mark.parametrize(
    "line",
    [
        "max_cost_usd = -1",
        "max_cost_usd = nan",
        "max_cost_usd = inf",
        "max_cost_usd = true",
        'max_cost_usd = "10"',
        "max_tokens = -1",
        "max_tokens = 1.5",
        "max_tokens = false",
        "max_seconds = 0",
        "max_seconds = -0.5",
        "max_seconds = nan",
        'max_seconds = "1h"',
        "max_iterations = 0",
        "max_iterations = true",
        "max_calls_per_hour = 0",
        "reserve_cost_usd = -0.01",
        "reserve_cost_usd = inf",
        "reserve_tokens = -5",
        'on_unknown_cost = "ignore"',
        'model = ""',
        "prices = 3",
    ],
)
def test_what_is_no_limit_is_refused_by_name_and_line(tmp_path: Path, line: str):
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, f"[budget]\n{line}\n")
    assert f"jumar.toml:2: budget.{line.partition(' ')[0]}: " in str(refused.value)


def test_unknown_keys_name_the_nearest(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"unknown key 'budget.max_cost' \(did you mean 'max_cost_usd'\?\)"):
        load(tmp_path, "[budget]\nmax_cost = 3\n")
    with pytest.raises(ConfigError, match=r"unknown key 'budget.price.m.inptu' \(did you mean 'input'\?\)"):
        load(tmp_path, "[budget.price.m]\ninput = 1\noutput = 1\ninptu = 3\n")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "reserve_cost_usd = 2\nmax_cost_usd = 1.5",
            "reserve_cost_usd = 2 is more than max_cost_usd = 1.5: no iteration could ever begin",
        ),
        ("reserve_tokens = 20\nmax_tokens = 10", "reserve_tokens = 20 is more than max_tokens = 10"),
    ],
)
def test_a_reservation_that_no_pass_can_have_is_refused(tmp_path: Path, text: str, says: str):
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, f"[budget]\n{text}\n")
    assert says in str(refused.value)


@pytest.mark.parametrize("table", ["[stop]\ntarget", "[selection]\nthreshold"])
@pytest.mark.parametrize(("given", "meant"), [("0.85", "85"), ("0.7", "70"), ("1e-3", "0.1"), ("0.999", "99.9")])
def test_a_score_that_is_a_share_of_one_says_what_was_meant(tmp_path: Path, table: str, given: str, meant: str):
    with pytest.raises(ConfigError, match=f"scores are from 0 to 100, .* write {meant}"):
        load(tmp_path, f"{table} = {given}\n")


@pytest.mark.parametrize("table", ["[stop]\ntarget", "[selection]\nthreshold"])
@pytest.mark.parametrize(("given", "meant"), [("85%", "85"), ("0.7%", "70"), ("7.5 %", "7.5")])
def test_a_score_in_per_cent_says_what_to_write(tmp_path: Path, table: str, given: str, meant: str):
    with pytest.raises(ConfigError, match=f"scores are points from 0 to 100: write {meant}, without a sign"):
        load(tmp_path, f'{table} = "{given}"\n')


@pytest.mark.parametrize("score", ["0", "1", "1.5", "100"])
def test_a_score_of_the_scale_is_taken(tmp_path: Path, score: str):
    load(tmp_path, f"[stop]\ntarget = {score}\n")


def test_a_tracker_refuses_a_share_of_one_too(tmp_path: Path):
    tracker = BestOutputTracker("t", storage_path=tmp_path / "t")
    with pytest.raises(ConfigError, match="write 70"):
        tracker.compute_selection(threshold=0.7)


def test_two_limits_on_one_time_are_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"\[budget\] max_seconds and \[stop\] max_seconds are one limit; keep one"):
        load(tmp_path, "[budget]\nmax_seconds = 3\n[stop]\nmax_seconds = 3\n")


def options(**given: Any) -> dict[str, Any]:
    return {"config": None, **given}


def test_options_are_laid_over_the_file(tmp_path: Path):
    load(tmp_path, "[budget]\nmax_cost_usd = 1\nmax_tokens = 5\n[stop]\nmax_seconds = 9\n")
    merged, _ = configured(options(config=tmp_path, max_cost=2.5, max_seconds=60.0))
    assert (merged.budget.max_cost_usd, merged.budget.max_tokens, merged.budget.max_seconds) == (2.5, 5, 60.0)
    assert merged.stop_rules().max_seconds is None
    alone, path = configured({"checks": ["true"], "max_tokens": 7, "max_cost": 0.0}, ["true"])
    assert path is None
    assert alone.budget.limits() == Budget(max_tokens=7, max_cost_usd=0.0)


def test_a_flag_that_nobody_gave_changes_nothing(tmp_path: Path):
    load(tmp_path, '[loop]\ncandidates = 3\n[stop]\ntarget = 90\n[selection]\nmode = "highest_quality"\n')
    assert configured(options(config=tmp_path)) == configured(
        options(config=tmp_path, **dict.fromkeys(_places(lists=False), False))
    )
