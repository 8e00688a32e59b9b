"""Reading a scorer's options: typed, complete, and with an error that names the nearest option for a misspelt one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import cast

from jumar.core.text import nearest
from jumar.errors import ConfigError
from jumar.processes.process import check_command, check_timeout
from jumar.processes.written_files import check_relative

DEFAULT_TIMEOUT = 600.0


class Options:
    """The options of one scorer. Every method raises :class:`jumar.errors.ConfigError` naming scorer and option.

    ``known`` are the options that the scorer has; anything else is refused at once.
    """

    def __init__(self, values: Mapping[str, object], *, scorer: str, known: tuple[str, ...]) -> None:
        self.where = f"scorer '{scorer}'"
        self._values = values
        for name in values:
            if name not in known:
                has = f"it has {', '.join(known)}" if known else "it has none"
                raise ConfigError(f"{self.where}: unknown option '{name}'{nearest(name, known)}; {has}")

    @property
    def values(self) -> Mapping[str, object]:
        """All that was given, for a scorer whose options are checked elsewhere."""
        return self._values

    def _fail(self, name: str, wanted: str) -> ConfigError:
        found = f"is {self._values[name]!r:.60}" if name in self._values else "is missing"
        return ConfigError(f"{self.where}: option '{name}' should be {wanted}, {found}")

    def text(self, name: str, default: str | None = None) -> str:
        """Return text that is not empty; without a default it is required."""
        value = self._values.get(name, default)
        if not isinstance(value, str) or not value.strip():
            raise self._fail(name, "text")
        return value

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """Return one of ``choices``; the first is the default."""
        value = self.text(name, choices[0])
        if value not in choices:
            raise ConfigError(
                f"{self.where}: option '{name}' should be one of {', '.join(choices)}, is {value!r}{nearest(value, choices)}"
            )
        return value

    def number(self, name: str, default: float | None = None) -> float | None:
        """Return a finite number of at least 0."""
        value = self._values.get(name, default)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
            raise self._fail(name, "a number of at least 0")
        return value

    def band(self, name: str, default: tuple[float, float]) -> tuple[float, float]:
        """Return two finite numbers, the lower first."""
        value = self._values.get(name, default)
        if isinstance(value, list | tuple):
            numbers = [
                float(item)
                for item in cast("list[object]", value)
                if isinstance(item, int | float) and not isinstance(item, bool) and math.isfinite(item)
            ]
            if len(numbers) == len(cast("list[object]", value)) == 2 and numbers[0] <= numbers[1]:
                return numbers[0], numbers[1]
        raise self._fail(name, "two numbers, the lower one first, such as [8, 12]")

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts; a single text is a list of one, nothing is an empty one."""
        value = self._values.get(name, [])
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list | tuple):
            raise self._fail(name, "a list of texts")
        found = [item for item in cast("list[object]", items) if isinstance(item, str) and item.strip()]
        if len(found) != len(cast("list[object]", items)):
            raise self._fail(name, "a list of texts")
        return tuple(found)

    def paths(self, name: str = "path") -> tuple[str, ...]:
        """Return relative paths or globs, at least one."""
        found = self.texts(name)
        if not found:
            raise self._fail(name, "a path below the working directory, such as 'docs/guide.md' or 'docs/**/*.md'")
        return tuple(check_relative(path, where=self.where) for path in found)

    def path(self) -> str:
        """Return the one relative path or glob of a report."""
        return check_relative(self.text("path"), where=self.where)

    def command(self, name: str = "command") -> str | tuple[str, ...] | None:
        """Return a command, text for the shell or a list for none; None when there is none."""
        value = self._values.get(name)
        if value is None:
            return None
        if isinstance(value, str):
            return check_command(value, where=self.where)
        return check_command(self.texts(name), where=self.where)

    def timeout(self) -> float | None:
        """Return seconds."""
        return check_timeout(self.number("timeout", DEFAULT_TIMEOUT), where=self.where)
