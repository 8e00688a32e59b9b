"""Coding agents that are known: how each is run without anybody at the terminal, and where it says what it used.

``jumar run --agent``, ``jumar init --agent``, the template ``coding-agent``, ``jumar doctor`` and docs/how-to/agents.md all speak
from this table; another agent is another row.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

_SESSION: Final = "{session}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFiles:
    """Where an agent looks in a project: ``servers`` holds its MCP servers by name under ``key``, each like ``entry``.

    ``instructions`` are the files that it reads of which the first that is there gets jumar's section, else the last;
    ``named_by`` is the setting of ``servers`` that names others. ``then`` is what a person has to do in the agent.
    """

    servers: str
    key: str
    entry: Mapping[str, Any]
    instructions: tuple[str, ...]
    named_by: tuple[str, ...] = ()
    then: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One agent. ``program`` is the name that ``--agent`` takes, to be found on PATH; ``install`` is the command that brings it.

    ``words`` is a shell command, with ``{session}`` where ``session``, the words that resume one, go; ``cumulative`` is whether
    it then reports the whole session. ``checked`` is the version whose flags and output this was compared with. ``limited`` says
    what a run looks like that met a rate limit and gave up. ``reserve_usd`` is what an iteration is charged that doesn't say what
    it cost. ``exclude`` are files of its own that are no part of the work. ``notes`` are sentences for the template, one a line.
    ``files`` is None where it knows no MCP servers.
    """

    title: str
    program: str
    install: str
    checked: str
    words: str
    session: str
    stdin: bool = True
    cumulative: bool = False
    usage: Mapping[str, str]
    limited: str
    reserve_usd: float
    exclude: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    files: AgentFiles | None = None

    @property
    def command(self) -> str:
        """The command of a fresh session."""
        return self.words.replace(_SESSION, "")

    @property
    def resume_command(self) -> str | None:
        """The command that resumes ``$JUMAR_SESSION_ID``; None where the agent names no session."""
        return self.words.replace(_SESSION, f" {self.session}") if "session" in self.usage else None

    @property
    def unattended(self) -> str:
        """What to type to have it run without being asked anything."""
        return f"jumar run --agent {self.program}"

    @property
    def reports_cost(self) -> bool:
        """Whether it says dollars, and not tokens alone."""
        return "cost" in self.usage

    def generator(self) -> dict[str, Any]:
        """Return ``[generator]`` as data."""
        return {"command": self.command, **({"stdin": "prompt"} if self.stdin else {}), "usage": dict(self.usage)}

    def settings(self) -> list[str]:
        """Return ``[generator]`` as lines of TOML."""
        usage = [f'usage.{name} = "{path}"' for name, path in self.usage.items()]
        return [f"command = {_toml(self.command)}", *(['stdin = "prompt"'] if self.stdin else []), *usage]

    def resume_settings(self) -> list[str]:
        """Return the further lines of TOML that keep the session; none where it names none."""
        if self.resume_command is None:
            return []
        cumulative = ['usage_is = "cumulative"'] if self.cumulative else []
        return ['session = "resume"', f"resume_command = {_toml(self.resume_command)}", *cumulative]

    def lines(self) -> list[str]:
        """Return the block of the template: a heading, notes, then settings that can be taken as they are."""
        first, *notes = self.notes
        settings = "\n".join(self.settings()).splitlines()
        return [f"{self.title} ({self.checked}): {first}", *notes, *settings]


def _toml(command: str) -> str:
    if "\n" in command:
        return f"'''{command}'''"
    return f"'{command}'" if "'" not in command else json.dumps(command)


_ENTRY: Final = MappingProxyType({"command": "jumar", "args": ["mcp"]})

AGENTS: Final = (
    Agent(
        title="Claude Code",
        program="claude",
        install="npm install -g @anthropic-ai/claude-code",
        checked="2.1.330",
        words="claude -p{session} --permission-mode acceptEdits \\\n"
        "  --allowedTools 'Bash(pytest:*)' 'Bash(python3 -m pytest:*)' 'Bash(python3 -m unittest:*)' \\\n"
        "  'Bash(npm test:*)' 'Bash(cargo test:*)' 'Bash(go test:*)' --output-format json",
        session='--resume "$JUMAR_SESSION_ID"',
        cumulative=True,
        usage={
            "cost": "total_cost_usd",
            "input": "modelUsage.*.inputTokens + modelUsage.*.cacheReadInputTokens + modelUsage.*.cacheCreationInputTokens",
            "output": "modelUsage.*.outputTokens",
            "session": "session_id",
        },
        limited="exit code 1; `is_error` is true, `api_error_status` 429",
        reserve_usd=1.0,
        notes=(
            "may edit files here and run tests, nothing else; what it would have to ask for is refused.",
            "Its dollars are its own estimate. Sums over models, because `usage` leaves out its subagents.",
        ),
        files=AgentFiles(
            servers=".mcp.json",
            key="mcpServers",
            entry=_ENTRY,
            instructions=("CLAUDE.md", ".claude/CLAUDE.md", "AGENTS.md"),
            then="approve the server jumar when it asks",
        ),
    ),
    Agent(
        title="Codex CLI",
        program="codex",
        install="npm install -g @openai/codex",
        checked="0.169.0",
        words="codex exec --sandbox workspace-write --skip-git-repo-check --json{session} -",
        session='resume "$JUMAR_SESSION_ID"',
        cumulative=True,
        usage={
            "input": "usage.input_tokens",
            "cached": "usage.cached_input_tokens",
            "output": "usage.output_tokens",
            "session": "thread_id",
        },
        limited="exit code 1; `turn.failed` speaks of `429 Too Many Requests`, or of a usage limit and when to try again",
        reserve_usd=1.0,
        notes=("may write in this directory and run what its sandbox allows; it reports tokens, no cost.",),
        files=AgentFiles(
            servers=".codex/config.toml",
            key="mcp_servers",
            entry=MappingProxyType({**_ENTRY, "env_vars": ["JUMAR_LOOP_ID"]}),
            instructions=("AGENTS.md",),
            then="trust the directory when it asks",
        ),
    ),
    Agent(
        title="Gemini CLI",
        program="gemini",
        install="npm install -g @google/gemini-cli",
        checked="0.61.0",
        words="gemini{session} --skip-trust --approval-mode=auto_edit --output-format stream-json",
        session='--resume "$JUMAR_SESSION_ID"',
        usage={
            "tokens": "stats.total_tokens",
            "input": "stats.input_tokens",
            "cached": "stats.cached",
            "output": "stats.output_tokens",
            "model": "model",
            "session": "session_id",
        },
        limited="exit code 173 (429 in a byte) after ten tries; the event `result` says so, and standard error `status: 429`",
        reserve_usd=1.0,
        notes=(
            "auto_edit approves edits only; yolo approves every command too: choose it inside of a container.",
            "It reports tokens, no cost.",
        ),
        files=AgentFiles(
            servers=".gemini/settings.json",
            key="mcpServers",
            entry=_ENTRY,
            instructions=("GEMINI.md",),
            named_by=("context", "fileName"),
            then="trust the directory when it asks",
        ),
    ),
    Agent(
        title="Aider",
        program="aider",
        install="python3 -m pip install aider-chat",
        checked="0.86.2",
        words="aider{session} --yes-always --no-auto-commits --no-dirty-commits --no-gitignore --no-pretty --no-stream \\\n"
        "  --no-check-update --no-show-release-notes --no-analytics --analytics-log /dev/stdout \\\n"
        '  --message-file "$JUMAR_PROMPT_FILE"',
        session="--restore-chat-history",
        stdin=False,
        usage={
            "cost": "sum:properties.cost",
            "input": "sum:properties.prompt_tokens",
            "output": "sum:properties.completion_tokens",
            "model": "properties.main_model",
        },
        limited="**exit code 0** after a minute of retries, nothing changed; the output names `litellm.RateLimitError`",
        reserve_usd=0.5,
        exclude=(".aider*",),
        notes=(
            "edits files and runs no commands. What it used stands in the log of events, here its standard output.",
            "jumar keeps the iterations, so it need not commit. Add `exclude = ['.aider*']` to [artifacts].",
        ),
    ),
    Agent(
        title="OpenCode",
        program="opencode",
        install="npm install -g opencode-ai",
        checked="1.18.33",
        words="opencode run{session} --auto --format json",
        session='--session "$JUMAR_SESSION_ID" --fork',
        usage={
            "cost": "sum:part.cost",
            "input": "sum:part.tokens.input + part.tokens.cache.read + part.tokens.cache.write",
            "output": "sum:part.tokens.output + part.tokens.reasoning",
            "session": "sessionID",
        },
        limited="waits and tries again as the answer says; when it gives up, exit code 1 and an event `error` with status 429",
        reserve_usd=1.0,
        notes=(
            "--auto approves what its configuration doesn't deny. It tells of every step by itself, hence the sums.",
            "The cost is 0 for a model whose price it doesn't know: give `cost` in opencode.json.",
        ),
    ),
)


def agent_called(name: str) -> Agent | None:
    """Return the agent that ``--agent name`` means, None where it is no known one."""
    return next((agent for agent in AGENTS if agent.program == name), None)


def cannot_run(program: str, directory: Path) -> str | None:
    """Return why ``program``, as it is typed in ``directory``, is none, and the way out; None where only PATH could have it."""
    path, typed = directory / Path(program).expanduser(), shlex.quote(program)
    if not path.is_file():
        return ("is a directory" if path.is_dir() else "does not exist") if "/" in program else None
    executable = os.access(path, os.X_OK)
    if "/" in program:
        return None if executable else f"is not executable: chmod +x {typed}"
    return f"is no program on PATH; the file here is called ./{typed}{'' if executable else f', after chmod +x {typed}'}"


def installed_agents() -> list[str]:
    """Return the names of the agents whose program is on PATH."""
    return [agent.program for agent in AGENTS if shutil.which(agent.program) is not None]


def agent_blocks() -> str:
    """Return the commented blocks of the template, an empty comment between two."""
    return "\n#\n".join("\n".join(f"# {line}" for line in agent.lines()) for agent in AGENTS)
