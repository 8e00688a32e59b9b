"""What the commands for patterns share: the file, its warnings, items to try it on, and the lines about coverage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from jumar.core.text import escape, plural
from jumar.errors import ItemError

if TYPE_CHECKING:
    from jumar.judging.items.item import Item
    from jumar.judging.patterns.coverage import Coverage

F = TypeVar("F", bound=Callable[..., Any])


def file_argument(function: F) -> F:
    """Add the ``FILE`` argument: a patterns file."""
    return click.argument("file", type=click.Path(path_type=Path), metavar="FILE")(function)


def on_option(function: F) -> F:
    """Add ``--on``: items to try the patterns on."""
    option = click.option(
        "--on",
        type=click.Path(path_type=Path),
        metavar="ITEMS",
        help="Say what fires on these items: a file as `jumar evaluate` takes, or a folder of .txt, an item a line.",
    )
    return option(function)


def texts_of(path: Path) -> Iterator[str]:
    """Yield the texts of items, in their order. Errors: :class:`jumar.errors.ItemError`, also when there is none."""
    return (item.text for item in items_of(path))


def items_of(path: Path) -> Iterator[Item]:
    """Yield items, in their order. Errors: :class:`jumar.errors.ItemError`, also when there is none."""
    from jumar.judging.items.records import read_items

    number = 0
    for number, item in enumerate(read_items(path), start=1):  # noqa: B007 - the last one is looked at
        yield item
    if not number:
        raise ItemError(f"{escape(str(path))}: no items; give a file with one item a line, or a folder of .txt files")


def share(part: int, whole: int) -> str:
    """Return ``222 of 1,166 (19.0 %)``."""
    percent = f" ({100 * part / whole:.1f} %)" if whole else ""
    return f"{part:,} of {whole:,}{percent}"


def coverage_lines(found: Coverage) -> list[str]:
    """Return what fires, for people."""
    most = sorted(((count, name) for name, count in found.fired.items() if count), reverse=True)[:3]
    wording = [duplicate for duplicate in found.duplicates if duplicate.by == "wording"]
    lines = [
        f"items on which a pattern fires   {share(found.fired_items, found.items)}",
        f"patterns that fire on an item    {share(found.fired_patterns, len(found.fired))}",
        f"most frequent                    {', '.join(f'{escape(name)} on {count:,}' for count, name in most) or 'none'}",
        f"near duplicates by wording       {plural(len(wording), 'pair')}",
    ]
    opposite = [one for one in wording if not one.same_type]
    if opposite:
        lines.append(
            f"  of them one good and one bad   {plural(len(opposite), 'pair')}: {opposite[0].first} and {opposite[0].second}"
        )
    return lines
