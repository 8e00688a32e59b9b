"""What a loop was told, read back: the configuration that holds now, and which files its decisions may touch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from jumar.store.loop_reader import LoopReader
from jumar.store.loop_store import LoopStore
from jumar.store.matching import ArtifactRules

__all__ = ["artifact_rules", "config_now"]

_NOTHING = ArtifactRules(include=("*",), exclude=("*",))


def config_now(store: LoopReader) -> Mapping[str, Any]:
    """Return the configuration that holds for a loop: the recorded one, or the last change that a person accepted."""
    accepted = [decision.data["config"] for decision in store.decisions() if decision.kind == "accept"]
    return cast("Mapping[str, Any]", accepted[-1]) if accepted else store.config


def artifact_rules(store: LoopStore) -> ArtifactRules:
    """Return what an apply may replace and remove in the work directory.

    For a run these are its ``[artifacts]``. A tracker's iterations name the files that they recorded and nothing else; what they
    don't name is not theirs, so nothing is removed: the rules then match nothing, and only the snapshot's own files are written.
    """
    section = config_now(store).get("artifacts")
    if not isinstance(section, Mapping):
        return _NOTHING
    given = cast("Mapping[str, Any]", section)
    defaults = ArtifactRules()
    return ArtifactRules(
        include=tuple(given.get("include", ())),
        exclude=tuple(given.get("exclude", ())),
        max_files=given.get("max_files", defaults.max_files),
        max_file_bytes=given.get("max_file_bytes", defaults.max_file_bytes),
        max_total_bytes=given.get("max_total_bytes", defaults.max_total_bytes),
    )
