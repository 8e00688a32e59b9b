"""The published coding agents in the loop, as ``--agent`` runs them, against a scripted model on this machine."""

from __future__ import annotations

import itertools
import json
import shlex
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from loops import jumar
from model_server import ModelServer, Reply
from real_agents import REAL_AGENTS, RealAgent, on_disk

from jumar.app.agents import AGENTS

pytestmark = pytest.mark.real_agent

PRESETS = {agent.program: agent for agent in AGENTS}
FUNCTIONS = ("one", "two", "three", "four")
PROMPT = "Make all checks pass"


@pytest.fixture
def place() -> Generator[Path]:
    with on_disk() as directory:
        (directory / "here").mkdir()
        yield directory / "here"


def code(right: int) -> str:
    """The module with its first ``right`` functions right."""
    return "\n\n".join(f"def {name}():\n    return {n if n <= right else 0}\n" for n, name in enumerate(FUNCTIONS, start=1))


def checks() -> list[str]:
    """A check for each function, as options."""
    python = f"{shlex.quote(sys.executable)} -B -c"
    asserted = (f"import code_to_mend as c; assert {n} == c.{name}()" for n, name in enumerate(FUNCTIONS, start=1))
    return [word for each in asserted for word in ("--check", f"{python} {shlex.quote(each)}")]


def git(place: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=place, check=True, capture_output=True, text=True).stdout.strip()


def write_project(place: Path) -> Path:
    """Write a module of which nothing is right into a repository; return its path."""
    module = place / "code_to_mend.py"
    module.write_text(code(0))
    git(place, "init", "--quiet")
    git(place, "add", module.name)
    git(place, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "--message", "start")
    return module


def read_metrics(loop: Path, number: int) -> dict[str, Any]:
    (found,) = loop.glob(f"iterations/*{number}/metrics.json")
    return json.loads(found.read_text())


def runnable(name: str) -> RealAgent:
    """Return the agent; skip the test where it is not installed or cannot work."""
    agent = REAL_AGENTS[name]
    if agent.missing is not None:
        pytest.skip(agent.missing)
    return agent


def test_every_known_agent_is_driven_here():
    assert list(PRESETS) == list(REAL_AGENTS)


@pytest.mark.parametrize("name", REAL_AGENTS)
def test_the_best_of_three_iterations_is_kept_and_the_same_command_resumes(name: str, place: Path):
    agent, preset = runnable(name), PRESETS[name]
    module = write_project(place)
    script = [agent.edit(module, code(old), code(new)) for old, new in ((0, 2), (2, 3), (3, 1))]
    refused = [Reply(limited=0)] if name in {"aider", "claude", "codex"} else []  # which try again after a second at most
    turns = [*script[0], *refused, *script[1], *script[2]]
    command = ["run", "--json", "--agent", name, "-p", PROMPT, "--continue-from", "best", "--max-cost", "8", *checks()]
    with ModelServer(turns, tools=agent.tools) as server:
        environment = agent.environment(place.parent, server.base)
        first = json.loads(jumar(place, *command, "-n", "2", env=environment, timeout=120, check=10).stdout)
        outcome = json.loads(jumar(place, *command, "-n", "3", env=environment, timeout=120, check=10).stdout)
        assert len(turns) == len(server.turns), [seen.path for seen in server.seen]
        prompts = [server.asked(0), server.asked(len(script[0]))]

    assert (first["loop_id"], True) == (outcome["loop_id"], outcome["resumed"])
    assert (2, 75.0) == (outcome["selected_iteration"], outcome["quality_score"])
    assert (3, 25.0, "max_iterations") == (outcome["final_iteration"], outcome["final_quality"], outcome["stop_reason"])
    assert code(3) == module.read_text()
    assert all(PROMPT in prompt for prompt in prompts)
    assert "Failing checks" in prompts[1]
    check_spend(agent, outcome, script)
    sessions = {read_metrics(Path(outcome["directory"]), number)["usage"]["session_id"] for number in (1, 2, 3)}
    assert (3 if "session" in preset.usage else 1) == len(sessions), "each iteration starts a fresh session"
    assert "1" == git(place, "rev-list", "--count", "--all"), "the agent commits nothing, with no message that costs"
    kept = json.loads(next(Path(outcome["directory"]).glob("iterations/*3/manifest.json")).read_text())
    assert "code_to_mend.py" in json.dumps(kept)
    assert not any(own in json.dumps(kept) for own in (".aider", ".claude", ".codex", ".gemini", ".opencode"))


def check_spend(agent: RealAgent, outcome: dict[str, Any], script: list[list[Reply]]) -> None:
    """Compare what each iteration is said to have used with what its turns did."""
    tokens = [sum(turn.prompt_tokens + turn.completion_tokens for turn in turns) for turns in script]
    assert sum(tokens) == outcome["spend"]["tokens"]
    used = [read_metrics(Path(outcome["directory"]), number)["usage"] for number in (1, 2, 3)]
    assert tokens == [usage["tokens_used"] for usage in used]
    if agent.prices is None:
        assert outcome["spend"]["cost_usd"] is None
        assert 3 * PRESETS[agent.program].reserve_usd == outcome["spend"]["assumed_cost_usd"]
        return
    costs = [sum(turn.cost(*agent.prices) for turn in turns) for turns in script]
    assert costs == [pytest.approx(usage["token_cost_usd"]) for usage in used]
    assert pytest.approx(sum(costs)) == outcome["spend"]["cost_usd"]


@pytest.mark.parametrize("name", [name for name, preset in PRESETS.items() if preset.resume_command is not None])
def test_a_kept_session_remembers_and_is_charged_once(name: str, place: Path):
    agent, preset = runnable(name), PRESETS[name]
    module = write_project(place)
    script = [agent.edit(module, code(old), code(new)) for old, new in itertools.pairwise((0, 1, 2))]
    settings = "\n".join([*preset.settings(), *preset.resume_settings()])
    (place / "jumar.toml").write_text(
        f'[loop]\nobjective = "{PROMPT}"\nmax_iterations = 2\n[generator]\n{settings}\n'
        f'[[checks]]\nname = "there"\ncommand = "test -e {module.name}"\n[[scorers]]\ndimension = "right"\n'
        f'command = "grep -c [1-4] {module.name} | sed s/^/0./"\n'
    )
    with ModelServer([turn for turns in script for turn in turns], tools=agent.tools) as server:
        environment = agent.environment(place.parent, server.base)
        outcome = json.loads(jumar(place, "run", "--json", env=environment, timeout=100, check=0).stdout)
        assert "This is iteration 1" in server.asked(len(script[0])), "the second conversation resumes the first"
    tokens = [sum(turn.prompt_tokens + turn.completion_tokens for turn in turns) for turns in script]
    assert tokens == [read_metrics(Path(outcome["directory"]), number)["usage"]["tokens_used"] for number in (1, 2)]
