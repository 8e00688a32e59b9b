"""The end of a learning run: the final set, fitted on all open items, and what the held-out ones say of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from jumar.core.files import replace_file
from jumar.core.text import json_rows
from jumar.judging.gap import QUALITY_TARGET
from jumar.judging.patterns.models import PatternProposal, PatternSet
from jumar.judging.patterns.storage import read_pattern_set
from jumar.learning.learner import PATTERNS, known_in, save_set
from jumar.learning.ledger import Ledger
from jumar.learning.making import final_set, probe_set
from jumar.learning.proof.members import Member, sealed_tests
from jumar.learning.run.data import LearnData
from jumar.learning.run.files import read_logs
from jumar.learning.run.model import RESULT, SEALED_TESTS, LearnRequest, prove_request
from jumar.learning.run.prove import prove_set
from jumar.learning.targets import Target
from jumar.loop.engine.outcome import LoopOutcome

__all__ = ["finish"]


def finish(request: LearnRequest, data: LearnData, outcome: LoopOutcome) -> dict[str, Any]:
    """Make the final set from the best iteration, hold it against the held-out items, and write ``result.json``; return that.

    Made again after a kill, it comes to the same: everything follows from the best iteration and from verdicts that are on file.
    A look that was counted for this very set is not counted again. Errors: those of :func:`jumar.learning.run.prove.prove_set`.
    """
    material = data.material()
    sealed = data.split.part(data.items, "sealed")
    known = known_in(request.output, material)
    final = final_set(known, material) if known.state.iteration else known.state.patterns
    save_set(final, request.output / PATTERNS, f"the set of iteration {known.state.iteration}, fitted on all open items")
    probes = probe_set(final, [one.item for one in material.targets], material.rubric, seed=request.seed)
    saved = read_pattern_set(request.output / PATTERNS)
    proven = prove_set(
        prove_request(request),
        saved,
        data.split,
        data.items,
        data.verdicts,
        datetime.now(UTC),
        data.hear,
        parts=("sealed",),
    )
    average = fmean(row.cheap for row in proven.proof.rows)
    verdict = proven.proof.verdict
    logs = read_logs(request.output)
    agreed = bool(logs) and bool(logs[-1]["convergence_check"]["converged"])
    members = _members(request.output, final, known.state.proposals, data.verdicts.targets(sealed), proven.proof.looks.number)
    summary = {
        **_course(logs),
        "supported": sum(one.role == "supported" for one in members),
        "converged": agreed and probes.passed and verdict == "tracks",
        "tracks": verdict == "tracks",
        "quality_met": average >= QUALITY_TARGET,
        "cheap_avg": average,
        "best_iteration": None if outcome.chosen is None else outcome.chosen.iteration_number,
        "verdict": verdict,
        "heldout": proven.heldout,
        "probes": probes.to_json(),
        "looks": proven.proof.looks.model_dump(),
        "judge_calls": data.calls.calls,
        "members": [one.to_json() for one in members],
        "cost_usd": data.calls.total_usd,
    }
    replace_file(request.output / RESULT, (json.dumps(summary, indent=2, allow_nan=False) + "\n").encode())
    return summary


def _members(
    output: Path, patterns: PatternSet, proposals: Sequence[PatternProposal], sealed: Sequence[Target], look: int
) -> tuple[Member, ...]:
    """Test the proposals on the held-out items, all earlier tests being counted, and keep the tests for the next time."""
    path = output / SEALED_TESTS
    before = Ledger.from_json(path.read_bytes(), str(path)) if path.exists() else Ledger()
    found = sealed_tests(patterns, proposals, sealed, known=before, look=look)
    replace_file(path, json_rows(found.ledger.to_json()).encode())
    return found.members


def _course(logs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what happened in the run: totals, whatever iteration is the best."""
    actions = [action for log in logs for action in log["actions_taken"]]
    statuses: dict[str, str] = {}
    words = {"committed_pattern": "validated", "rejected_pattern": "rejected", "proposed_pattern": "provisional"}
    for action in actions:
        if action["action"] in words:
            statuses[action["pattern_id"]] = words[action["action"]]
    counts = list(statuses.values())
    return {
        "iterations": len(logs),
        "committed": counts.count("validated"),
        "rejected": counts.count("rejected"),
        "provisional": counts.count("provisional"),
        "rolled_back": sum(action["action"] == "rolled_back" for action in actions),
        "recoveries": [action for action in actions if action["action"] == "recovery" and action["kept"]],
    }
