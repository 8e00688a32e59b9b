"""``--rubric story|text|FILE``: a built-in rubric, or one of your own."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from jumar.core.text import escape, nearest
from jumar.core.toml import parse_model, read_toml
from jumar.errors import ConfigError
from jumar.judging.rubric import BUILTIN, StoryRubric, TextRubric, builtin_rubric, rubric_class

__all__ = ["kind_of_items", "load_rubric"]


def kind_of_items(rubric: StoryRubric | TextRubric | None) -> Literal["story"] | None:
    """Return as what items are read for a rubric: as stories, or None, by what is in them."""
    return "story" if rubric is not None and rubric.kind == "story" else None


def load_rubric(spec: str | None) -> StoryRubric | TextRubric | None:
    """Return the rubric that ``spec`` names; None for None, which takes ``story`` or ``text`` by the item.

    ``story`` and ``text`` are the built-in ones; a file of such a name is ``./story``. Errors: :class:`jumar.errors.ConfigError`
    that names file, line, key and range.
    """
    if spec is None:
        return None
    if spec == "story" or spec == "text":  # noqa: PLR1714 - so that the type checker sees the two
        return builtin_rubric(spec)
    path = Path(spec)
    if "/" not in spec and not path.suffix and not path.exists():
        near, known = nearest(spec, BUILTIN), ", ".join(BUILTIN)
        raise ConfigError(f"--rubric {escape(spec)}: no rubric and no file of this name{near}; write {known} or FILE.toml")
    if not path.exists():
        raise ConfigError(f"--rubric {escape(spec)}: no such file; built in are {' and '.join(BUILTIN)}")
    data, text = read_toml(path, "jumar evaluate --rubric story")
    return parse_model(rubric_class(data.get("kind")), data, str(path), text)
