"""``--agent`` and ``-p``: which generator and objective they make, beside a file or a command too, and what they refuse."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from commands import call

from jumar.app.agents import AGENTS, Agent
from jumar.app.run.request import configured

# An agent that writes beside its own script what it was started with and what it read.
STAND_IN = """#!/bin/sh
printf '%s\\n' "$@" > "${{0%/*}}/words.txt"
cat > "${{0%/*}}/read.txt"
echo more >> work.txt
cat <<'PRINTED'
{printed}
PRINTED
"""
COST = '{"total_cost_usd": 0.1, "modelUsage": {}, "session_id": "s"}'
TOKENS = '{"usage": {"input_tokens": 5, "cached_input_tokens": 0, "output_tokens": 7}, "thread_id": "t"}'
FAILING = ("--check", "test -e never")


@pytest.fixture
def programs(fresh_place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory that stands first on a PATH without any agent."""
    directory = fresh_place.parent / "programs"
    directory.mkdir()
    system = [place for place in ("/usr/bin", "/bin") if not any((Path(place) / agent.program).exists() for agent in AGENTS)]
    monkeypatch.setenv("PATH", os.pathsep.join([str(directory), *system]))
    return directory


def install(programs: Path, name: str, printed: str = "done") -> None:
    (programs / name).write_text(STAND_IN.format(printed=printed))
    (programs / name).chmod(0o755)


def run(*arguments: object, check: int | None = None) -> dict[str, Any]:
    return call("run", "--json", *arguments, check=check).document


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.program)
def test_a_name_makes_the_generator_of_the_table(agent: Agent, programs: Path):
    install(programs, agent.program)
    config, path = configured({"config": None, "agent": agent.program, "objective": "x", "checks": ["true"]})
    assert path is None
    assert (agent.command, dict(agent.usage)) == (config.generator.command, config.generator.usage)
    assert ("prompt" if agent.stdin else "none") == config.generator.stdin
    assert list(agent.exclude) == config.artifacts.exclude
    assert config.budget.reserve_cost_usd is None


def test_it_runs_with_the_words_of_the_table_and_the_objective_and_the_same_command_resumes(programs: Path, fresh_place: Path):
    install(programs, "claude", COST)
    command = ("--agent", "claude", "-p", "make it right", *FAILING, "--max-cost", 2)
    first = run(*command, "-n", 1)
    assert (1, pytest.approx(0.1)) == (first["final_iteration"], first["spend"]["cost_usd"])
    words = (programs / "words.txt").read_text().splitlines()
    assert ["-p", "--permission-mode", "acceptEdits"] == words[:3]
    assert "Bash(npm test:*)" in words
    assert "make it right" in (programs / "read.txt").read_text()
    again = run(*command, "-n", 2)
    assert (first["loop_id"], 2, True) == (again["loop_id"], again["final_iteration"], again["resumed"])
    other = run("--agent", "claude", "-p", "something else", *FAILING, "-n", 1)
    assert other["loop_id"] != first["loop_id"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--agent", "claude"), ["Claude Code is not installed", "installed here: codex", "npm install -g"]),
        (("--agent", "clade"), ["did you mean 'claude'?", "known are claude, codex", "installed here: codex", "--agent 'CMD …'"]),
        (("--agent", "no-such-agent --yes"), ["'no-such-agent' is not installed", "codex"]),
        (("--agent", "sh {prompt} 'unclosed"), ["cannot be split into words"]),
        (("--agent", ""), ["--agent is empty"]),
        (("--agent", "codex", "--", "codex"), ["give --agent or a command after --, not both"]),
        (("claude",), ["there is no file 'claude'", "jumar run --agent claude"]),
        ((), ["no agent is named", "jumar run --agent codex"]),
    ],
    ids=["missing", "misspelt", "missing command", "bad words", "empty", "two commands", "no file", "nothing"],
)
def test_what_cannot_run_is_refused_before_anything_is_created(
    arguments: tuple[str, ...], says: list[str], programs: Path, fresh_place: Path
):
    install(programs, "codex")
    done = call("run", "-p", "x", *FAILING, *arguments, check=2)
    assert [] == [words for words in says if words not in done.err], done.err
    assert [] == list(fresh_place.iterdir())


def test_a_known_agent_has_something_to_do(programs: Path, fresh_place: Path):
    install(programs, "codex")
    assert "-p 'make the tests pass'" in call("run", "--agent", "codex", *FAILING, check=2).err
    assert "-p @nope.md: no such file" in call("run", "--agent", "codex", "-p", "@nope.md", *FAILING, check=2).err
    assert [] == list(fresh_place.iterdir())


@pytest.mark.parametrize(
    ("command", "words", "read"),
    [
        ("mine --yes 'two words' && true", ["--yes", "two words"], True),
        ('mine "$JUMAR_PROMPT_FILE"', ["PROMPT-FILE"], False),
        ("mine --task {prompt} '&&' {iteration}", ["--task", "PROMPT", "&&", "1"], False),
        ("mine", [""], True),
    ],
    ids=["shell", "file", "words", "one word"],
)
def test_how_any_other_command_gets_its_prompt(command: str, words: list[str], read: bool, programs: Path, fresh_place: Path):
    install(programs, "mine")
    outcome = run("--agent", command, "-p", "make it right", *FAILING, "-n", 1)
    assert outcome["failures"] == {}
    prompt = next(Path(outcome["directory"]).glob("iterations/*1/logs/prompt.md")).read_text()
    file = next(line for line in [(programs / "words.txt").read_text()] if line)
    shown = file.replace(prompt, "PROMPT\n").splitlines()
    assert words == [("PROMPT-FILE" if word.endswith("prompt.md") else word) for word in shown if word or words == [""]]
    assert (prompt if read else "") == (programs / "read.txt").read_text()


def test_beside_a_file_it_stands_in_for_the_generator_and_the_rest_holds(programs: Path, fresh_place: Path):
    install(programs, "codex", TOKENS)
    (fresh_place / "jumar.toml").write_text(
        "[loop]\nid = 'mine'\nobjective_file = 'PROMPT.md'\nmax_iterations = 1\n"
        "[[checks]]\nname = 'no'\ncommand = 'test -e never'\n"
        "[generator]\ncommand = 'exit 3'\nstdin = 'none'\ntimeout = 77\nusage = {cost = 'x'}\nsession = 'resume'\n"
    )
    done = call("run", "--json", "--agent", "codex", "-p", "from the line")
    assert "jumar.toml is used; --agent stands in for its [generator]" in done.err
    assert ("mine", {}) == (done.document["loop_id"], done.document["failures"])
    assert "from the line" in (programs / "read.txt").read_text()
    config, _ = configured({"config": None, "agent": "codex", "objective": "x"})
    assert (77, "fresh", False) == (config.generator.timeout, config.generator.session, "cost" in config.generator.usage)
    refused = call("run", "-n", 2, "--agent", "cat", "-p", "from the line", check=2).err
    assert "generator.command" in refused
    assert "--accept-changes" in refused


def test_a_file_without_a_generator_will_do(programs: Path, fresh_place: Path):
    install(programs, "codex", TOKENS)
    (fresh_place / "jumar.toml").write_text("loop = {max_iterations = 1}\n[[checks]]\nname = 'no'\ncommand = 'test -e never'\n")
    assert {} == run("--agent", "codex", "-p", "x")["failures"]
    assert "'generator' is missing" in call("run", "--new", check=2).err


def test_an_objective_from_a_file_is_read_whenever_the_loop_is_run(programs: Path, fresh_place: Path):
    install(programs, "codex", TOKENS)
    prompt = fresh_place.parent / "PROMPT.md"
    prompt.write_text("first words")
    first = run("--agent", "codex", "-p", "@../PROMPT.md", *FAILING, "-n", 1)
    assert "first words" in (programs / "read.txt").read_text()
    prompt.write_text("other words")
    assert first["loop_id"] == run("--agent", "codex", "--objective", "@../PROMPT.md", *FAILING, "-n", 2)["loop_id"]
    assert "other words" in (programs / "read.txt").read_text()


def test_an_agent_that_reports_tokens_alone_is_charged_its_reserve(programs: Path, fresh_place: Path):
    install(programs, "codex", TOKENS)
    command = ("--agent", "codex", "-p", "x", *FAILING)
    done = call("run", "--json", *command, "--max-cost", 2, check=11)
    assert "is charged $1.00 (--reserve-cost USD" in done.err
    spend = done.document["spend"]
    assert (2, 2.0, None) == (spend["iterations"], spend["assumed_cost_usd"], spend["cost_usd"])
    for limit in ([], ["--max-cost", 2.5]):  # what was given stays; 0.50 are left, an iteration is 1.00
        ended = run(*command, *limit, check=2)
        assert (done.document["loop_id"], 2.0) == (ended["loop_id"], ended["spend"]["assumed_cost_usd"])
    less = call("run", "--json", *command, "--new", "--max-cost", 2, "--reserve-cost", 0.4, "-n", 3).document
    assert pytest.approx(1.2) == less["spend"]["assumed_cost_usd"]


def test_what_is_set_aside_ends_no_loop_early_whose_agent_reports_dollars(programs: Path):
    install(programs, "claude", COST)
    command = ("--agent", "claude", "-p", "x", *FAILING)
    spend = run(*command, "--max-cost", 0.4, "-n", 9)["spend"]
    assert (4, pytest.approx(0.4)) == (spend["iterations"], spend["cost_usd"])
    (document,) = Path(".jumar/loops").glob("*/loop.json")
    assert 0.1 == json.loads(document.read_text())["config"]["run"]["budget"]["reserve_cost_usd"]
