"""What a generator can make of its tree so that no snapshot of it can be taken, and what can become of one while it waits.

A generator's is Python, with: store (the loop's directory), origin (the person's directory), os, pathlib, shutil. ``WHERE`` are
the kinds of isolation in which it means anything; what is not named there means something in all.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import Final

__all__ = ["BAD_PASSES", "IN_SCORING", "WHERE", "without_rights"]

_DEEP: Final = """
top = os.getcwd()
for _ in range({levels}):
    os.mkdir({name!r})
    os.chdir({name!r})
open("file", "w").write("x")
os.chdir(top)
"""

BAD_PASSES: Final[Mapping[str, str]] = {
    "fill the quota": "open('large.bin', 'wb').truncate(3_000_000)",
    "too many files": "[open(f'many-{each}', 'w').close() for each in range(60)]",
    "path over PATH_MAX": _DEEP.format(levels=25, name="d" * 200),
    "too many levels": _DEEP.format(levels=1_500, name="d"),
    "unreadable file": "open('closed.md', 'w').write('x'); os.chmod('closed.md', 0)",
    "unreadable directory": "os.mkdir('closed'); open('closed/x.md', 'w').write('x'); os.chmod('closed', 0)",
    "unreadable directory of the start": "os.chmod('kept', 0)",
    "delete the copy": "shutil.rmtree(os.getcwd())",
    "delete all copies": "shutil.rmtree(store.parent.parent / 'work')",
    "link the copy to the person's directory": "here = os.getcwd(); shutil.rmtree(here); os.symlink(origin, here)",
    "a file for the copy": "here = os.getcwd(); shutil.rmtree(here); open(here, 'w').close()",
    "another copy": ("here = os.getcwd(); shutil.copytree(here, here + '-2'); shutil.rmtree(here); os.rename(here + '-2', here)"),
}
"""Done by a generator: the iteration failed, and the next one starts from its parent."""

IN_SCORING: Final[Mapping[str, str]] = {
    "delete pending": "rm -rf {store}/pending",
    "delete what waits": "rm -rf {store}/pending/*",
    "delete the snapshot": "rm -rf {store}/pending/*/artifacts",
    "delete a file of the snapshot": "rm -f {store}/pending/*/artifacts/text.md",
    "delete pending and change the tree": "rm -rf {store}/pending; echo words 99 > text.md",
    "lead pending to a person's directory": "rm -rf {store}/pending; ln -s {origin}/kept {store}/pending",
    "lead what waits in a circle": "rm -rf {store}/pending/iteration-002; ln -s iteration-002 {store}/pending/iteration-002",
    "delete the tree": 'cd /; rm -rf "$OLDPWD"',
    "link the tree": 'cd /; rm -rf "$OLDPWD"; ln -s {origin} "$OLDPWD"',
}
"""Done by a check, in the shell, with ``store`` and ``origin`` to be put in: the iteration is not verified."""

_OURS: Final = ("copy", "worktree")
WHERE: Final[Mapping[str, tuple[str, ...]]] = {
    **{name: _OURS for name in BAD_PASSES if "cop" in name},
    **{name: _OURS for name in IN_SCORING if name.endswith("the tree") and "change" not in name},
}


def without_rights() -> list[str] | None:
    """Return what a command begins with so that file modes count for it; None where they never do."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if shutil.which("setpriv") else None
