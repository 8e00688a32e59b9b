"""What earlier loops below the same root say of a generator: how much its iterations took."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from jumar.errors import JumarError
from jumar.loop.store.layout import list_loops, loops_directory
from jumar.loop.store.loop_reader import LoopReader
from jumar.model.budget.estimate import PassUse, passes_of

if TYPE_CHECKING:
    from jumar.app.config.config import JumarConfig

__all__ = ["earlier_passes"]

_LOOKED_AT: Final = 20  # earlier loops, the newest first


def earlier_passes(config: JumarConfig, root: Path, *, besides: str) -> tuple[tuple[PassUse, ...], str]:
    """Return the iterations of the newest loop with the same generator that made any, ``besides`` left out, and that loop's name.

    Nothing and "" where there is none; a loop that cannot be read says nothing.
    """
    generator = config.generator.model_dump(mode="json", exclude_defaults=True)
    found: list[LoopReader] = []
    for name in list_loops(root):
        directory = loops_directory(root) / name
        if name == besides or not (directory / "loop.json").is_file():
            continue
        with contextlib.suppress(JumarError):
            found.append(LoopReader(directory))
    newest_first = sorted(found, key=lambda store: store.created_at, reverse=True)
    for store in [store for store in newest_first if _generator(store) == generator][:_LOOKED_AT]:
        with contextlib.suppress(JumarError):
            used = passes_of(store.attempts())
            if used:
                return used, store.loop_id
    return (), ""


def _generator(store: LoopReader) -> object:
    run = store.config.get("run")
    return cast("Mapping[str, object]", run).get("generator") if isinstance(run, Mapping) else None
