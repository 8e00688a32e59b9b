"""The ``jumar`` program: quick answers first, then the commands; every error becomes a message and an exit code."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line and exit with its code."""
    open_standard_streams()
    try:
        code = _run(sys.argv[1:])
        sys.stdout.flush()
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and str(error) != "can't start new thread":
            raise
        os.write(2, b"jumar: there is not enough memory (ulimit -v shows the limit of this shell)\n")
        os._exit(1)  # the interpreter's own end needs some too
    except OSError as error:
        sys.stderr.write(f"jumar: standard output cannot be written: {error.strerror}\n")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left in its buffer has nowhere to go
        code = 1
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    completing = "_JUMAR_COMPLETE" in os.environ  # a shell asks for completions, with the words in the environment
    if not arguments and not completing and sys.stdout.isatty():
        from jumar.cli.home import show_home

        return show_home()
    from jumar.cli.table import GROUPS, render_help

    group = arguments[0] if arguments and arguments[0] in GROUPS else None
    if arguments[group is not None :] in (["--help"], ["-h"], []) and not completing:
        sys.stdout.write(render_help(group))
        return 0
    if arguments == ["--version"]:
        from jumar.core import __version__

        sys.stdout.write(f"jumar {__version__}\n")
        return 0
    from jumar.cli.application import run_application

    return run_application(arguments)


def open_standard_streams() -> None:
    """Put the null device where standard input, output or error was closed by whoever started this.

    Otherwise the next file that is opened, one of the store perhaps, would get that number, and what is printed with it.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)  # the same number already, where none below it is closed
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


if __name__ == "__main__":
    main()
