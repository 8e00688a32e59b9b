"""What the loop of ``jumar demo`` is made of: its text, generator, scorers, checks and weights."""

from __future__ import annotations

import codecs
import stat
import sys
from pathlib import Path
from typing import NamedTuple

from jumar.app.config.config import JumarConfig
from jumar.core.text import escape
from jumar.demo.measure import CHECKS, SCORES
from jumar.demo.text import decode
from jumar.errors import ConfigError, UsageError
from jumar.loop.scorers.markdown import headings
from jumar.loop.scorers.readability import count_text

DOCUMENT, ORIGINAL = "document.md", "original.md"
MOST = 64_000
"""Characters; more are cut, so that the demo stays a matter of seconds: about 10,000 words of English."""

_WEIGHTS = {"coverage": 0.4, "length": 0.3, "readability": 0.1, "structure": 0.1, "novelty": 0.1}
_GUESSED = {"cp1252": "Windows-1252", "latin-1": "Latin-1"}


class DemoText(NamedTuple):
    """A text to condense. ``notice`` says what its reader should know (cut, read as another encoding), else None."""

    text: str
    notice: str | None


def default_file() -> Path:
    """Return the text that jumar ships for the demo."""
    return Path(__file__).with_name("field-guide.md")


def read_demo_text(file: Path) -> DemoText:
    """Return the text of ``file``, which is read, never written; of a long one the beginning, up to the end of a paragraph.

    Raises :class:`UsageError` for a file that is missing, unreadable, not a regular file, empty or not text.
    """
    shown = escape(str(file))
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            raise UsageError(f"{shown} is not a regular file: give the demo a text file")
        with file.open("rb") as opened:
            data = opened.read(4 * MOST + 8)
    except OSError as error:
        raise UsageError(f"could not read {shown}: {error.strerror}") from error
    if not data:
        raise UsageError(f"{shown} is empty: give the demo a text to condense")
    if b"\0" in data and not data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise UsageError(f"{shown} is not text: the demo condenses plain text, markdown and the like")
    text, encoding = decode(data, cut=len(data) == 4 * MOST + 8)
    if not any(map(str.isalnum, text)):
        raise UsageError(f"{shown} has no words: give the demo a text to condense")
    notes: list[str] = []
    if len(text) > MOST:
        ends = (text.rfind(mark, MOST // 2, MOST) + len(mark) for mark in ("\n\n", "\n", " "))
        text = text[: next((end for end in ends if end > MOST // 2), MOST)]
        notes.append(f"the file is long: only its first {len(text):,} characters are condensed")
    if encoding in _GUESSED:
        notes.append(f"the file is not UTF-8: it is read as {_GUESSED[encoding]}")
    return DemoText(text, "; ".join(notes) or None)


def set_up_demo(out: Path, text: str) -> None:
    """Write ``text`` into the folder ``out``: as the document, and as what it is compared with. Raises :class:`ConfigError`."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name in (DOCUMENT, ORIGINAL):
            (out / name).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise ConfigError(f"cannot set up the demo in {escape(str(out))}: {error.strerror}") from None


def demo_config(out: Path, text: str, max_iterations: int | None = None) -> JumarConfig:
    """Return the loop that condenses ``text`` in ``out``: what a person would have written into a ``jumar.toml``.

    Each iteration condenses what the one before left, as an agent in a plain loop would: from the best, a program that has no
    chance in it would make the same text again and again, and there would be no fall to see.
    """
    python = [sys.executable, "-P", "-m"]

    def measure(name: str) -> list[str]:
        return [*python, "jumar.demo.measure", name, DOCUMENT, "--reference", str((out / ORIGINAL).resolve())]

    built_in: dict[str, dict[str, object]] = {
        "length": {"builtin": "length", "unit": "chars", "min": len(text) // 4, "max": max(1, len(text) // 2)}
    }
    if count_text(text).words:
        built_in["readability"] = {"builtin": "readability", "target": [0, 8]}
    if sections := [heading.text for heading in headings(text) if heading.text]:
        built_in["structure"] = {"builtin": "required_sections", "sections": sections}
    scorers = [
        *({"dimension": name, "command": measure(name)} for name in SCORES),
        *({"dimension": name, "path": DOCUMENT, **options} for name, options in built_in.items()),
    ]
    return JumarConfig.model_validate(
        {
            "loop": {
                "id": "demo",
                "objective": "Condense document.md to about a third of its length without losing what it says.",
                "max_iterations": max_iterations or 8,
                "continue_from": "previous",
            },
            "artifacts": {"include": [DOCUMENT]},
            "generator": {"command": [*python, "jumar.demo.condense", DOCUMENT], "timeout": 60},
            "validators": [{"name": name, "command": measure(name)} for name in CHECKS],
            "scorers": scorers,
            "weights": {name: _WEIGHTS[name] for name in (*SCORES, *built_in)},
        }
    )
