"""The configurations that `jumar init` writes, with the files that let them run as they stand."""

from __future__ import annotations

import functools
import json
import random
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from jumar.app.agents import Agent, agent_blocks
from jumar.app.machine import FALLBACK, Suite, suites_in
from jumar.core.text import nearest
from jumar.errors import UsageError

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
                name="autoresearch",
                summary="lower a metric of a training run, one experiment after the other",
                source="autoresearch.toml",
                companions=(("measure.py", "measure.txt"),),
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


def agent_template(source: str, agent: Agent, directory: Path) -> tuple[str, list[Suite]]:
    """Return a shipped configuration that runs ``agent`` on the tests in ``directory``, and the commands found for these.

    The first of them is its check; without any it keeps the template's own.
    """
    suites = suites_in(directory)
    raw = resources.files("jumar.app").joinpath("templates", source).read_text(encoding="utf-8")
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


_THINGS: Final = (
    *("the parcel", "the invoice", "my password", "the refund", "a broken lamp", "the newsletter", "a second size"),
    *("the voucher", "a missing screw", "the delivery date", "a wrong colour", "the guarantee", "my old address"),
    *("a double payment", "the repair"),
)
_ASKED: Final = ("What do I do about {}?", "Who takes care of {}?", "Whom do I write to about {}?", "Where do I read about {}?")
_OPENINGS: Final = ("Thank you for writing about {}.", "This is about {}.", "We have looked at {}.", "You asked about {}.")
_PLAIN: Final = (
    "Several departments work on such cases.",
    "The warehouse is in the north of the town.",
    "Our office opens in the morning.",
    "The system shows an entry for it.",
    "Most orders leave the house on the same day.",
    "The season has been busy so far.",
    "A colleague has read your message too.",
)
_TELLING: Final = {
    "We will write to you by tomorrow noon.": (1.0, "It says by when an answer comes: tomorrow noon."),
    "As a next step, please send us a photo.": (0.8, "It names the next step, a photo."),
    "Please read the terms before you write.": (-1.0, "It sends the person away to read the terms."),
    "This is not our fault.": (-0.8, "It says whose fault it is not."),
}
"""Sentence → what the judge adds for it, and the reason that the judge gives."""

_OFTEN: Final = 0.35
_NOISE: Final = 0.2


def _help_desk(questions: int, each: int, seed: int) -> Mapping[str, str]:
    """Return ``each`` answers to each of ``questions`` questions, and what a judge says of them."""
    rng = random.Random(seed)  # noqa: S311 - sample data, nothing secret
    answers: list[dict[str, Any]] = []
    judged: list[dict[str, Any]] = []
    for number in range(1, questions + 1):
        thing = _THINGS[number % len(_THINGS)]
        prompt = _ASKED[number % len(_ASKED)].format(thing)
        for place in range(1, each + 1):
            told = [sentence for sentence in _TELLING if rng.random() < _OFTEN]
            sentences = [*told, *rng.sample(_PLAIN, rng.randint(1, 3))]
            rng.shuffle(sentences)
            name = f"q{number}" if each == 1 else f"q{number}-{place}"
            text = " ".join([rng.choice(_OPENINGS).format(thing), *sentences])
            worth = 3.0 + sum(_TELLING[sentence][0] for sentence in told)
            scores = [round(min(5.0, max(1.0, worth + rng.gauss(0, _NOISE))), 1) for _ in range(2)]
            reasons = {sign: [_TELLING[one][1] for one in told if (_TELLING[one][0] > 0) == sign] for sign in (True, False)}
            answers.append({"id": name, "group": f"question {number}", "prompt": prompt, "text": text})
            judged.append({"id": name, "judge_scores": scores, "strengths": reasons[True], "weaknesses": reasons[False]})
    return {"answers.jsonl": _lines(answers), "judged.jsonl": _lines(judged)}


def _searches() -> Mapping[str, str]:
    """Return 30 searches of 204 to 214 passages each: the 20 best scores, and which of these were relevant."""
    rng = random.Random(7)  # noqa: S311 - sample data, nothing secret
    runs: list[dict[str, Any]] = []
    for number in range(30):
        good, level = rng.randint(4, 14), rng.gauss(0.0, 0.05)  # some questions are closer to everything than others
        found = [(rng.gauss(0.42, 0.12) + level, 1) for _ in range(good)]
        found += [(rng.gauss(0.20, 0.09) + level, 0) for _ in range(200)]
        best = sorted(((round(max(0.0, score), 3), relevant) for score, relevant in found), reverse=True)[:20]
        runs.append(
            {
                "query_id": _ASKED[number % len(_ASKED)].format(_THINGS[number % len(_THINGS)]),
                "scores": [score for score, _ in best],
                "relevant": [relevant for _, relevant in best],
                "relevant_total": good,
            }
        )
    return {"runs.jsonl": _lines(runs)}


def _lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@dataclass(frozen=True, slots=True)
class Sample:
    """``files`` makes file names with their text; ``next_steps`` are commands that work on them, each with what it is for."""

    files: Callable[[], Mapping[str, str]]
    next_steps: tuple[tuple[str, str], ...]


_REPLAYED: Final = "answers.jsonl --judge replay:judged.jsonl"

SAMPLES: Final[Mapping[str, Sample]] = MappingProxyType(
    {
        "topk": Sample(
            _searches,
            (
                ("jumar topk compare runs.jsonl", "every strategy on 30 labelled searches"),
                ("jumar topk tune runs.jsonl -o topk.toml", "the one that suits them best"),
            ),
        ),
        "judge": Sample(
            functools.partial(_help_desk, questions=12, each=3, seed=4),
            ((f"jumar evaluate {_REPLAYED}", "what both judges say of 36 answers"),),
        ),
        "learn": Sample(
            functools.partial(_help_desk, questions=80, each=1, seed=2),
            ((f"jumar learn {_REPLAYED} -o outputs/", "a cheap judge from 80 recorded verdicts"),),
        ),
    }
)
"""What ``jumar init`` writes as data, by the name of the template: made up here, with known effects, the same every time.

The judge of the help desk rewards two sentences and dislikes two others, a little noisily, so that there is something to be
found. The searches are drawn at random, with relevant passages only somewhat closer than the others.
"""
