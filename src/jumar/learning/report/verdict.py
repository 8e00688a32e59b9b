"""The verdict of a learning run for a person who knows no statistics, with the figures that it rests on, and what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from jumar.core.text import escape, number, plural, signed
from jumar.learning.convergence import groups_needed
from jumar.learning.report.view import LearningReport

_LEADS: Final = {
    "tracks": "It tracks the judge.",
    "not_proven": "Not proven.",
    "fails": "It does not track the judge.",
}
_SIGNS: Final = {True: "yes", False: "no", None: "open"}
_CHECKS: Final = {
    "better_than_constant": ("MAE lower than that of a constant", "by "),
    "better_than_length": ("MAE lower than that of the length only", "by "),
    "ranks_better_than_length": ("Spearman higher than that of the length only", "by "),
    "ranks_within_groups": ("Spearman above 0 within groups", ""),
}
_PROBES: Final = {
    "stuffing": "stuffed with the set's own good phrases",
    "padding": "padded with sentences about nothing",
    "repetition": "said twice",
    "shuffled_sentences": "their sentences shuffled",
    "shuffled_words": "their words shuffled",
    "negation": "their statements negated",
    "prompt_appended": "with the prompt behind them",
    "prompt_copied": "with the prompt in their place",
    "prompt_half_copied": "with the first half of the prompt in their place",
    "context_appended": "with the context behind them",
    "context_copied": "with the context in their place",
    "context_half_copied": "with the first half of the context in their place",
}
_FEW_AGAIN: Final = 20
_TOLD: Final = frozenset({"stuffing", "padding", "shuffled_sentences", "shuffled_words", "negation"})
"""Probes that are told of whatever they find; of the others those that raise the scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictCheck:
    """One of the questions that the verdict is made of. ``sign`` is ``yes``, ``no`` or ``open``."""

    sign: str
    says: str
    figure: str


def lead(report: LearningReport) -> str:
    """Return the verdict in a sentence; where nothing was learned, that."""
    verdict = report.verdict
    if verdict is None:
        return f"No verdict yet: the run is {report.state} after {plural(len(report.logs), 'iteration')}."
    if report.proof is None:
        return f"{_LEADS[verdict]} That is what `result.json` says: the proof is missing."
    return "Nothing was learned." if nothing_learned(report) else _LEADS[verdict]


def nothing_learned(report: LearningReport) -> bool:
    """Return whether the run ended with a set that is empty."""
    return report.summary is not None and not report.patterns


def verdict_lines(report: LearningReport) -> list[str]:
    """Return what the verdict means, in sentences; empty before there is one."""
    if report.verdict is None:
        return []
    proof = report.proof
    if proof is None:
        return _unproven(report)
    return [*_made_of(report), *_measured(proof["statistics"], unscored_text(report)), advice(report)]


def unscored_text(report: LearningReport) -> str:
    """Return how many held-out items have no score and so are in no figure; empty where all have one."""
    left: Mapping[str, int] = {} if report.proof is None else report.proof["items"]["unscored"]
    count = left.get("judge", 0) + left.get("cheap", 0)
    return f"{count:,} more got no score" if count else ""


def _measured(found: Mapping[str, Any], unscored: str) -> list[str]:
    """Return the held-out figures in sentences."""
    figures, intervals = found["figures"], found["intervals"]

    def told(name: str) -> str:
        return number(figures[name]) + _between(intervals.get(name))

    items, groups = plural(int(found["items"]), "item"), plural(int(found["groups"]), "group")
    lines = [
        f"MAE {told('mae')}; baselines: constant {number(figures['constant_mae'])}, length only {number(figures['length_mae'])}.",
        f"Spearman {told('spearman')}; baseline: length only {number(figures['length_spearman'])}.",
    ]
    more = f"; {unscored}" if unscored else ""
    return [f"Held-out test set: {items}, {groups}{more}.", *(line.replace("-", "−") for line in lines)]


def advice(report: LearningReport) -> str:
    """Return in a sentence what to do with the scores of a set that has a verdict."""
    if report.verdict == "not_proven":
        why = _too_few(report) or "These items leave open whether the set agrees with it beyond chance."
        return f"Keep asking the judge for scores that matter. {why}"
    return {
        "tracks": "On items like these, use its scores in place of the judge's: it agrees with the judge beyond chance.",
        "fails": "Don't use its scores in place of the judge's: a much simpler way of scoring does better, beyond chance.",
    }[str(report.verdict)]


def _unproven(report: LearningReport) -> list[str]:
    """Return what is known without a proof."""
    held: Mapping[str, Any] = {} if report.summary is None else report.summary.get("heldout") or {}
    lines = ["There is no `proof.json` in the folder, so that nobody can check what follows."]
    if held:
        items = f"{plural(int(held['items']), 'held-out item')} in {plural(int(held['groups']), 'group')}"
        lines.append(
            f"On {items}: MAE {number(held['mae'])}{_between(held['interval'])}; baseline: constant "
            f"{number(held['constant_mae'])}."
        )
    return lines


def _too_few(report: LearningReport) -> str:
    """Return that there are too few held-out items for any verdict but ``not_proven``, empty where there are enough."""
    from jumar.judging.tracking import FEWEST_GROUPS, FEWEST_ITEMS

    if report.proof is None:
        return ""
    items, groups = (int(report.proof["statistics"][name]) for name in ("items", "groups"))
    if items >= FEWEST_ITEMS and groups >= FEWEST_GROUPS:
        return ""
    found = f"{plural(items, 'held-out item')} in {plural(groups, 'group')}"
    return f"{found} are too few to prove anything: {FEWEST_ITEMS} in {FEWEST_GROUPS} are the least."


def _made_of(report: LearningReport) -> list[str]:
    """Return what there is to say of a set that is empty, or has learned an order only."""
    if nothing_learned(report):
        return [f"The set is empty: {report.empty_means}."]
    if not report.orders_only:
        return []
    spread = report.sealed_scores
    between = "" if spread is None else f" (on the held-out items from {spread[0]:.4f} to {spread[1]:.4f})"
    told = f"its scores differ by thousandths of a point{between}, because no wider ones came closer than a constant"
    return [f"The set orders items, and no more: {told}."]


def figure_rows(report: LearningReport) -> list[tuple[str, str, str, str]]:
    """Return the held-out figures, each with its 95 % interval: what, learned, constant, length only."""
    if report.proof is None:
        return []
    found = report.proof["statistics"]

    def told(name: str) -> str:
        return number(found["figures"].get(name)) + _between(found["intervals"].get(name))

    rows = [
        ("MAE (points)", told("mae"), told("constant_mae"), told("length_mae")),
        ("Spearman", told("spearman"), "—", told("length_spearman")),
    ]
    ceiling = None if report.noise is None else report.noise.get("ceiling")
    if ceiling is not None and ceiling["attained"] is not None:
        rows.append((f"Spearman, share of the attainable {number(ceiling['spearman'])}", f"{ceiling['attained']:.0%}", "—", "—"))
    if found["figures"].get("within_spearman") is not None:
        rows.append(("Spearman within groups", told("within_spearman"), "—", "—"))
    bias = found["figures"].get("bias")
    if bias is not None:
        rows.append(("Bias (+ too high, − too low)", f"{signed(bias)}{_between(found['intervals'].get('bias'))}", "—", "—"))
    return [(row[0], *(cell.replace("-", "−") for cell in row[1:])) for row in rows]  # pyright: ignore[reportReturnType]


def _between(pair: Any) -> str:
    return "" if pair is None else f" [{pair[0]:.2f}, {pair[1]:.2f}]"


def checks(report: LearningReport) -> list[VerdictCheck]:
    """Return the checks that the verdict is made of, and beside them the gap's own target."""
    if report.proof is None:
        return []
    found = report.proof["statistics"]
    told = [_check(name, one) for name, one in found["checks"].items()]
    gap = found["gap"]
    target = f"{number(gap['value'])}{_between(gap['interval'])}; convergence asks for it, the verdict does not"
    return [*told, VerdictCheck(sign=_SIGNS[gap["held"]], says="MAE of 0.5 points or less", figure=target)]


def _check(name: str, found: Mapping[str, Any]) -> VerdictCheck:
    says, what = _CHECKS.get(name, (str(found["says"]), "value"))
    value, pair = found["value"], found["interval"]
    if value is None:
        return VerdictCheck(sign=_SIGNS[found["held"]], says=says, figure="not known")
    luck = "; chance alone can do that" if found["held"] is None else ""
    places = 3 if abs(value) < 0.1 else 2
    between = "" if pair is None else f" [{pair[0]:+.{places}f}, {pair[1]:+.{places}f}]"
    figure = f"{what}{value:+.{places}f}{between}".replace("-", "−").replace("−0.000", "0.000").replace("+0.000", "0.000")
    return VerdictCheck(sign=_SIGNS[found["held"]], says=says, figure=figure + luck)


def noise_text(report: LearningReport) -> str:
    """Return how far the judge is from itself, empty where nobody knows, and what that means for the set where it is sure."""
    proof, noise = report.proof, report.noise
    if proof is None:
        return ""
    if noise is None:
        return "The judge was asked once about each item, so that its own noise is not known."
    items, mean, pair = int(noise["items"]), float(noise["mean"]), noise["interval"]
    interval = "" if pair is None else _between(pair)
    told = (
        f"Asked again about the same item, the judge differs from itself by {number(mean)} points on average{interval}: "
        f"{noise['readings']:.3g} readings each of {plural(items, 'item')}, {int(noise['sealed']):,} of them held out."
    )
    if (ceiling := noise.get("ceiling")) is not None:
        told += (
            f" With that noise (reliability {number(ceiling['reliability'])}) the highest attainable Spearman is "
            f"{number(ceiling['spearman'])}, and the lowest attainable MAE about {number(ceiling['mae'])}."
        )
    if items < _FEW_AGAIN:
        return f"{told} So few items say roughly how much that is; `--repeat 2` reads every item twice."
    if 0 < mean <= float(proof["statistics"]["figures"]["mae"]):
        told += " Nothing can follow single answers of it much closer."
    return told


def looks_text(report: LearningReport) -> str:
    """Return how often the held-out items were looked at, and what that costs."""
    if report.proof is None:
        return ""
    looks = report.proof["looks"]
    plan = "beyond the plan" if looks["extra"] else f"of {looks['planned']} planned"
    return (
        f"This is evaluation {looks['number']} {plan} on the held-out items. Each is another chance for luck: so far at most "
        f"{looks['false_tracks']:.1%} that one of them said “tracks” wrongly."
    )


def quality_text(report: LearningReport) -> str:
    """Return whether the items are good, which is another question."""
    if report.summary is None:
        return ""
    average = float(report.summary["cheap_avg"])
    met = "meets" if report.summary["quality_met"] else "is below"
    told = f"Whether the items are good is another question: their cheap average of {number(average)} {met} the target of 4.0"
    bias = None if report.proof is None else report.proof["statistics"]["figures"].get("bias")
    return f"{told}." if bias is None else f"{told}; the judge's own average of them is {number(average - bias)}."


def paid_text(report: LearningReport) -> str:
    """Return how often the judge was asked, and what that cost; empty before the end."""
    summary = report.summary
    if summary is None:
        return ""
    calls, cost = int(summary["judge_calls"]), summary["cost_usd"]
    if report.replayed:
        return f"The judge is a file: {plural(calls, 'recorded answer')} of it were read, and nobody was asked."
    return f"The judge was asked {plural(calls, 'time')}; {cost_text(cost)}."


def cost_text(cost: float | None) -> str:
    """Return what was paid: ``no cost``, ``cost $0.3520``, ``cost unknown``."""
    if cost is None:
        return "cost unknown"
    return f"cost ${cost:.4f}" if cost else "no cost"


def probe_rows(report: LearningReport) -> list[tuple[str, str, str]]:
    """Return the probes against gaming: sign, what was done to real items, what it did to their scores."""
    found = None if report.summary is None else report.summary.get("probes")
    if found is None:
        return []
    rows: list[tuple[str, str, str]] = []
    others: list[float] = []
    for name, one in found["probes"].items():
        change, pair = one["mean_change"], one["interval"]
        if one["passed"] and name not in _TOLD:
            others += [] if change is None else [change]
            continue
        between = "" if pair is None else f" [{pair[0]:+.3f}, {pair[1]:+.3f}]"
        told = "nothing to change" if change is None else f"{change:+.3f}{between} on {plural(int(one['items']), 'item')}"
        if one.get("how"):
            told += f", with {one['how']}"
        if one.get("unprobed"):
            told += f"; {one['unprobed']:.2f} points are of expressions for which no text could be made to try them"
        rows.append(("yes" if one["passed"] else "no", _probe_name(str(name)), _signs(told)))
    if others:
        rows.append(("yes", f"attacked in {plural(len(others), 'other way')}", _signs(f"{max(others):+.3f} at most")))
    return rows


def _signs(told: str) -> str:
    return told.replace("-", "−").replace("−0.000", "0.000").replace("+0.000", "0.000")


def _probe_name(name: str) -> str:
    amount, _, what = name.partition("_")
    behind = f"with {'a few' if amount == 'few' else 'many'} {what.replace('_', ' ')} behind them"
    return _PROBES.get(name) or (behind if amount in {"few", "many"} else name.replace("_", " "))


# ------------------------------------------------------------------------------------------------------ what to do next


def next_steps(report: LearningReport) -> list[str]:
    """Return what to do next, the most useful first; commands stand between backticks."""
    where = shlex.quote(escape(report.directory))
    if report.verdict is None:
        if report.state == "running":
            return [f"It is running: `jumar learn status {where}` says how far it is."]
        return ["Run the same `jumar learn` command again: it resumes where it stopped, and nothing is asked or paid for twice."]
    if report.proof is None:
        return [f"Make the proof again: `jumar prove {where}` holds the set against the held-out items."]
    steps = {"tracks": _tracked, "not_proven": _open, "fails": _failed}[report.verdict](report, where)
    probes = None if report.summary is None else report.summary.get("probes")
    if probes is not None and not probes["passed"]:
        steps.insert(
            0, "A probe raised the scores: don't show the patterns to whoever writes the items, and don't optimise against them."
        )
    return steps


def _tracked(_report: LearningReport, where: str) -> list[str]:
    return [
        f"Score new items of the same kind: `jumar evaluate new.jsonl --mode cheap --patterns {where}/patterns.json`.",
        (
            "Let the judge decide where the set is unsure: the same with `--mode auto`, and with "
            f"`--proof {where}/proof.json --decision-line 3.5` and the `--judge` that it was learned from."
        ),
        f"Keep `proof.json` with the set; `jumar prove --verify {where}/proof.json` computes it again, without a judge.",
        "Learn again when the items or the judge change: a proof is about both.",
    ]


def _open(report: LearningReport, where: str) -> list[str]:
    more = _more_groups(report)
    steps = [more] if more else []
    steps.append("More iterations don't help: the held-out items decide, and these are the same.")
    if not _too_few(report):
        steps.append("A model may suggest better patterns than word counts do: `--propose judge`, into another folder.")
    return [*steps, f"`{where}/iteration_{report.best or 1}/gap_report.md` shows the items on which both judges differ most."]


def _more_groups(report: LearningReport) -> str:
    """Return how many groups would settle the open checks, if what was seen is the truth: intervals shrink with their root."""
    if report.proof is None:
        return ""
    found = report.proof["statistics"]
    opened = [one for one in found["checks"].values() if one["held"] is None and one["interval"] is not None]
    if _too_few(report):
        return "Learn from more groups of items, or hold out a larger share of them with `--heldout`, into another folder."
    if any(target["value"] <= 0 for target in opened):
        return (
            "More items alone will hardly change it: on these, one of the simpler ways is as good or better. What this judge "
            "looks at may be nothing that words and counts can show."
        )
    groups = groups_needed(found)
    if groups is None:
        return "More groups of items would tell, but it takes more than twenty times as many: what it gains is tiny."
    return (
        f"More groups of items would tell: if it is as good as it looks, about {groups:,} held-out groups settle it, and these "
        f"were {int(found['groups']):,}."
    )


def _failed(report: LearningReport, where: str) -> list[str]:
    level = ["Learn with `--profile evidence`, into another folder: it fits the level, too."] if report.profile == "seed" else []
    return [
        "Keep asking the judge for scores that matter.",
        *level,
        f"`{where}/iteration_{report.best or 1}/gap_report.md` shows where both judges differ most, and so what the set misses.",
        "Try `--propose judge` into another folder, or learn from more groups of items.",
    ]
