"""What ``jumar prove`` is asked, and ``request.json``: what a learning run was asked, so that proving needs its folder only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from jumar.core.files import as_write_error, make_directory, replace_file
from jumar.core.redaction import current
from jumar.core.text import escape
from jumar.errors import ConfigError, FormatTooNewError, StoreDamagedError
from jumar.judging.asking.settings import JudgeSettings
from jumar.model.budget.prices import Prices

__all__ = ["REQUEST", "ProveRequest", "recall", "remember"]

REQUEST: Final = "request.json"
_FORMAT: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProveRequest:
    """What to prove: the set, the split and the verdicts of ``output``; with the judge and the items that it was learned from.

    ``cache`` is the folder of replies, None for none; ``extra_look`` allows one beyond the plan.
    """

    output: Path
    items: Path
    judge: str
    settings: JudgeSettings
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    rubric: str | None = None
    cache: Path | None = None
    prices: Prices | None = None
    max_tokens: int = 2000
    extra_look: bool = False


def remember(request: ProveRequest) -> None:
    """Write ``request.json``: what decides about items and verdicts, with absolute paths. Errors: StoreWriteError."""
    settings = request.settings
    document = {
        "format": _FORMAT,
        "items": str(request.items.absolute()),
        "fields": dict(request.fields),
        "rubric": _absolute(request.rubric),
        "judge": _absolute_judge(request.judge),
        "repeat": settings.repeat,
        "judge_scale": list(settings.scale),
        "explain": settings.explain,
        "max_tokens": request.max_tokens,
        "cache": None if request.cache is None else str(request.cache.absolute()),
    }
    path = request.output / REQUEST
    with as_write_error("write", path):
        make_directory(request.output)
        replace_file(path, current().redact_bytes((json.dumps(document, indent=2) + "\n").encode()))


def _absolute(rubric: str | None) -> str | None:
    return rubric if rubric in {None, "story", "text"} else str(Path(cast("str", rubric)).absolute())


def _absolute_judge(spec: str) -> str:
    """A recorded judge is a file, and proving starts in another directory than learning did."""
    kind, colon, rest = spec.strip().partition(":")
    return f"{kind}{colon}{Path(rest).absolute()}" if kind == "replay" and rest else spec


def recall(output: Path) -> dict[str, Any]:
    """Return what ``request.json`` holds, empty where there is none.

    Errors: :class:`jumar.errors.StoreDamagedError` that names the file and the way out, :class:`jumar.errors.FormatTooNewError`.
    """
    path = output / REQUEST
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{escape(str(path))} cannot be read ({error.strerror})") from error
    except ValueError:
        found = None
    known = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    version = known.get("format")
    if isinstance(version, int) and version > _FORMAT:
        raise FormatTooNewError(f"{escape(str(path))}: format {version}; this jumar reads up to {_FORMAT}, update it")
    types = {"items": str, "fields": dict, "judge": str, "judge_scale": list, "max_tokens": int, "explain": bool}
    wrong = [name for name, kind in types.items() if not isinstance(known.get(name), kind)]
    if wrong:
        raise StoreDamagedError(f"{escape(str(path))} is damaged ('{wrong[0]}'); move it away, and give --items and --judge")
    return known
