"""The ``jumar`` program: quick answers first, then the commands; every error becomes a message and an exit code."""

from __future__ import annotations

import os
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit with its code."""
    arguments = sys.argv[1:]
    completing = "_JUMAR_COMPLETE" in os.environ  # a shell asks for completions, with the words in the environment
    from jumar.cli.table import GROUPS, render_help

    group = arguments[0] if arguments and arguments[0] in GROUPS else None
    if arguments[group is not None :] in (["--help"], ["-h"], []) and not completing:
        sys.stdout.write(render_help(group))
        sys.exit(0)
    if arguments == ["--version"]:
        from jumar.version import __version__

        sys.stdout.write(f"jumar {__version__}\n")
        sys.exit(0)
    from jumar.cli.application import run_application

    sys.exit(run_application(arguments))


if __name__ == "__main__":
    main()
