"""What attempts cost by their tokens: which row is taken, what is computed, and what stays unknown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.app.config.tables import BudgetConfig, default_prices, load_prices
from jumar.errors import ConfigError
from jumar.judging import Prices as JudgePrices
from jumar.model.budget.pricing import PriceRow, Prices, PriceTable, price_usage
from jumar.model.records import Usage


def table(**rows: tuple[float, float]) -> PriceTable:
    made = {name.replace("_", "-"): Prices(input_per_million=low, output_per_million=high) for name, (low, high) in rows.items()}
    return PriceTable(version="t1", rows={name: PriceRow(prices=prices) for name, prices in made.items()})


def names(*rows: str) -> PriceTable:
    prices = Prices(input_per_million=1, output_per_million=2)
    return PriceTable(version="t1", rows={name: PriceRow(prices=prices) for name in rows})


@pytest.mark.parametrize(
    ("model", "row"),
    [
        ("gpt-5", "gpt-5"),
        (" GPT-5 ", "gpt-5"),
        ("openai/gpt-5", "gpt-5"),
        ("openrouter/openai/gpt-5-mini", "gpt-5-mini"),
        ("gpt-5-2025-08-07", "gpt-5"),
        ("gpt-5-latest", "gpt-5"),
        ("claude-x-4-5-20250929", "claude-x-4-5"),
        ("claude-x-4-5@20250929", "claude-x-4-5"),
        ("claude-x-4-5[1m]", "claude-x-4-5"),
        ("claude-x-4-5-20250929[1m]", "claude-x-4-5"),
        ("mine-3-large", "mine-*"),
        ("mine-4-large", "mine-4*"),
        ("local/mine-4-large", "mine-4*"),
        ("house/special", "house/special"),
        ("gpt-5-mini", "gpt-5-mini"),
        ("gpt-5-nano", None),
        ("gpt-50", None),
        ("gpt-5-codex", None),
        ("gpt-5.1", None),
        ("claude-x-4", None),
        ("", None),
    ],
)
def test_which_row_a_model_gets(model, row):
    known = names("gpt-5", "gpt-5-mini", "claude-x-4-5", "mine-*", "mine-4*", "house/special", "special")
    found = known.find(model)
    assert (found and found[0]) == row


def test_a_model_that_is_in_the_table_is_found_whatever_stands_around_it():
    known = names("gpt-5", "gpt-5-mini")
    assert known.find("gpt-5-mini-2025-08-07") == ("gpt-5-mini", known.rows["gpt-5-mini"])


def test_cost_is_computed_and_labelled():
    priced = price_usage(Usage(input_tokens=1_000_000, output_tokens=100_000, model="m"), table(m=(2.0, 10.0)))
    assert priced.usage.token_cost_usd == 3.0
    what = "1,000,000 input tokens at $2 and 100,000 output tokens at $10 a million"
    assert priced.notes == (f"priced: {what}, 'm' of prices t1 ({table(m=(2.0, 10.0)).digest})",)
    assert priced.row == {"input_per_million": 2.0, "output_per_million": 10.0, "cached_per_million": None}


def test_cached_tokens_are_a_part_of_the_input():
    prices = Prices(input_per_million=2.0, output_per_million=10.0, cached_per_million=0.5)
    usage = Usage(input_tokens=1_000_000, output_tokens=0, cached_tokens=400_000)
    assert prices.cost(usage) == pytest.approx(0.6 * 2 + 0.4 * 0.5)
    assert prices.cost(Usage(input_tokens=1_000_000, output_tokens=0, cached_tokens=9_000_000)) == pytest.approx(0.5)
    assert prices.cost(Usage(input_tokens=1_000_000, output_tokens=0)) == 2.0
    assert Prices(input_per_million=2.0, output_per_million=10.0).cost(usage) == 2.0
    known = PriceTable(version="v", rows={"m": PriceRow(prices=prices)})
    assert "(400,000 of them cached at $0.5)" in price_usage(usage, known, model="m").notes[0]


@given(tokens=st.tuples(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**9)))
def test_cached_input_is_never_dearer_and_never_free(tokens):
    given_in, given_out, cached = tokens
    prices = Prices(input_per_million=3.0, output_per_million=15.0, cached_per_million=0.3)
    full = prices.cost(Usage(input_tokens=given_in, output_tokens=given_out))
    less = prices.cost(Usage(input_tokens=given_in, output_tokens=given_out, cached_tokens=cached))
    assert full is not None
    assert less is not None
    assert full * 0.1 - 1e-9 <= less <= full * (1 + 1e-12)


def test_what_the_generator_says_itself_wins():
    usage = Usage(input_tokens=10, output_tokens=10, token_cost_usd=0.5, model="m")
    assert price_usage(usage, table(m=(2.0, 10.0))).usage == usage
    assert price_usage(usage, table(m=(2.0, 10.0))).notes == ()


@pytest.mark.parametrize("usage", [Usage(), Usage(model="m"), Usage(model="nobody"), Usage(tokens_used=0)])
def test_without_tokens_there_is_nothing_to_price(usage):
    assert price_usage(usage, table(m=(2.0, 10.0))).notes == ()
    assert price_usage(usage, table(m=(2.0, 10.0))).usage == usage


@pytest.mark.parametrize(
    ("usage", "says"),
    [
        (Usage(input_tokens=1, output_tokens=2, model="gpt-51"), "has no model 'gpt-51' (did you mean 'gpt-5'?)"),
        (Usage(input_tokens=1, output_tokens=2, model="new"), 'add [budget.price."new"] with input and output'),
        (Usage(input_tokens=1, output_tokens=2), "reports tokens and no model"),
        (Usage(tokens_used=3, model="gpt-5"), "no input_tokens"),
        (Usage(input_tokens=3, model="gpt-5"), "no output_tokens"),
    ],
)
def test_what_cannot_be_priced_is_unknown_and_the_note_says_why(usage, says):
    priced = price_usage(usage, names("gpt-5"))
    assert priced.usage == usage
    assert says in priced.notes[0]
    assert priced.notes[0].endswith("the cost is unknown") or "unknown" in priced.notes[0]


def test_a_model_may_be_assumed():
    assert (
        price_usage(Usage(input_tokens=0, output_tokens=1_000_000), table(m=(2.0, 10.0)), model="m").usage.token_cost_usd == 10.0
    )
    other = Usage(input_tokens=0, output_tokens=1_000_000, model="other")
    assert price_usage(other, table(m=(2.0, 10.0)), model="m").usage.token_cost_usd is None, "a reported model is not overridden"


def test_the_digest_is_that_of_the_prices():
    one, other = table(a=(1, 2), b=(3, 4)), table(b=(3, 4), a=(1, 2))
    assert one.digest == other.digest
    assert len({one.digest, table(a=(1, 2)).digest, table(a=(1, 2), b=(3, 5)).digest}) == 3


def test_the_table_that_comes_with_jumar():
    shipped = default_prices()
    assert len(shipped.rows) >= 20
    for name, row in shipped.rows.items():
        assert name == name.lower()
        assert row.source in {"Anthropic", "OpenAI", "Google"}
        assert row.date.startswith("2026-")
        assert 0 < row.prices.input_per_million < row.prices.output_per_million
        assert row.prices.cached_per_million is None or row.prices.cached_per_million < row.prices.input_per_million
    assert shipped.version == "2026-11-22"


def config(**given: Any) -> BudgetConfig:
    return BudgetConfig.model_validate(given)


def test_a_persons_prices_lie_over_the_table(tmp_path: Path):
    file = tmp_path / "prices.toml"
    file.write_text('version = "mine"\n[models."gpt-5"]\ninput = 9\noutput = 9.5\n[models."Home-1"]\ninput = 0\noutput = 0\n')
    loaded = load_prices(config(prices="prices.toml", price={"home-2": {"input": 1, "output": 2, "cached": 0.5}}), tmp_path)
    assert loaded.version == "[budget.price] over mine over 2026-11-22"
    assert loaded.rows["gpt-5"].prices == Prices(input_per_million=9, output_per_million=9.5)
    assert loaded.rows["home-1"].prices.cost(Usage(input_tokens=5, output_tokens=5)) == 0.0
    assert loaded.rows["home-2"].prices.cached_per_million == 0.5
    assert set(default_prices().rows) < set(loaded.rows)
    assert load_prices(config(), tmp_path) == default_prices()


def test_a_file_without_a_version_goes_by_its_name(tmp_path: Path):
    (tmp_path / "p.toml").write_text("[models.m]\ninput = 1\noutput = 2\n")
    assert load_prices(config(prices="p.toml"), tmp_path).version == "p.toml over 2026-11-22"
    (tmp_path / "p.toml").write_text("")
    assert load_prices(config(prices="p.toml"), tmp_path).version == "2026-11-22", "a file without rows changes nothing"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[models.m]\ninput = -1\noutput = 2\n", "prices.toml:2: models.m.input: input should be greater than or equal to 0"),
        ("[models.m]\ninput = nan\noutput = 2\n", "models.m.input: input should be"),
        ("[models.m]\ninput = inf\noutput = 2\n", "models.m.input: input should be a finite number"),
        ("[models.m]\ninput = true\noutput = 2\n", "models.m.input: input should be a valid number"),
        ('[models.m]\ninput = "3"\noutput = 2\n', "models.m.input: input should be a valid number"),
        ("[models.m]\ninput = 1\n", "'models.m.output' is missing"),
        ("[models.m]\ninput = 1\noutput = 2\ncahced = 1\n", "unknown key 'models.m.cahced' (did you mean 'cached'?)"),
        ("[model.m]\ninput = 1\n", "unknown key 'model' (did you mean 'models'?)"),
        ("format = 2\n", "format"),
        ("[models.m\n", "not valid TOML"),
        ("[models.M]\ninput = 1\noutput = 2\n[models.m]\ninput = 1\noutput = 2\n", "'m' has two prices"),
    ],
)
def test_a_table_of_prices_that_cannot_be_used_is_refused(tmp_path: Path, text, says):
    (tmp_path / "prices.toml").write_text(text)
    with pytest.raises(ConfigError) as refused:
        load_prices(config(prices="prices.toml"), tmp_path)
    assert says in str(refused.value)


def test_a_missing_file_and_a_model_without_a_price_are_refused_at_the_start(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"\[budget\] prices: .*none\.toml: no such file; it holds"):
        load_prices(config(prices="none.toml"), tmp_path)
    with pytest.raises(
        ConfigError, match=r"\[budget\] model: the table of prices has no model 'gtp-5' \(did you mean 'gpt-5'\?\)"
    ):
        load_prices(config(model="gtp-5"), tmp_path)
    assert load_prices(config(model="gpt-5"), tmp_path).find("gpt-5") is not None


def test_judges_and_loops_price_alike():
    assert JudgePrices is Prices
