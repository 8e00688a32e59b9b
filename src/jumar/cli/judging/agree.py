"""``jumar agree``: whether raters, people or models, agree on the same items."""

from __future__ import annotations

from pathlib import Path

import click

from jumar.cli.common import json_option, print_text, quiet_option
from jumar.cli.judging.judged import SCALE
from jumar.cli.terminal.output import choose_format, write_document

_SUFFIXES = {".txt": "text", ".json": "json", ".html": "html", ".htm": "html"}
_EPILOG = """\b
Examples:
  jumar agree people.jsonl model.jsonl
  jumar agree people.jsonl scores.jsonl --key judge_scores --key expensive
  jumar agree people.jsonl model.jsonl --key dimensions.fluency --group document
  jumar agree people.jsonl gpt.jsonl claude.jsonl -o agreement.html
  jumar agree raters.jsonl --key judge_scores        one file, a list of scores an item
  jumar agree people.jsonl model.jsonl --scale 1,5 --scale 0,100

A record has an id and a score: a number, or a list of repeats of which the median counts. Recorded verdicts
are such files, and what `jumar evaluate --per-item FILE` writes (cheap, expensive)."""


@click.command("agree", epilog=_EPILOG)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, allow_dash=True), metavar="FILE…")
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="KEY",
    help="Where a record has its score; also once a file.  [default: gestalt, else judge_scores]",
)
@click.option(
    "--group", metavar="KEY", default="group", show_default=True, help="Field that groups related items, for the intervals."
)
@click.option("--scale", "scales", multiple=True, type=SCALE, help="A file's scale, mapped to 1 to 5; once for each file.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "html"]), help="Default: the file's suffix with -o, else text."
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write here, not to stdout."
)
@json_option
@quiet_option
def agree_command(
    files: tuple[Path, ...],
    keys: tuple[str, ...],
    group: str,
    scales: tuple[tuple[float, float], ...],
    form: str | None,
    output: Path | None,
    *,
    as_json: bool,
    quiet: bool,
) -> int:
    """Say how far raters agree on the same items: people, models, or a model with itself.

    --json is --format json; with -o, stdout then says in JSON what was written.
    """
    from jumar.core.lazy import need_extra

    need_extra("judge", "holding raters against each other", "numpy", "scipy")
    from jumar.core.text import json_text
    from jumar.judging.raters.figures import compare_raters
    from jumar.judging.raters.ratings import read_raters, unmatched_text
    from jumar.judging.raters.report import render_html, text_lines

    chosen = choose_format(form, output, _SUFFIXES, default="text", as_json=as_json)
    found = compare_raters(read_raters(files, keys=keys, group=group, scales=scales))
    if not quiet:
        for name, ids in found.unmatched.items():
            if ids:
                print_text(f"jumar: note: {unmatched_text(name, ids)}", err=True)
    if chosen == "json":
        text = json_text(found.to_json())
    elif chosen == "html":
        text = render_html(found)
    else:
        text = "\n".join(text_lines(found)) + "\n"
    write_document(
        text,
        output,
        chosen,
        of={"raters": ", ".join(rater.name for rater in found.raters)},
        for_people="text",
        as_json=as_json,
        quiet=quiet,
    )
    return 0
