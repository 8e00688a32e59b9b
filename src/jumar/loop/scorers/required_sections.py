"""``required_sections``: the share of required headings and patterns that a text has."""

from __future__ import annotations

import re

from jumar.errors import ConfigError
from jumar.loop.scorers.base import Builtin, Options, ScorerRuntime, TextScorer
from jumar.loop.scorers.markdown import Heading, headings
from jumar.model.protocols import Scorer
from jumar.processes.usage import ScoreValue

_NUMBERING = re.compile(r"^\d+(?:\.\d+)*[.)]?\s+")
_SHOWN = 10


def _wanted(section: str) -> Heading:
    """Read ``## Usage`` as a heading of level 2; ``Usage`` has level 0, which stands for any."""
    marks = re.match(r"#{1,6}(?=\s)", section)
    level = len(marks[0]) if marks else 0
    return Heading(level, _normal(section[level:]))


def _normal(title: str) -> str:
    """Return what is compared: without numbering, markup, a final colon, and differences of case and space."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
    plain = _NUMBERING.sub("", re.sub(r"[*_`]", "", plain).strip())
    return " ".join(plain.split()).rstrip(":").casefold()


def missing_sections(text: str, sections: tuple[str, ...], patterns: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the required ones that ``text`` lacks, in order. ``patterns`` are searched line by line (``re.MULTILINE``)."""
    present = [Heading(heading.level, _normal(heading.text)) for heading in headings(text)]
    absent = [
        section
        for section in sections
        if not any(each.text == _wanted(section).text and _wanted(section).level in {0, each.level} for each in present)
    ]
    absent += [pattern for pattern in patterns if not re.search(pattern, text, re.MULTILINE)]
    return tuple(absent)


def _build(dimension: str, options: Options, runtime: ScorerRuntime) -> Scorer:
    del runtime  # it runs nothing
    sections, patterns = options.texts("sections"), options.texts("patterns")
    total = len(sections) + len(patterns)
    if total == 0:
        raise ConfigError(f"{options.where}: set 'sections' (headings), 'patterns' (regular expressions) or both")
    for pattern in patterns:
        try:
            re.compile(pattern, re.MULTILINE)
        except re.error as error:
            raise ConfigError(f"{options.where}: {pattern!r} in 'patterns' is not a regular expression: {error}") from error

    def measure(text: str) -> ScoreValue:
        absent = missing_sections(text, sections, patterns)
        reason = f"{total - len(absent)} of {total} present"
        if absent:
            reason += f"; missing: {', '.join(absent[:_SHOWN])}{', …' if len(absent) > _SHOWN else ''}"
        return ScoreValue(score=(total - len(absent)) / total, reason=reason)

    return TextScorer(dimension, "required_sections", options.paths(), measure)


REQUIRED_SECTIONS = Builtin(build=_build, options=("path", "sections", "patterns"), dimension="completeness")
