"""The published coding agents as the tests run them: a home of its own for each, a scripted model, no way out of this machine."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model_server import Call, ModelServer, Reply

_VENV = Path(sys.prefix)
_PLACES = (_VENV / "agent" / "bin", _VENV / "npm-agents" / "node_modules" / ".bin")
PROMPT_PRICE, COMPLETION_PRICE = 1e-6, 1e-5
"""Dollars for a token, where an agent is told the prices of its model."""


@dataclass(frozen=True)
class RealAgent:
    """``settle`` writes what the agent wants at home, and returns variables; ``edit`` is how its model has a file rewritten.

    ``prices`` are dollars for a token of the prompt and of the answer, as the agent or jumar knows them; None where neither does.
    ``tools`` is whether its edits are calls of tools.
    """

    program: str
    settle: Callable[[Path, str], Mapping[str, str]]
    edit: Callable[[Path, str, str], list[Reply]]
    prices: tuple[float, float] | None = (PROMPT_PRICE, COMPLETION_PRICE)
    tools: bool = True

    def environment(self, beside: Path, base: str) -> dict[str, str]:
        """Make a home below ``beside`` and return the variables of a run against the model at ``base``."""
        home = beside / "home"
        (home / "tmp").mkdir(parents=True)  # Codex refuses a home inside of the temporary directory
        return {
            "HOME": str(home),
            "TMPDIR": str(home / "tmp"),
            "PATH": os.pathsep.join([*map(str, _PLACES), os.environ["PATH"]]),
            "HTTP_PROXY": "http://127.0.0.1:9",
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "NO_PROXY": "127.0.0.1",
            **self.settle(home, base),
        }

    @functools.cached_property
    def missing(self) -> str | None:
        """Why it cannot run here; None where it can."""
        found = shutil.which(self.program, path=os.pathsep.join(map(str, _PLACES)))
        if found is None:
            return f"{self.program} is not installed: make .venv/.agent .venv/.npm-agents"
        words = ["sandbox", "--", "true"] if self.program == "codex" else ["--version"]
        with on_disk() as place:
            for name in (".codex", "tmp"):
                (place / name).mkdir()
            own = {"HOME": str(place), "CODEX_HOME": str(place / ".codex"), "TMPDIR": str(place / "tmp")}
            done = subprocess.run([found, *words], capture_output=True, text=True, check=False, env={**os.environ, **own})
        return f"`{self.program} {' '.join(words)}` fails here: {done.stderr[-200:]}" if done.returncode else None


def converse(
    agent: RealAgent, command: Sequence[str], place: Path, script: Sequence[Reply], *, before_path: str = ""
) -> tuple[str, ModelServer]:
    """Run an agent's ``command`` in ``place`` against a scripted model; return what it printed, and the model."""
    with ModelServer(script, tools=agent.tools) as server:
        environment = {**os.environ, **agent.environment(place.parent, server.base)}
        environment["PATH"] = before_path + environment["PATH"]
        done = subprocess.run(
            command,
            check=False,
            cwd=place,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=170,
        )
    return done.stdout + done.stderr, server


@contextlib.contextmanager
def on_disk() -> Generator[Path]:
    """An empty directory that is not in memory: Codex's sandbox has a /dev of its own, without /dev/shm."""
    disk = Path("/var/tmp")
    with tempfile.TemporaryDirectory(prefix="jumar-agent-", dir=disk if os.access(disk, os.W_OK) else None) as directory:
        yield Path(directory).resolve()


def called(*calls: Call) -> list[Reply]:
    """A turn for each call, and a last word."""
    return [*(Reply("I mend it.", 1000, 50, call=call) for call in calls), Reply("Done.", 1200, 10)]


# ----------------------------------------------------------------------------------------------------------------- Claude


def _claude_home(_home: Path, base: str) -> Mapping[str, str]:
    return {
        "ANTHROPIC_BASE_URL": base,
        "ANTHROPIC_API_KEY": "none",
        "ANTHROPIC_MODEL": "claude-opus-4-8",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


def _claude_edit(file: Path, _old: str, new: str) -> list[Reply]:
    return called(Call("Read", {"file_path": str(file)}), Call("Write", {"file_path": str(file), "content": new}))


# ------------------------------------------------------------------------------------------------------------------ Codex


def _codex_home(home: Path, base: str) -> Mapping[str, str]:
    (home / ".codex").mkdir()
    provider = {"name": "local", "base_url": f"{base}/v1", "wire_api": "responses", "env_key": "OPENAI_API_KEY"}
    lines = [f"{key} = {json.dumps(value)}" for key, value in provider.items()]
    (home / ".codex/config.toml").write_text(
        'model = "scripted"\nmodel_provider = "local"\n[analytics]\nenabled = false\n[model_providers.local]\n' + "\n".join(lines)
    )
    return {"OPENAI_API_KEY": "none", "CODEX_HOME": str(home / ".codex")}


def _codex_edit(file: Path, _old: str, new: str) -> list[Reply]:
    return called(Call("exec_command", {"cmd": f"printf %s {shlex.quote(new)} > {file.name}", "login": False}))


# ----------------------------------------------------------------------------------------------------------------- Gemini


def _gemini_home(home: Path, base: str) -> Mapping[str, str]:
    (home / ".gemini").mkdir()
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False, "disableUpdateNag": True},
        "privacy": {"usageStatisticsEnabled": False},
    }
    (home / ".gemini/settings.json").write_text(json.dumps(settings))
    return {"GEMINI_API_KEY": "none", "GEMINI_MODEL": "gemini-2.5-pro", "GOOGLE_GEMINI_BASE_URL": base}


def _gemini_edit(file: Path, _old: str, new: str) -> list[Reply]:
    return called(Call("write_file", {"file_path": str(file), "content": new}))


# --------------------------------------------------------------------------------------------------------------- OpenCode


def _opencode_home(home: Path, base: str) -> Mapping[str, str]:
    model = {"name": "scripted", "cost": {"input": 1, "output": 10}, "limit": {"context": 100_000, "output": 4_000}}
    options = {"baseURL": f"{base}/v1", "apiKey": "none"}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "local", "options": options, "models": {"scripted": model}}
    settings: dict[str, Any] = {"autoupdate": False, "share": "disabled", "provider": {"local": provider}}
    settings |= {"model": "local/scripted", "small_model": "local/scripted"}
    (home / ".config/opencode").mkdir(parents=True)
    (home / ".config/opencode/opencode.json").write_text(json.dumps(settings))
    off = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "SHARE", "DEFAULT_PLUGINS")
    return {f"OPENCODE_DISABLE_{what}": "1" for what in off}


def _opencode_edit(file: Path, _old: str, new: str) -> list[Reply]:
    return called(Call("read", {"filePath": str(file)}), Call("write", {"filePath": str(file), "content": new}))


# ------------------------------------------------------------------------------------------------------------------ Aider


def _aider_home(home: Path, base: str) -> Mapping[str, str]:
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
    for path in (prices, home / "models.json"):
        path.write_text(json.dumps({"openai/scripted": facts}))
    return {
        "OPENAI_API_BASE": f"{base}/v1",
        "OPENAI_API_KEY": "none",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "AIDER_MODEL": "openai/scripted",
        "AIDER_MODEL_METADATA_FILE": str(home / "models.json"),
        "AIDER_EDIT_FORMAT": "diff",
        "AIDER_FILE": "code_to_mend.py",
        "AIDER_SHOW_MODEL_WARNINGS": "false",
        "AIDER_MAP_TOKENS": "0",
    }


def _aider_edit(file: Path, old: str, new: str) -> list[Reply]:
    """One block for each function that changes; the first answer looks for what is not there, so that Aider asks again."""
    blocks = [
        f"{file.name}\n```python\n<<<<<<< SEARCH\n{there}=======\n{then}>>>>>>> REPLACE\n```\n"
        for there, then in zip(*(re.findall(r"def .+\n.+\n", code) for code in (old, new)), strict=True)
        if there != then
    ]
    text = "I mend it.\n\n" + "\n".join(blocks)
    return [Reply(text.replace("\n=======", "  # not there\n======="), 1000, 50), Reply(text, 1200, 60)]


REAL_AGENTS = {
    agent.program: agent
    for agent in (
        RealAgent("claude", _claude_home, _claude_edit, prices=(5e-6, 25e-6)),
        RealAgent("codex", _codex_home, _codex_edit, prices=None),
        RealAgent("gemini", _gemini_home, _gemini_edit, prices=(1.25e-6, 1e-5)),
        RealAgent("aider", _aider_home, _aider_edit, tools=False),
        RealAgent("opencode", _opencode_home, _opencode_edit),
    )
}
