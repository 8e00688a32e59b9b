"""The configurations that `jumar init` writes, with the files that let them run as they stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType
from typing import Final

from jumar.app.agents import agent_blocks
from jumar.errors import UsageError
from jumar.text import nearest

__all__ = ["AGENT", "TEMPLATES", "Template", "template_text"]

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
    text = resources.files("jumar.app").joinpath("templates", source).read_text(encoding="utf-8")
    return text.replace("# {agents}", agent_blocks())


def template(name: str) -> Template:
    """Return the template called ``name``. Errors: :class:`UsageError` with the nearest name."""
    if name not in TEMPLATES:
        raise UsageError(f"no template called '{name}'{nearest(name, tuple(TEMPLATES))}; there are: {', '.join(TEMPLATES)}")
    return TEMPLATES[name]
