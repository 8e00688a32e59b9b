"""``[[checks]]``, which older configurations call ``[[validators]]``: messages name the table as the person does."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import call

from jumar.app.config.config import load_config, parse_config
from jumar.app.run.request import configured
from jumar.errors import ConfigError

GENERATOR = '[generator]\ncommand = "true"\n'
CHECK = 'name = "t"\ncommand = "true"\n'


def load(tmp_path: Path, text: str):
    (tmp_path / "jumar.toml").write_text(GENERATOR + text)
    return load_config(tmp_path / "jumar.toml")


def test_both_names_are_one_table(tmp_path: Path):
    new, old = (load(tmp_path, f"[[{table}]]\n{CHECK}junit = 'x.xml'\nknown = 'each'\n") for table in ("checks", "validators"))
    assert new == old
    assert [("t", "true", "x.xml", "each")] == [(one.name, one.command, one.junit, one.known) for one in new.validators]
    assert new == parse_config(new.model_dump(mode="json", exclude_unset=True), "what was recorded")
    assert "start" == load(tmp_path, f"[[checks]]\n{CHECK}").validators[0].known


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"[[checks]]\n{CHECK}[[validators]]\n{CHECK}", "[[checks]] and [[validators]] are one table under two names; call it"),
        ("[[checks]]\nname = 't'\ncommand = 3\n", "jumar.toml:5: checks[1].command: "),
        ("[[validators]]\nname = 't'\ncommand = 3\n", "jumar.toml:5: validators[1].command: "),
        (f"[[checks]]\n{CHECK}knwon = 'each'\n", "jumar.toml:6: unknown key 'checks[1].knwon' (did you mean 'known'?)"),
        (f"[[checks]]\n{CHECK}known = 'never'\n", "jumar.toml:6: checks[1].known: input should be 'start', 'each' or 'none'"),
        (f"[[checks]]\n{CHECK}[[checks]]\n{CHECK}", "jumar.toml:3: checks: two checks are called 't'"),
        (f"[[check]]\n{CHECK}", "unknown key 'check' (did you mean 'checks'?); known here: artifacts, budget, checks, "),
        ("", "nothing would be evaluated: add [[checks]], [[scorers]] or [evaluator] (or --check 'COMMAND')"),
    ],
)
def test_what_is_wrong_is_said_by_the_name_that_was_used(text: str, message: str, tmp_path: Path):
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("score", "dimension", "command"),
    [
        ("./bench.sh", "quality", "./bench.sh"),
        ("speed=./bench.sh --runs=3", "speed", "./bench.sh --runs=3"),
        ("words_2=wc -w < a.md", "words_2", "wc -w < a.md"),
        ("MODE=fast ./bench.sh", "quality", "MODE=fast ./bench.sh"),
        ("./bench.sh --runs=3", "quality", "./bench.sh --runs=3"),
    ],
)
def test_a_score_is_a_scorer_of_the_command_line(score: str, dimension: str, command: str, tmp_path: Path):
    alone, _ = configured({"scores": (score, score)}, ["true"])
    assert [(dimension, command)] == [(scorer.dimension, scorer.command) for scorer in alone.scorers]
    load(tmp_path, "[[scorers]]\nbuiltin = 'exit'\n")
    behind, _ = configured({"config": tmp_path, "scores": (score,)})
    assert ["exit", None] == [scorer.builtin for scorer in behind.scorers]


@pytest.mark.parametrize("score", ["", " ", "speed=", "speed= "])
def test_an_empty_score_is_refused(score: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    done = call("run", "--score", score, "--", "true")
    assert (2, True) == (done.code, "--score is empty: give it a shell command" in done.err)


@pytest.mark.parametrize("table", ["checks", "validators"])
def test_checks_of_the_command_line_stand_behind_those_of_the_file(table: str, tmp_path: Path):
    load(tmp_path, f"[[{table}]]\n{CHECK}")
    config, _ = configured({"config": tmp_path, "checks": ("make test", "make test")})
    assert ["t", "make test"] == [check.name for check in config.validators]
    alone, _ = configured({"checks": ("make test",)}, ["true"])
    assert ["make test"] == [check.command for check in alone.validators]
