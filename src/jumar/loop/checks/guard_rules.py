"""What a loop guards."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jumar.processes.check_files import CheckFile


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardRules:
    """What a loop guards: ``protect`` in gitignore syntax, the files of its checks, and the configuration in use.

    ``absent`` are relative paths that must not appear: Python would take them for the module that a check runs. ``installed`` are
    the names of modules that are installed where the checks run.
    """

    protect: tuple[str, ...] = ()
    files: tuple[CheckFile, ...] = ()
    config: Path | None = None
    notices: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    installed: frozenset[str] = frozenset()

    def recorded(self) -> dict[str, dict[str, str]]:
        """Return the files of the checks as ``loop.json`` keeps them."""
        return {file.path: {"sha256": file.digest, "used_by": file.used_by} for file in self.files}
