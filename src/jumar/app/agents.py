"""Coding agents that are known: how each is run without anybody at the terminal, and where it says what it used.

The template ``coding-agent``, ``jumar doctor`` and docs/how-to/agents.md all speak from this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["AGENTS", "Agent", "agent_blocks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """``unattended`` is the shortest command that asks nothing; ``settings`` are lines of ``[generator]``, as TOML.

    ``checked`` is the version whose documentation and output this was compared with. ``notes`` are sentences for the template,
    one a line. ``resume`` is what goes on with a session, in the words of a shell. ``limited`` says what a run looks like that
    met a rate limit and gave up.
    """

    title: str
    program: str
    checked: str
    unattended: str
    settings: tuple[str, ...]
    notes: tuple[str, ...] = ()
    resume: str
    limited: str
    usage: Mapping[str, str]

    def lines(self) -> list[str]:
        """Return the block of the configuration: a heading, notes, then settings that can be taken as they are."""
        first, *notes = self.notes
        usage = [f'usage.{name} = "{path}"' for name, path in self.usage.items()]
        return [f"{self.title} ({self.checked}): {first}", *notes, *self.settings, *usage]


AGENTS: Final = (
    Agent(
        title="Claude Code",
        program="claude",
        checked="2.1",
        unattended="claude -p --permission-mode acceptEdits",
        notes=(
            "may edit files here and run pytest, nothing else; what it would have to ask for is refused.",
            "Its dollars are its own estimate. Sums over models, because `usage` leaves out its subagents.",
        ),
        settings=(
            "command = \"claude -p --permission-mode acceptEdits --allowedTools 'Bash(pytest:*)' --output-format json\"",
            'stdin = "prompt"',
        ),
        usage={
            "cost": "total_cost_usd",
            "input": "modelUsage.*.inputTokens + modelUsage.*.cacheReadInputTokens + modelUsage.*.cacheCreationInputTokens",
            "output": "modelUsage.*.outputTokens",
            "session": "session_id",
        },
        resume="--resume SESSION",
        limited="exit code 1; `is_error` is true, `api_error_status` 429",
    ),
    Agent(
        title="Codex CLI",
        program="codex",
        checked="0.169",
        unattended="codex exec --sandbox workspace-write -",
        notes=(
            "may write in this directory; it reports tokens, no cost.",
            "Outside of git add --skip-git-repo-check. It reports whole sessions: where they are resumed, say that",
            'with usage_is = "cumulative".',
        ),
        settings=('command = "codex exec --sandbox workspace-write --json -"', 'stdin = "prompt"'),
        usage={
            "input": "usage.input_tokens",
            "cached": "usage.cached_input_tokens",
            "output": "usage.output_tokens",
            "session": "thread_id",
        },
        resume="codex exec resume SESSION -",
        limited="exit code 1; `turn.failed` speaks of `429 Too Many Requests`, or of a usage limit and when to try again",
    ),
    Agent(
        title="Gemini CLI",
        program="gemini",
        checked="0.61",
        unattended="gemini --skip-trust --approval-mode=auto_edit",
        notes=(
            "auto_edit approves edits only; yolo approves every command too: choose it inside of a container.",
            "It reports tokens, no cost.",
        ),
        settings=('command = "gemini --skip-trust --approval-mode=auto_edit --output-format stream-json"', 'stdin = "prompt"'),
        usage={
            "tokens": "stats.total_tokens",
            "input": "stats.input_tokens",
            "output": "stats.output_tokens",
            "model": "model",
            "session": "session_id",
        },
        resume="--resume SESSION",
        limited="exit code 173 (429 in a byte) after ten tries; the event `result` says so, and standard error `status: 429`",
    ),
    Agent(
        title="Aider",
        program="aider",
        checked="0.86",
        unattended='aider --yes-always --message-file "$JUMAR_PROMPT_FILE"',
        notes=(
            "edits files and runs no commands. What it used stands in the log of events, here its standard output.",
            "jumar keeps the passes, so it need not commit. Add `exclude = ['.aider*']` to [artifacts].",
        ),
        settings=(
            "command = '''aider --yes-always --no-auto-commits --no-dirty-commits --no-gitignore --no-pretty --no-stream \\",
            "  --no-check-update --no-show-release-notes --no-analytics --analytics-log /dev/stdout \\",
            "  --message-file \"$JUMAR_PROMPT_FILE\"'''",
        ),
        usage={
            "cost": "sum:properties.cost",
            "input": "sum:properties.prompt_tokens",
            "output": "sum:properties.completion_tokens",
            "model": "properties.main_model",
        },
        resume="--restore-chat-history",
        limited="**exit code 0** after a minute of retries, nothing changed; the output names `litellm.RateLimitError`",
    ),
    Agent(
        title="OpenCode",
        program="opencode",
        checked="1.18",
        unattended="opencode run --auto",
        notes=(
            "--auto approves what its configuration doesn't deny. It tells of every step by itself, hence the sums.",
            "The cost is 0 for a model whose price it doesn't know: give `cost` in opencode.json.",
        ),
        settings=('command = "opencode run --auto --format json"', 'stdin = "prompt"'),
        usage={
            "cost": "sum:part.cost",
            "input": "sum:part.tokens.input + part.tokens.cache.read + part.tokens.cache.write",
            "output": "sum:part.tokens.output + part.tokens.reasoning",
            "session": "sessionID",
        },
        resume="--session SESSION",
        limited="waits and tries again as the answer says; when it gives up, exit code 1 and an event `error` with status 429",
    ),
)


def agent_blocks() -> str:
    """Return the commented blocks of the template, an empty comment between two."""
    return "\n#\n".join("\n".join(f"# {line}" for line in agent.lines()) for agent in AGENTS)
