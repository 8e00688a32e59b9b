"""The configurations that `jumar init` writes, with the files that let them run as they stand."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Final

from jumar.app.doctor.agents import Agent, agent_blocks
from jumar.app.doctor.suites import FALLBACK, Suite, suites_in
from jumar.core.text import nearest
from jumar.errors import UsageError

__all__ = ["AGENT", "TEMPLATES", "Template", "agent_template", "template_text"]

_TESTS: Final = ("tests/**", "test/**", "__tests__/**", "test_*.py", "*_test.py", "*.test.js", "*.test.ts", "*_test.go")
"""Where tests lie, as patterns of ``protect``."""

AGENT: Final = "your-agent"
"""What stands in the one line that has to be edited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """``source`` is the configuration, written as ``target``.

    ``companions`` are (name, source) of example files, written only where missing. ``next_steps`` are the commands to go on
    with, each with what it is for.
    """

    name: str
    summary: str
    source: str
    target: str = "jumar.toml"
    companions: tuple[tuple[str, str], ...] = ()
    next_steps: tuple[tuple[str, str], ...] = (
        ("jumar doctor", "is everything there, and does the agent answer?"),
        ("jumar run", ""),
    )

    def agent_line(self) -> int:
        """Return the number of the line that names the agent, from 1."""
        lines = template_text(self.source).splitlines()
        return next(number for number, line in enumerate(lines, start=1) if line.startswith(f"command = '{AGENT} "))


TEMPLATES: Final[Mapping[str, Template]] = MappingProxyType(
    {
        template.name: template
        for template in (
            Template(
                name="document",
                summary="improve a text: sections, readability, length",
                source="document.toml",
                companions=(("draft.md", "draft.md"),),
            ),
            Template(name="coding-agent", summary="run a coding agent until the tests pass", source="coding-agent.toml"),
            Template(
                name="prompt",
                summary="improve a prompt against an evaluation that prints a number",
                source="prompt.toml",
                companions=(("prompt.txt", "prompt.txt"), ("evaluate.py", "evaluate.txt")),
            ),
            Template(
                name="cases",
                summary="refine a knowledge base case by case, the best carried forward",
                source="cases.toml",
                target="cases.toml",
                companions=(("cases/case1.txt", "case1.txt"), ("cases/case2.txt", "case2.txt")),
                next_steps=(
                    ("jumar cases run --dry-run", "the whole chain with synthetic steps, as it stands"),
                    ("jumar cases run", "with your programs"),
                ),
            ),
        )
    }
)


def template_text(source: str) -> str:
    """Return a shipped file's text; a line that is ``{agents}`` becomes the blocks of all known agents."""
    text = resources.files("jumar.app.init").joinpath("templates", source).read_text(encoding="utf-8")
    return text.replace("# {agents}", agent_blocks())


def agent_template(source: str, agent: Agent, directory: Path) -> tuple[str, list[Suite]]:
    """Return a shipped configuration that runs ``agent`` on the tests in ``directory``, and the commands found for these.

    The first of them is its check; without any it keeps the template's own.
    """
    suites = suites_in(directory)
    raw = resources.files("jumar.app.init").joinpath("templates", source).read_text(encoding="utf-8")
    text = re.sub(r"# Instead of the command above.*?# \{agents\}\n\n", "", raw, flags=re.DOTALL)
    text = re.sub(
        r"^# Edit the line marked 1.*$",
        f"# It runs {agent.title}. Look it through, then: jumar doctor, jumar run.",
        text,
        flags=re.MULTILINE,
    )
    lines = [*agent.settings(), *(f"# {line}" for line in "\n".join(agent.resume_settings()).splitlines())]
    text = re.sub(rf"^command = '{AGENT} .*$", lambda _: "\n".join(lines), text, count=1, flags=re.MULTILINE)
    text = text.replace("reserve_cost_usd = 1 ", f"reserve_cost_usd = {agent.reserve_usd:g} ")
    if agent.exclude:
        text = text.replace("# [artifacts] ", "[artifacts] ").replace(
            '# exclude = ["docs/"]', f"exclude = {json.dumps(agent.exclude)}"
        )
    if suites:
        text = text.replace(f'command = "{FALLBACK}" ', f"command = {json.dumps(suites[0].command)} ", 1)
    guarded = [pattern for pattern in _TESTS if any(directory.glob(pattern))]
    protect = f"protect = {json.dumps(guarded)}" if guarded else '# protect = ["tests/**"]'
    return text.replace('protect = ["tests/**"]', protect, 1), suites


def template(name: str) -> Template:
    """Return the template called ``name``. Errors: :class:`UsageError` with the nearest name."""
    if name not in TEMPLATES:
        raise UsageError(f"no template called '{name}'{nearest(name, tuple(TEMPLATES))}; there are: {', '.join(TEMPLATES)}")
    return TEMPLATES[name]
