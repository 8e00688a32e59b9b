"""A real coding agent in the loop: Aider as the template runs it, against a scripted model on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from loops import jumar
from model_server import ModelServer, Reply

from jumar.app.agents import AGENTS

AIDER = Path(sys.prefix) / "agent" / "bin" / "aider"

pytestmark = [
    pytest.mark.real_agent,
    pytest.mark.skipif(not AIDER.exists(), reason="Aider is not installed: make .venv/.agent"),
]

PROMPT_PRICE, COMPLETION_PRICE = 1e-6, 1e-5
FUNCTIONS = ("one", "two", "three", "four")
TESTS = "from code_to_mend import four, one, three, two\n\n" + "\n\n".join(
    f"def test_{name}():\n    assert {number} == {name}()\n" for number, name in enumerate(FUNCTIONS, start=1)
)


def code(right: int) -> str:
    """The module with its first ``right`` functions right."""
    return "\n\n".join(f"def {name}():\n    return {n if n <= right else 0}\n" for n, name in enumerate(FUNCTIONS, start=1))


def edit(old: int, new: int) -> str:
    """An answer in Aider's format that takes ``code(old)`` to ``code(new)``, function by function."""
    blocks: list[str] = []
    for number, name in enumerate(FUNCTIONS, start=1):
        before, after = (number if number <= right else 0 for right in (old, new))
        if before != after:
            there, then = (f"def {name}():\n    return {value}\n" for value in (before, after))
            blocks.append(f"code_to_mend.py\n```python\n<<<<<<< SEARCH\n{there}=======\n{then}>>>>>>> REPLACE\n```\n")
    return "I mend it.\n\n" + "\n".join(blocks)


MISSED = edit(0, 2).replace("return 0\n=======", "return 17\n=======")  # searches for what is not there, so Aider asks again
SCRIPT = (
    [Reply(MISSED, 1000, 50), Reply(edit(0, 2), 1200, 60)],
    [Reply(limited=0), Reply(edit(2, 3), 900, 40)],
    [Reply(edit(3, 1), 800, 30)],
)


def write_project(place: Path) -> dict[str, str]:
    """Write what ``jumar init`` writes, with Aider's block in its place and the junit scorer; return the environment."""
    jumar(place, "init", "--template", "coding-agent", check=0)
    aider = next(agent for agent in AGENTS if agent.program == "aider")
    block = "\n".join(aider.lines()[len(aider.notes) :])
    pytest_line = f"{sys.executable} -m pytest -q -p no:cacheprovider"
    config = place / "jumar.toml"
    lines = config.read_text().splitlines()
    lines = [block if line.startswith("command = 'your-agent") else line for line in lines]
    text = "\n".join(lines).replace("max_iterations = 5 ", "max_iterations = 3 ")
    text = text.replace('command = "python3 -m pytest -q" ', f'command = "{sys.executable} -m py_compile code_to_mend.py" ')
    text = text.replace("# [artifacts] ", "[artifacts] ").replace('# exclude = ["docs/"]', "exclude = ['.aider*', 'build/']")
    text = text.replace('# [[scorers]]\n# builtin = "junit"', '[[scorers]]\nbuiltin = "junit"')
    text = text.replace('# command = "python3 -m pytest -q --junitxml=', f'command = "{pytest_line} --junitxml=')
    text = text.replace('# path = "build/junit.xml"', 'path = "build/junit.xml"')
    config.write_text(text)
    (place / "code_to_mend.py").write_text(code(0))
    (place / "test_code.py").write_text(TESTS)
    git(place, "init", "--quiet")
    git(place, "add", "code_to_mend.py", "test_code.py")
    git(place, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "--message", "start")
    return surroundings(place.parent)


def git(place: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=place, check=True, capture_output=True, text=True).stdout.strip()


def surroundings(beside: Path) -> dict[str, str]:
    """Return what Aider finds in its environment: a home, a model with known prices, and no way out of this machine."""
    home = beside / "home"
    prices = home / ".aider/caches/model_prices_and_context_window.json"  # its own cache: what is there is not asked for
    prices.parent.mkdir(parents=True)
    facts = {
        "max_input_tokens": 100_000,
        "max_output_tokens": 4_000,
        "input_cost_per_token": PROMPT_PRICE,
        "output_cost_per_token": COMPLETION_PRICE,
        "litellm_provider": "openai",
        "mode": "chat",
    }
    prices.write_text(json.dumps({"openai/scripted": facts}))
    metadata = beside / "models.json"
    metadata.write_text(json.dumps({"openai/scripted": facts}))
    return {
        "HOME": str(home),
        "PATH": f"{AIDER.parent}{os.pathsep}{os.environ['PATH']}",
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "NO_PROXY": "127.0.0.1",
        "OPENAI_API_KEY": "none",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "AIDER_MODEL": "openai/scripted",
        "AIDER_MODEL_METADATA_FILE": str(metadata),
        "AIDER_EDIT_FORMAT": "diff",
        "AIDER_FILE": "code_to_mend.py",
        "AIDER_SHOW_MODEL_WARNINGS": "false",
        "AIDER_MAP_TOKENS": "0",
    }


def read_metrics(loop: Path, number: int) -> dict[str, Any]:
    (found,) = loop.glob(f"iterations/*{number}/metrics.json")
    return json.loads(found.read_text())


def test_three_passes_of_aider_with_a_rate_limit_keep_the_second(fresh_place: Path):
    environment = write_project(fresh_place)
    replies = [reply for replies in SCRIPT for reply in replies]
    with ModelServer(replies) as server:
        environment["OPENAI_API_BASE"] = f"{server.base}/v1"
        outcome = json.loads(jumar(fresh_place, "run", "--json", env=environment, timeout=280, check=0).stdout)
        assert len(replies) == len(server.seen)
        first_of_pass_2 = server.asked(len(SCRIPT[0]))

    paid = [[reply for reply in replies if reply.limited is None] for replies in SCRIPT]
    costs = [sum(reply.cost(PROMPT_PRICE, COMPLETION_PRICE) for reply in replies) for replies in paid]
    tokens = [sum(reply.prompt_tokens + reply.completion_tokens for reply in replies) for replies in paid]

    assert (2, 75.0, True) == (outcome["selected_iteration"], outcome["quality_score"], outcome["verified"])
    assert (3, 25.0, "max_iterations") == (outcome["final_iteration"], outcome["final_quality"], outcome["stop_reason"])
    assert code(3) == (fresh_place / "code_to_mend.py").read_text()
    assert sum(tokens) == outcome["spend"]["tokens"]
    assert pytest.approx(sum(costs)) == outcome["spend"]["cost_usd"]
    for number in (1, 2, 3):
        used = read_metrics(Path(outcome["directory"]), number)["usage"]
        expected = {
            "tokens_used": tokens[number - 1],
            "token_cost_usd": pytest.approx(costs[number - 1]),
            "model": "openai/scripted",
        }
        assert expected == {key: used[key] for key in expected}
    assert "Make all tests pass" in first_of_pass_2
    assert "0.50" in first_of_pass_2, "what the scorer said of pass 1"
    assert "1" == git(fresh_place, "rev-list", "--count", "--all"), "the agent commits nothing, with no message that costs"
    assert not (fresh_place / ".gitignore").exists()
    print(f"requests {len(server.seen)}, of them turned away 1; tokens {sum(tokens)}, dollars {sum(costs):.4f}")
