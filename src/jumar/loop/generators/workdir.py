"""What lies in the working directory, taken as the candidate: for work that somebody else does, and jumar only records."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jumar.core.text import cut
from jumar.errors import JumarError
from jumar.loop.snapshots.content import PlainFiles
from jumar.loop.snapshots.manifest import Manifest
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.snapshots.restore import plan_restore, restore
from jumar.loop.snapshots.tree import Tree
from jumar.model.protocols import GenerateOutcome, StepContext

WORKDIR = "workdir"
"""Its name, as ``[generator] builtin`` and as ``--agent``."""

NOTE: Final = "JUMAR_NOTE"
"""The variable with what whoever did the work says of it: a claim, which stands among the reasons of the iteration."""

LONGEST_NOTE: Final = 500
"""Characters of it that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkdirGenerator:
    """Makes the loop's copy equal to ``source``, the person's directory, as far as ``rules`` keep it; ``source`` is only read.

    What the work cost is not known. ``root`` holds the loops and is no part of the work.
    """

    source: Path
    rules: ArtifactRules
    root: Path

    def generate(self, context: StepContext) -> GenerateOutcome:
        """Bring the copy up to date. A file that cannot be read, or changes meanwhile, is a failure that names it."""
        began = time.monotonic()
        failure = None
        try:
            kept = self.rules.list(self.source, never=(self.root,))
            with Tree(self.source) as tree:
                looks = {path: tree.look(path).detail for path in kept}
            manifest = Manifest({path: detail for path, detail in looks.items() if detail is not None})
            present = self.rules.list(context.workdir, never=(self.root,))
            restore(plan_restore(manifest, PlainFiles(self.source), context.workdir, present))
        except JumarError as error:
            failure = f"the working directory could not be recorded as it is: {error}"
        note = cut(os.environ.get(NOTE, "").strip(), LONGEST_NOTE)
        seconds = time.monotonic() - began
        return GenerateOutcome(exit_code=None, seconds=seconds, failure=failure, notes=(f"said of it: {note}",) if note else ())
