"""The end of a learning run: the final set, fitted on all open items, and what the sealed ones say of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Final

from jumar.app.learning_data import LearnData
from jumar.app.learning_files import read_logs
from jumar.app.learning_model import LearnRequest
from jumar.files import replace_file
from jumar.judging.gap import QUALITY_TARGET
from jumar.judging.items import Item
from jumar.learning.evidence import evidence, fit_baselines
from jumar.learning.known import Known, read_known
from jumar.learning.learner import PATTERNS, save_set
from jumar.learning.makers import cheap_scores
from jumar.learning.making import final_set
from jumar.loop.outcome import LoopOutcome
from jumar.patterns.proposed import as_pattern

__all__ = ["RESULT", "finish"]

RESULT: Final = "result.json"


def finish(request: LearnRequest, data: LearnData, outcome: LoopOutcome) -> dict[str, Any]:
    """Make the final set from the best iteration, hold it against the sealed items, and write ``result.json``; return that.

    Made again after a kill, it comes to the same: everything follows from the best iteration and from verdicts that are on file.
    Errors: those of the judge.
    """
    material, _ = data.material()
    known = read_known(request.output)
    final = final_set(known, material)
    save_set(final, request.output / PATTERNS, f"the set of iteration {known.state.iteration}, fitted on all open items")
    sealed = data.split.part(data.items, "sealed")
    data.ask(sealed)
    targets = data.verdicts.targets(sealed)
    cheap = cheap_scores(final, targets, material.rubric)
    judged = [one for one in targets if one.item.id in cheap]
    found = evidence(judged, [cheap[one.item.id] for one in judged], fit_baselines(material.targets), seed=request.seed)
    average = fmean(cheap.values())
    logs = read_logs(request.output)
    summary = {
        **_course(known, logs),
        "converged": bool(logs) and bool(logs[-1]["convergence_check"]["converged"]) and found.verdict == "tracks",
        "tracks": found.verdict == "tracks",
        "quality_met": average >= QUALITY_TARGET,
        "cheap_avg": average,
        "best_iteration": None if outcome.chosen is None else outcome.chosen.iteration_number,
        "verdict": found.verdict,
        "heldout": found.heldout,
        "judge_calls": data.verdicts.calls,
        "cost_usd": _cost(data, outcome, sealed),
    }
    replace_file(request.output / RESULT, (json.dumps(summary, indent=2, allow_nan=False) + "\n").encode())
    return summary


def _course(known: Known, logs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what happened in the run: totals, whatever iteration is the best."""
    actions = [action for log in logs for action in log["actions_taken"]]
    statuses: dict[str, str] = {}
    words = {"committed_pattern": "validated", "rejected_pattern": "rejected", "proposed_pattern": "provisional"}
    for action in actions:
        if action["action"] in words:
            statuses[action["pattern_id"]] = words[action["action"]]
    counts = list(statuses.values())
    members = {as_pattern(one).id for one in known.state.proposals if one.status == "validated"}
    return {
        "iterations": len(logs),
        "committed": counts.count("validated"),
        "supported": len(known.ledger.supported() & members),
        "rejected": counts.count("rejected"),
        "provisional": counts.count("provisional"),
        "rolled_back": sum(action["action"] == "rolled_back" for action in actions),
        "recoveries": [action for action in actions if action["action"] == "recovery" and action["kept"]],
    }


def _cost(data: LearnData, outcome: LoopOutcome, sealed: Sequence[Item]) -> float | None:
    """Return what was paid in all runs: in the loop, and for the sealed items after it. None where somebody did not say."""
    later = [one.cost_usd for one in data.verdicts.results(sealed)]
    paid = outcome.spend.cost_usd
    return None if paid is None or None in later else paid + sum(cost or 0.0 for cost in later)
