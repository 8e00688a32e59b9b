"""Tokens that a generator or a judge reports become dollars, and the attempt says by which prices."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from commands import call

from jumar.app.config.tables import default_prices
from jumar.judging.judges import judge_price
from jumar.loop.generators.generators import PricedGenerator
from jumar.loop.store.loop_reader import LoopReader
from jumar.model import GenerateOutcome, StepContext, Usage
from jumar.model.budget.pricing import PriceRow, Prices, PriceTable

TABLE = PriceTable(version="t1", rows={"m": PriceRow(prices=Prices(input_per_million=2, output_per_million=10))})


@dataclass(frozen=True)
class Says:
    usage: Usage

    def generate(self, context: StepContext) -> GenerateOutcome:  # noqa: ARG002
        return GenerateOutcome(exit_code=0, seconds=1.0, usage=self.usage, notes=("its own note",))


def run(usage: Usage, **more: Any) -> GenerateOutcome:
    return PricedGenerator(generator=Says(usage), table=TABLE, **more).generate(cast("StepContext", None))


def test_an_outcome_gets_its_cost_and_keeps_the_rest():
    outcome = run(Usage(input_tokens=500_000, output_tokens=100_000, model="m", session_id="s"))
    assert (outcome.usage.token_cost_usd, outcome.usage.session_id, outcome.exit_code, outcome.seconds) == (2.0, "s", 0, 1.0)
    assert outcome.notes[0] == "its own note"
    assert outcome.notes[1].startswith("priced: 500,000 input tokens at $2")
    assert run(Usage(input_tokens=500_000, output_tokens=0), model="m").usage.token_cost_usd == 1.0


@pytest.mark.parametrize("usage", [Usage(tokens_used=5), Usage(tokens_used=5, model="m"), Usage(input_tokens=5, model="m")])
def test_what_a_report_lacks_matters_only_under_a_limit_in_dollars(usage: Usage):
    assert run(usage).notes == ("its own note",)
    assert "not priced: " in run(usage, wanted=True).notes[1]
    assert run(usage, wanted=True).usage.token_cost_usd is None


def test_a_model_without_a_price_is_always_told():
    assert "no model 'new'" in run(Usage(tokens_used=5, model="new")).notes[1]


@pytest.mark.parametrize(
    ("spec", "row"),
    [
        ("openai:gpt-5-mini", "gpt-5-mini"),
        ("anthropic:claude-haiku-4-5-20251001", "claude-haiku-4-5"),
        ("http://127.0.0.1:1/v1#gpt-5", None),
        ("command:judge", None),
        ("mock:", None),
        ("openai:unheard-of", None),
        (None, None),
    ],
)
def test_a_judge_at_its_provider_has_the_prices_of_its_model(spec: str | None, row: str | None):
    table = default_prices()
    assert judge_price(spec, table) == (None if row is None else table.rows[row].prices)
    assert judge_price(spec, None) is None


CONFIG = """
[loop]
id = "night"
max_iterations = 1

[generator]
command = 'echo x >> out.txt; cp "$PWD/report.json" "$JUMAR_USAGE_FILE"'

[[checks]]
name = "there"
command = "test -s out.txt"

[[scorers]]
builtin = "checks"

[artifacts]
include = ["out.txt"]

[loop_env]
"""


def configure(report: dict[str, object], more: str = "") -> None:
    Path("jumar.toml").write_text(CONFIG.replace("[loop_env]", more))
    Path("report.json").write_text(json.dumps(report))
    Path("out.txt").write_text("start\n")


@pytest.mark.usefixtures("fresh_place")
def test_a_run_records_the_cost_and_the_prices_that_made_it():
    configure(
        {"input_tokens": 1_000_000, "output_tokens": 100_000, "cached_tokens": 500_000, "model": "mine-2026-01-01"},
        "[budget.price.mine]\ninput = 3\noutput = 10\ncached = 1",
    )
    spend = json.loads(call("run", "--json", check=0).out)["spend"]
    assert spend["cost_usd"] == 3.0
    store = LoopReader(Path(".jumar/loops/night"))
    ended = next(attempt.end for attempt in store.attempts() if attempt.start.purpose == "generate")
    assert ended is not None
    (note,) = ended.notes
    assert note.startswith("priced: 1,000,000 input tokens at $3 (500,000 of them cached at $1) and 100,000 output tokens at $10")
    assert "'mine' of prices [budget.price] over 2026-" in note
    assert store.record(1).token_cost_usd == 3.0
    assert note in store.record(1).reasons


@pytest.mark.usefixtures("fresh_place")
def test_a_run_with_a_model_without_a_price_has_an_unknown_cost_and_says_how_to_give_one():
    configure({"input_tokens": 10, "output_tokens": 10, "model": "unheard-of"})
    spend = json.loads(call("run", "--json", check=0).out)["spend"]
    assert (spend["cost_usd"], spend["tokens"]) == (None, 20)
    reasons = " ".join(LoopReader(Path(".jumar/loops/night")).record(1).reasons)
    assert "has no model 'unheard-of'; add [budget.price.\"unheard-of\"]" in reasons


@pytest.mark.usefixtures("fresh_place")
def test_a_configured_model_without_a_price_is_refused_before_anything_is_made():
    configure({}, '[budget]\nmodel = "unheard-of"')
    refused = call("run", check=2)
    assert "[budget] model: the table of prices has no model 'unheard-of'" in refused.err
    assert not Path(".jumar/loops").exists()
