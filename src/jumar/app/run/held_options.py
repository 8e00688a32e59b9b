"""Options of ``jumar run`` belong to the loop, not to one run, so a resume that does not give them keeps them.

Limits are apart (:mod:`jumar.app.run.limits`): a file can change them under a loop.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, cast

from jumar.core.redaction import current, redacted_json
from jumar.core.text import escape
from jumar.errors import ConfigError
from jumar.loop.store.loop_reader import LoopReader

__all__ = ["GivenOptions", "recorded_options", "words_of"]

_INSTEAD: Final = MappingProxyType({"target": "keep_going", "keep_going": "target"})
_SPELLED: Final = MappingProxyType(
    {"max_iterations": "-n", "objective": "-p", "checks": "--check", "scores": "--score", "environment": "--env"}
)


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenOptions:
    """What a command line ``said`` of the configuration, and what the ``file`` says in the places of its options."""

    said: Mapping[str, Any] = field(default_factory=_nothing)
    file: Mapping[str, Any] = field(default_factory=_nothing)

    def to_json(self) -> dict[str, Any]:
        return redacted_json({"said": dict(self.said), "file": dict(self.file)}, current().redact)

    def held(self, store: LoopReader) -> dict[str, Any]:
        """Return the options of earlier command lines that hold for a resume with these.

        One is given anew by an option, or by an edit of its key in the file; ``--target`` and ``--keep-going`` exclude each
        other, and a ``-n`` that was reached is used up. Errors: :class:`ConfigError` where one of them holds a secret, which no
        record keeps.
        """
        before = recorded_options(store)
        if before is None:
            return {}
        anew = {*self.said, *(_INSTEAD[option] for option in self.said if option in _INSTEAD)}
        if before.said.get("max_iterations", 0) <= max(store.iteration_numbers(), default=0):
            anew.add("max_iterations")
        found = {
            option: value
            for option, value in before.said.items()
            if option not in anew and self.file.get(option) == before.file.get(option)
        }
        secret = [option for option, value in found.items() if "[redacted" in json.dumps(value)]
        if secret:
            raise ConfigError(
                f"loop '{escape(store.loop_id)}' was begun with {_spelled(secret[0])}, whose value holds a secret that no record "
                f"keeps: give {_spelled(secret[0])} again"
            )
        return found

    def after(self, held: Mapping[str, Any]) -> GivenOptions:
        """Return what to record of a run for which ``held`` was held."""
        return GivenOptions(said={**held, **self.said}, file=self.file)


def recorded_options(store: LoopReader) -> GivenOptions | None:
    """Return what was recorded last; None for a loop of an earlier version."""
    last = store.config.get("options")
    for decision in store.decisions():
        if decision.kind == "limits":
            last = decision.data.get("options", last)
        elif decision.kind == "accept":
            last = cast("Mapping[str, Any]", decision.data["config"]).get("options", last)
    if not isinstance(last, Mapping):
        return None
    recorded = cast("Mapping[str, Mapping[str, Any]]", last)
    return GivenOptions(said=recorded.get("said", {}), file=recorded.get("file", {}))


def words_of(options: Mapping[str, Any]) -> str:
    """Return options as they are typed: ``-n 5 --env SLOW``."""
    words: list[str] = []
    for option, value in options.items():
        values = cast("list[Any]", value) if isinstance(value, list) else [value]
        words += [
            _spelled(option)
            if each is True
            else f"{_spelled(option)} {shlex.quote(f'{each:g}' if isinstance(each, float) else str(each))}"
            for each in values
        ]
    return escape(" ".join(words))


def _spelled(option: str) -> str:
    return _SPELLED.get(option, f"--{option.replace('_', '-')}")
