"""``jumar demo``: a real loop, offline, in seconds."""

from __future__ import annotations

from pathlib import Path

import click

from jumar.cli.common import DEFAULT_ROOT, DEMO, json_option, print_line, quiet_option
from jumar.cli.loop.run import run_loop

_EPILOG = """\b
Examples:
  jumar demo                      condense the text that comes with jumar
  jumar demo README.md --json     condense one of yours; the file itself is not touched"""


@click.command("demo", epilog=_EPILOG)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=DEMO,
    show_default=True,
    help="Folder for the demo's working directory and store.",
)
@click.option("-n", "--max-iterations", type=click.IntRange(min=1), help="Iterations at most.")
@json_option
@quiet_option
def demo_command(file: Path | None, out: Path, max_iterations: int | None, *, as_json: bool, quiet: bool) -> int:
    """Condense a text iteration by iteration, and keep the best one, not the last.

    No network, no key, no model: the generator is a command that removes what carries least, and the scorers measure what is
    left. Quality rises while filler goes, peaks, and falls when information goes.
    """
    from jumar.app.run.request import RunRequest
    from jumar.demo.plan import default_file, demo_config, read_demo_text, set_up_demo

    text, notice = read_demo_text(file or default_file())
    if notice is not None and not quiet:
        print_line("note", notice, err=True)
    set_up_demo(out, text)
    request = RunRequest(config=demo_config(out, text, max_iterations), base=out, root=out / DEFAULT_ROOT, new=True)
    return run_loop(request, as_json=as_json, quiet=quiet)
