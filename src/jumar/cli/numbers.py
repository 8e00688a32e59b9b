"""Numbers on the command line: what is no number is refused with an example of one."""

from __future__ import annotations

from typing import Any

import click

__all__ = ["DecimalRange"]


class DecimalRange(click.FloatRange):
    """A decimal number in a range, written without a unit."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number. Errors: :class:`click.BadParameter` for what is none, or outside of the range."""
        try:
            float(value)
        except ValueError:
            self.fail(f"'{value}' is not a number; write it without a unit, as in 2.5", param, ctx)
        return super().convert(value, param, ctx)
