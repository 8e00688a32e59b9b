"""Which checks of convergence are missing, by how much, and what would help. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from jumar.core.text import number, plural
from jumar.judging.history import CHEAP_TARGET, GAP_TARGET, STABLE_BELOW
from jumar.judging.models import IterationMetrics
from jumar.judging.tracking import FEWEST_GROUPS, FEWEST_ITEMS

HOPELESS: Final = 20
"""Times as many groups: more than anybody will collect."""

_FIT: Final = "more judged items, or patterns that a model suggests (`--propose judge`)"
_NOT_MORE: Final = "; more items alone would not"

_CHECKS: Final = {
    "better_than_constant": "its gain in MAE over a constant",
    "better_than_length": "its gain in MAE over the length only",
    "ranks_better_than_length": "its gain in Spearman over the length only",
    "ranks_within_groups": "its Spearman within groups",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingCheck:
    """A check that does not hold: ``says`` what is missing and by how much, ``helps`` what would help."""

    check: str
    says: str
    helps: str

    def to_json(self) -> dict[str, str]:
        return asdict(self)


def missing_checks(
    convergence: Mapping[str, Any],
    history: Sequence[IterationMetrics],
    evidence: Mapping[str, Any],
    *,
    fewest: int,
    growing: bool = False,
) -> list[MissingCheck]:
    """Return the checks of ``convergence`` that don't hold, in their order; empty where it converged.

    ``history`` ends with the iteration that they are about, ``evidence`` is what its test items say
    (:meth:`jumar.learning.proof.evidence.ProofEvidence.to_json`). ``fewest`` iterations are asked for. ``growing``: in a loop,
    whose items get better and more.
    """
    if convergence["converged"]:
        return []
    if "checks" not in convergence:
        more = plural(max(0, fewest - len(history)), "iteration")
        says = f"{plural(len(history), 'iteration')} of the {fewest} that are asked for"
        return [MissingCheck(check="iterations", says=says, helps=f"{more} more (`--max-iterations`)")]
    missing = [name for name, held in convergence["checks"].items() if not held]
    if (
        "gap_threshold" in missing
        and "no_divergence" in missing
        and max(map(_gap, history[-3:])) - _gap(history[-1]) < GAP_TARGET
    ):
        missing.remove("no_divergence")  # it stays where it is, above its target: the same thing
    return [_missing(name, history[-2:], convergence, evidence, growing=growing) for name in missing]


def _missing(
    name: str, last: Sequence[IterationMetrics], convergence: Mapping[str, Any], evidence: Mapping[str, Any], *, growing: bool
) -> MissingCheck:
    if name == "tracking":
        return missing_verdict(evidence, "test", tracks=last[-1].tracks, growing=growing)
    if name == "probes":
        return missing_probes(convergence.get("probes") or {})
    items = "the items have to get better" if growing else "other items: learning does not change how good these are"
    fit = "more judged items" if growing else _FIT
    if not growing and convergence.get("profile") == "seed":
        fit = "`--profile evidence`, which fits the level too"
    more = "another iteration" if growing else "another iteration (`--max-iterations`)"
    average, gap = min(one.cheap_avg for one in last), max(map(_gap, last))
    moved = abs(last[-1].pattern_count - last[0].pattern_count)
    told = {
        "cheap_threshold": (f"the items' cheap average is {_below(average, CHEAP_TARGET)}", items),
        "gap_threshold": (f"the gap is {_over(gap, GAP_TARGET)}", fit),
        "no_divergence": (f"the gap grows, to {_gap(last[-1]):.2f}, or the patterns by more than half", more),
        "patterns_stable": (f"{moved:,} patterns came or went, and fewer than {STABLE_BELOW} may", more),
        "no_regressions": ("a change of the last two iterations was rolled back", more),
        "same_items": ("the last two iterations were tried on other items", "the same items twice" if growing else more),
    }
    says, helps = told[name]
    return MissingCheck(check=name, says=says, helps=helps)


def _gap(one: IterationMetrics) -> float:
    return abs(one.gap) if one.abs_gap is None else one.abs_gap


def _below(value: float, target: float) -> str:
    places = 2 if target - value >= 0.005 else 4
    return f"{value:.{places}f}, {target - value:.{places}f} below its target of {target:.1f}"


def _over(value: float, target: float) -> str:
    places = 2 if value - target >= 0.005 else 4
    return f"{value:.{places}f}, {value - target:.{places}f} over its target of {target:.1f}"


def missing_probes(probes: Mapping[str, Any]) -> MissingCheck:
    """Return that ``probes`` (:meth:`jumar.learning.proof.probes.ProbeReport.to_json`) raised the scores, and by how much."""
    found: Mapping[str, Mapping[str, Any]] = probes.get("probes") or {}
    failed = {name: one for name, one in found.items() if not one["passed"]}
    says = "a probe raised the scores"
    if failed:
        worst = max(failed, key=lambda name: _most(failed[name]))
        mean, interval = failed[worst]["mean_change"] or 0.0, failed[worst].get("interval")
        between = "" if interval is None else f" [{interval[0]:+.3f}, {interval[1]:+.3f}]"
        says = (
            f"{plural(len(failed), 'probe')} raised the scores, or may, by more than is allowed: most {worst.replace('_', ' ')}, "
            f"by {mean:+.3f}{between} on average"
        )
    return MissingCheck(check="probes", says=says, helps="more judged items, of which less hangs on what was attacked")


def _most(probe: Mapping[str, Any]) -> float:
    interval = probe.get("interval")
    return float((probe["mean_change"] if interval is None else interval[1]) or 0.0)


def missing_verdict(evidence: Mapping[str, Any], kind: str, *, tracks: bool | None, growing: bool = False) -> MissingCheck:
    """Return by how much the ``kind`` of items that ``evidence`` is about don't show that a set tracks the judge."""
    check = "tracking" if kind == "test" else "verdict"
    items, groups = int(evidence["items"]), int(evidence["groups"])
    more = "more items in each iteration" if growing else "more groups of judged items"
    if items < FEWEST_ITEMS or groups < FEWEST_GROUPS:
        says = (
            f"{plural(items, f'{kind} item')} in {plural(groups, 'group')}, and {FEWEST_ITEMS} in {FEWEST_GROUPS} are the least"
        )
        return MissingCheck(check=check, says=says, helps=more)
    if tracks:
        helps = "another iteration" if growing else "another iteration (`--max-iterations`)"
        return MissingCheck(
            check=check, says="it tracks the judge in the last iteration, and two in a row are asked for", helps=helps
        )
    name, found = min(
        ((name, one) for name, one in evidence["checks"].items() if not one["held"]), key=lambda pair: _lacking(pair[1])
    )
    if found["value"] is None and name in _CHECKS:
        return _undefined(check, evidence, f"not shown on the {groups:,} {kind} groups that it tracks", growing=growing)
    between = "" if found["interval"] is None else f" [{found['interval'][0]:.2f}, {found['interval'][1]:.2f}]"
    what = _CHECKS.get(name, name.replace("_", " "))
    worse = found["interval"] is not None and found["interval"][1] <= 0
    said = f"is {number(found['value'])}{between}, {'below 0' if worse else 'which chance alone can give'}"
    if found["value"] is None:
        said = "cannot be computed, as the set or the judge tells none of them apart"
    says = f"not shown on the {groups:,} {kind} groups that it tracks: {what} {said}"
    needed = groups_needed(evidence)
    if needed is None:
        return MissingCheck(check=check, says=says, helps=_other_patterns(growing=growing))
    return MissingCheck(check=check, says=says, helps=f"{more} (about {needed:,} {kind} groups, if it is as good as it looks)")


def _other_patterns(*, growing: bool) -> str:
    return f"other patterns{'' if growing else ' (`--propose judge`)'}{_NOT_MORE}"


def _undefined(check: str, evidence: Mapping[str, Any], says: str, *, growing: bool) -> MissingCheck:
    """Return that there is no rank correlation, for which somebody gave one score to everything: the judge, or the set."""
    if evidence.get("figures", {}).get("constant_mae") == 0:
        helps = "a judge, or a rubric, that tells items apart"
        return MissingCheck(check=check, says=f"{says}: the judge gave all items the same score", helps=helps)
    helps = _other_patterns(growing=growing)
    return MissingCheck(check=check, says=f"{says}: the set gave all items the same score", helps=helps)


def _lacking(found: Mapping[str, Any]) -> float:
    return -math.inf if found["interval"] is None else float(found["interval"][0])


def groups_needed(evidence: Mapping[str, Any]) -> int | None:
    """Return how many groups would settle the open checks if what was seen is the truth: intervals shrink with their root.

    None where one of them is not above 0, or takes more than :data:`HOPELESS` times as many groups: more would hardly change it.
    """
    opened = [one for one in evidence["checks"].values() if one["held"] is None and one["interval"] is not None]
    if not opened or any(one["value"] <= 0 for one in opened):
        return None
    factor = max(((one["value"] - one["interval"][0]) / one["value"]) ** 2 for one in opened)
    return None if factor > HOPELESS else math.ceil(int(evidence["groups"]) * factor)


def missing_words(missing: Iterable[Mapping[str, str]]) -> str:
    """Return what is missing and what would help in one line, from what :meth:`MissingCheck.to_json` gave."""
    told = list(missing)
    helps = "; ".join(
        one
        for one in dict.fromkeys(one["helps"] for one in told)
        if one != _FIT or not any(_NOT_MORE in each["helps"] for each in told)
    )
    return f"{'; '.join(one['says'] for one in told)}. What would help: {helps}" if told else ""
