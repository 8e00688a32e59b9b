"""Numbers on the command line: what is no number is refused with an example of one."""

from __future__ import annotations

from typing import Any

import click

__all__ = ["DecimalRange"]


class DecimalRange(click.FloatRange):
    """A decimal number in a range, written without a unit. ``why`` is told of one that is outside of the range."""

    def __init__(self, *limits: Any, why: str = "", **options: Any) -> None:
        super().__init__(*limits, **options)
        self._why = why

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number. Errors: :class:`click.BadParameter` for what is none, or outside of the range."""
        try:
            float(value)
        except ValueError:
            self.fail(f"'{value}' is not a number; write it without a unit, as in 2.5", param, ctx)
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            if self._why:
                self.fail(f"{error.message.rstrip('.')}: {self._why}", param, ctx)
            raise
