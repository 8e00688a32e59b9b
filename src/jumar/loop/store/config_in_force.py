"""What a loop was told, read back: the configuration that holds now, and which files its decisions may touch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.store.loop_reader import LoopReader
from jumar.model.selection import DEFAULT_CRITERIA, MODES, SelectionCriteria

MADE_UP = "made_up"
"""The key of ``loop.json`` that tells the loop of a command line, whose name nobody chose, from one that is called so."""

_NOTHING = ArtifactRules(include=("*",), exclude=("*",))


def config_now(store: LoopReader) -> Mapping[str, Any]:
    """Return the configuration that holds for a loop: the recorded one, or the last change that a person accepted."""
    accepted = [decision.data["config"] for decision in store.decisions() if decision.kind == "accept"]
    return cast("Mapping[str, Any]", accepted[-1]) if accepted else store.config


def is_made_up(store: LoopReader) -> bool:
    """Return whether the loop's name was made up for a command line: no configuration file speaks for it."""
    return store.config.get(MADE_UP) is True


def works_in_place(store: LoopReader) -> bool:
    """Return whether the iterations of a loop are made in the person's own working directory, one after the other."""
    config = config_now(store)
    run = cast("Mapping[str, Mapping[str, Any]]", config.get("run") or {})
    return config.get("isolation") in {"none", "sandbox"} and run.get("loop", {}).get("candidates", 1) == 1


def artifact_rules(store: LoopReader) -> ArtifactRules:
    """Return what an apply may replace and remove in the working directory.

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


def criteria_of(config: Mapping[str, Any]) -> SelectionCriteria:
    """Return the selection rules of a recorded configuration.

    What it does not say is the default's; in a run's configuration (it has ``run``), no threshold means no gate. Unusable
    values count as absent: the configuration was checked when it was recorded.
    """
    found: object = config.get("selection")
    section: Mapping[str, Any] = cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}
    mode = section.get("mode")
    threshold = section.get("threshold", None if "run" in config else DEFAULT_CRITERIA.threshold)
    required = section.get("require_verification", DEFAULT_CRITERIA.require_verification)
    return SelectionCriteria(
        mode=mode if mode in MODES else DEFAULT_CRITERIA.mode,
        threshold=threshold if isinstance(threshold, int | float) and not isinstance(threshold, bool) else None,
        require_verification=required if isinstance(required, bool) else DEFAULT_CRITERIA.require_verification,
    )
