"""What the report commands share: which format is meant, and where the document goes."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from jumar.cli.common import print_json, print_text
from jumar.core.files import as_write_error, write_named
from jumar.core.text import escape
from jumar.errors import UsageError


def choose_format(form: str | None, output: Path | None, suffixes: Mapping[str, str], *, default: str, as_json: bool) -> str:
    """Return the format that is named, else that of the file's suffix, else ``default`` (JSON with --json).

    Errors: :class:`UsageError` for two documents on one stdout, a suffix that says nothing, and a folder that is not there.
    """
    if as_json and output is None and form not in {None, "json"}:
        raise UsageError(f"--json and --format {form} are two documents for one stdout; write one of them to a file with -o")
    if output is None:
        return form or ("json" if as_json else default)
    suffix = output.suffix.lower()
    if form is None and suffix not in {"", *suffixes}:
        known = ", ".join(suffixes)
        raise UsageError(f"-o {escape(output.name)}: its format cannot be told from the name ({known}); say it with --format")
    if not output.absolute().parent.is_dir():
        raise UsageError(f"-o {escape(str(output))}: the folder {escape(str(output.parent))} does not exist")
    return form or suffixes.get(suffix, default)


def write_document(
    text: str, output: Path | None, form: str, *, of: Mapping[str, str], for_people: str, as_json: bool, quiet: bool
) -> None:
    """Print a report, or write it to ``output`` and say so. ``of`` names what it is about, for --json.

    ``for_people`` is the format that is text for a terminal. Errors: :class:`jumar.errors.StoreWriteError`.
    """
    data = text.encode("utf-8", "backslashreplace")
    if output is None:
        if form == for_people:
            print_text(text.removesuffix("\n"))
        else:
            # formats for programs are UTF-8 whatever the terminal speaks; their renderings hold no control characters
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
        return
    with as_write_error("write", output):
        write_named(output, data)
    if as_json:
        print_json({**of, "format": form, "output": str(output.absolute()), "bytes": len(data)})
    elif not quiet:
        print_text(f"wrote {escape(str(output))} ({form}, {len(data):,} bytes)")


def new_page() -> Path:
    """Return a new, empty temporary file for a page that a browser is to show; nobody else can have made it."""
    handle, name = tempfile.mkstemp(prefix="jumar-report-", suffix=".html")
    os.close(handle)
    return Path(name)


def show_page(page: Path) -> bool:
    """Show ``page`` in the person's browser; return whether one was started."""
    import webbrowser

    return webbrowser.open(page.absolute().as_uri())
