"""``[evaluator]`` and ``builtin = "judge"`` in a configuration: what is refused, with file, line and key."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jumar.app.config.config import JumarConfig, load_config
from jumar.app.config.evaluator import PARTS
from jumar.app.init import template_text
from jumar.app.run.parts import build_parts
from jumar.errors import ConfigError
from jumar.judging.cheap.evaluator import CheapModeEvaluator
from jumar.judging.items.item import Item
from jumar.judging.models import CheapModeResult, Story
from jumar.loop.scorers import JudgeScorer, build_scorer
from jumar.processes.control import StopSwitch

HEAD = '[generator]\ncommand = "true"\n\n'


def load(tmp_path: Path, text: str) -> JumarConfig:
    path = tmp_path / "jumar.toml"
    path.write_text(HEAD + text)
    return load_config(path)


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises(ConfigError) as raised:
        load(tmp_path, text)
    return str(raised.value).removeprefix(f"{tmp_path}/")


def test_the_least_that_is_needed(tmp_path: Path):
    config = load(tmp_path, '[evaluator]\nitems = "s.jsonl"\njudge = "mock:"\n')
    assert config.evaluator is not None
    assert ("dual", ("s.jsonl",), {"correctness": "gestalt"}) == (
        config.evaluator.mode,
        config.evaluator.paths,
        config.evaluator.dimensions,
    )
    parts = build_parts(config, tmp_path, StopSwitch())
    assert ["correctness"] == [scorer.dimension for scorer in parts.scorers]


def test_prices_and_a_scale_are_two_numbers(tmp_path: Path):
    config = load(tmp_path, "[evaluator]\nitems = ['a', 'b']\njudge = 'mock:'\nprice = [1, 2.5]\njudge_scale = [0, 100]\n")
    assert config.evaluator is not None
    assert ([1, 2.5], [0, 100], ("a", "b")) == (config.evaluator.price, config.evaluator.judge_scale, config.evaluator.paths)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mode = 'cheap'\n", "jumar.toml:4: 'evaluator.items' is missing"),
        ("items = 's'\n", "jumar.toml:4: evaluator: mode 'dual' needs a judge: set judge = 'anthropic:MODEL'"),
        ("items = 's'\nmode = 'cheep'\n", "jumar.toml:6: evaluator.mode: input should be 'cheap', 'expensive', 'dual' or 'auto'"),
        ("items = 's'\njugde = 'mock:'\n", "jumar.toml:6: unknown key 'evaluator.jugde' (did you mean 'judge'?)"),
        ("items = '/s'\n", "jumar.toml:5: evaluator.items: the path '/s' should lie below the working directory"),
        ("items = '../s'\n", "jumar.toml:5: evaluator.items: the path '../s' should lie below"),
        ("items = []\n", "jumar.toml:5: evaluator.items"),
        (
            "items = 's'\njudge = 'opnai:x'\n",
            "jumar.toml:4: evaluator: judge: there is no judge 'opnai' (did you mean 'openai'?)",
        ),
        ("items = 's'\njudge = 'openai'\n", "jumar.toml:4: evaluator: judge: there is no judge 'openai'"),
        ("items = 's'\njudge = 'mock:'\nrepeat = 0\n", "jumar.toml:7: evaluator.repeat: input should be greater than or equal"),
        ("items = 's'\njudge = 'mock:'\nmax_cost = -1\n", "jumar.toml:7: evaluator.max_cost: input should be greater"),
        ("items = 's'\njudge = 'mock:'\nmax_cost = nan\n", "jumar.toml:7: evaluator.max_cost: input should be a finite number"),
        ("items = 's'\njudge = 'mock:'\nprice = [1]\n", "jumar.toml:7: evaluator.price"),
        ("items = 's'\njudge = 'mock:'\nprice = [1, -2]\n", "jumar.toml:7: evaluator.price: prices are 0 or more USD"),
        (
            "items = 's'\njudge = 'mock:'\njudge_scale = [5, 1]\n",
            "jumar.toml:7: evaluator.judge_scale: give two numbers, the lower",
        ),
        ("items = 's'\njudge = 'mock:'\ncache = true\n", "jumar.toml:7: evaluator.cache"),
        (
            "items = 's'\njudge = 'mock:'\nfields = {txt = 'answer'}\n",
            "jumar.toml:7: evaluator.fields: no field 'txt' (did you mean 'text'?)",
        ),
        (
            "items = 's'\njudge = 'mock:'\ndimensions = {correctness = 'gestallt'}\n",
            "evaluator: dimensions.correctness: there is no part 'gestallt' (did you mean 'gestalt'?)",
        ),
        ("items = 's'\njudge = 'mock:'\ndimensions = {' ' = 'gestalt'}\n", "evaluator: dimensions: a dimension needs a name"),
        ("items = 's'\njudge = 'mock:'\ndimensions = {}\n", "jumar.toml:7: evaluator.dimensions"),
        (
            "items = 's'\njudge = 'mock:'\nmode = 'expensive'\ndimensions = {readability = 'sentences'}\n",
            "dimensions.readability: 'sentences' comes from the cheap judge: it needs mode 'dual', 'cheap' or 'auto'",
        ),
        (
            "items = 's'\njudge = 'mock:'\n[evaluator.dimensions]\nx = 3\n",
            "jumar.toml:8: evaluator.dimensions.x: input should be",
        ),
    ],
)
def test_wrong_keys_of_the_evaluator(text: str, message: str, tmp_path: Path):
    assert message in refusal(tmp_path, "[evaluator]\n" + text)


def test_a_judge_that_nobody_knows_is_not_shown_because_it_may_hold_a_key(tmp_path: Path):
    for judge in ("htp://me:sk-1@host#m", "sk-1", "http//me:sk-1@host"):
        assert "sk-1" not in refusal(tmp_path, f"[evaluator]\nitems = 's'\njudge = '{judge}'\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'items' is missing"),
        ("items = 's'\n", "mode 'dual' needs a judge"),
        ("items = 's'\nmode = 'cheap'\nparts = 'x'\n", "unknown option 'parts' (did you mean 'part'?)"),
        ("items = 's'\nmode = 'cheap'\npart = 'invst'\n", "part: there is no part 'invst' (did you mean 'invest'?)"),
        ("items = 's'\nmode = 'cheap'\npart = 3\n", "part: give the name of a part"),
        ("items = 's'\nmode = 'cheap'\ncommand = 'x'\n", "unknown option 'command'"),
        ("items = 's'\njudge = 'mock:'\nconcurrency = 0\n", "concurrency: input should be greater than or equal to 1"),
    ],
)
def test_wrong_options_of_a_judge_scorer(text: str, message: str, tmp_path: Path):
    told = refusal(tmp_path, '[[scorers]]\nbuiltin = "checks"\n\n[[scorers]]\nbuiltin = "judge"\n' + text)
    assert told.startswith("jumar.toml:7: scorers[2]: ")
    assert message in told


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("judge = 'replay:none.jsonl'", "[evaluator] judge: there is no file"),
        ("judge = 'command:no-such-judge'", "[evaluator] judge: command: the program 'no-such-judge' is not found"),
        ("judge = 'openai:m'", "[evaluator] judge: openai:m needs a key: put it into the environment variable OPENAI_API_KEY"),
        ("judge = 'mock:scor=3'", "[evaluator] judge: mock: has no option 'scor' (did you mean 'score'?)"),
        ("mode = 'cheap'\npatterns = 'none.json'", "[evaluator] patterns: "),
        ("mode = 'cheap'\nrubric = 'none.toml'", "[evaluator] rubric: "),
        ("mode = 'cheap'\nrubric = 'bad.toml'", "[evaluator] rubric: "),
    ],
)
def test_what_the_loop_could_not_work_with_is_found_before_it_starts(text: str, message: str, tmp_path: Path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "bad.toml").write_text('name = "x"\nkind = "txt"\n')
    config = load(tmp_path, f"[evaluator]\nitems = 's.jsonl'\n{text}\n")
    with pytest.raises(ConfigError, match=re.escape(message)):
        build_parts(config, tmp_path, StopSwitch())


@pytest.mark.parametrize(
    ("text", "hidden", "message"),
    [
        (
            "judge = 'mock:'",
            "scipy",
            "[evaluator] mode: holding both judges against each other needs scipy, not installed here",
        ),
        ("mode = 'cheap'\npatterns = 'p.json'", "ahocorasick_rs", "[evaluator] patterns: matching patterns needs ahocorasick_rs"),
    ],
)
def test_a_missing_extra_is_named(text: str, hidden: str, message: str, tmp_path: Path, monkeypatch):
    import importlib.util

    real = importlib.util.find_spec
    monkeypatch.setattr("jumar.core.lazy.find_spec", lambda name: None if name == hidden else real(name))
    pattern = (
        '{"id": "p1", "type": "good", "description": "d", "phrases": ["we can"], "source": "s", "weight": 1, "keywords": ["we"]'
    )
    pattern += ', "discovered_at": "2026-01-01T00:00:00", "accuracy": 0, "times_fired": 0, "status": "active"}'
    (tmp_path / "p.json").write_text('{"version": "2.0", "patterns": [' + pattern + "]}")
    config = load(tmp_path, f"[evaluator]\nitems = 's.jsonl'\n{text}\n")
    with pytest.raises(ConfigError, match=re.escape(message)):
        build_parts(config, tmp_path, StopSwitch())


def test_paths_start_at_the_configuration(tmp_path: Path):
    (tmp_path / "judged.jsonl").write_text('{"id": "a", "judge_scores": 4}\n')
    (tmp_path / "judge.sh").write_text("#!/bin/sh\n")
    (tmp_path / "judge.sh").chmod(0o755)
    for judge in ("replay:judged.jsonl", "command:./judge.sh"):
        config = load(tmp_path, f"[evaluator]\nitems = 's.jsonl'\njudge = '{judge}'\n")
        assert 1 == len(build_parts(config, tmp_path, StopSwitch()).scorers)


def test_equal_options_share_one_evaluation(tmp_path: Path):
    scorers = "".join(
        f"[[scorers]]\nbuiltin = 'judge'\nitems = 's'\njudge = 'mock:'\nmode = '{mode}'\ndimension = '{name}'\npart = '{part}'\n"
        for mode, name, part in (("dual", "a", "gestalt"), ("dual", "b", "invest"), ("expensive", "c", "gestalt"))
    )
    config = load(tmp_path, scorers + "[evaluator]\nitems = 's'\njudge = 'mock:'\nmode = 'dual'\n")
    made = [scorer for scorer in build_parts(config, tmp_path, StopSwitch()).scorers if isinstance(scorer, JudgeScorer)]
    assert ["a", "b", "c", "correctness"] == [scorer.dimension for scorer in made]
    assert ["gestalt", "invest", "gestalt", "gestalt"] == [scorer.part for scorer in made]
    assert made[0].shared is made[1].shared is made[3].shared
    assert made[0].shared is not made[2].shared


def test_the_judge_that_a_template_offers_is_valid(tmp_path: Path):
    text = template_text("document.toml")
    block = next(part for part in text.split("\n\n") if 'builtin = "judge"' in part)
    path = tmp_path / "jumar.toml"
    path.write_text(text.replace(block, re.sub("^# ", "", block, flags=re.MULTILINE)))
    assert ["judge"] == [scorer.builtin for scorer in load_config(path).scorers][-1:]


def test_a_judge_scorer_is_put_together_by_the_loop():
    with pytest.raises(ConfigError, match="in a program of your own, make a JudgeScorer"):
        build_scorer("judge", {"items": "s", "mode": "cheap"})


def test_the_parts_are_those_of_the_rubrics():
    story = Story(id="s", title="Add it", description="d", acceptance_criteria=["a"])
    results = CheapModeEvaluator().evaluate([Item.of(story), Item("t", "Some text.", prompt="Which text?")])
    found = {name for one in results if isinstance(one, CheapModeResult) for name in one.sub_scores}
    assert {"gestalt", *found} == set(PARTS)
