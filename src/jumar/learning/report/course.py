"""The course of a learning run in words and rows: figures, proposals, why the best iteration is the best, why it ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from jumar.core.text import escape, number, plural, signed
from jumar.learning.convergence import missing_words
from jumar.learning.report.view import LearningReport, kept_text

_ENDS: Final = {
    "converged": "two iterations in a row met every target on the test items",
    "nothing more to propose": "there was nothing more to propose: all that the gaps suggest had been tried",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CourseRow:
    """An iteration, or the start, in the table: every cell as text."""

    name: str
    best: bool
    gap: str
    rank: str
    score: str
    happened: str
    bias: str = ""
    patterns: str = ""
    committed: str = ""
    rejected: str = ""


def course_rows(report: LearningReport) -> list[CourseRow]:
    """Return the rows of the table, the start first."""
    rows: list[CourseRow] = []
    if report.start is not None:
        gap, rank = report.start
        figures = {"gap": number(gap), "rank": _minus(number(rank)), "score": _score(report, 0)}
        rows.append(CourseRow(name="start", best=report.best == 0, happened="the set that the run began with", **figures))
    for iteration in report.iterations:
        decisions = iteration.decisions
        happened = [*(["rolled back"] if decisions.rollbacks else []), *(["recovery"] if decisions.recoveries else [])]
        rows.append(
            CourseRow(
                name=str(iteration.iteration),
                best=iteration.iteration == report.best,
                gap=number(iteration.abs_gap),
                bias="—" if iteration.gap is None else _minus(signed(-iteration.gap)),
                rank=_minus(number(iteration.spearman)),
                score=_score(report, iteration.iteration),
                patterns=f"{iteration.patterns:,}",
                committed=f"{iteration.committed:,}",
                rejected=f"{iteration.rejected:,}",
                happened="; ".join(part for part in (", ".join(happened), iteration.divergence) if part),
            )
        )
    return rows


def _minus(text: str) -> str:
    return text.replace("-", "−")


def _score(report: LearningReport, iteration: int) -> str:
    score = report.scores.get(iteration)
    return "—" if score is None else f"{score:.1f}"


# --------------------------------------------------------------------------------------------------------- in sentences


def course_notes(report: LearningReport) -> list[str]:
    """Return what the table means, why the best is the best, how the counts add up, and why it ended."""
    if not report.logs:
        return []
    items = report.iterations[-1].tested
    of = f"{plural(items, 'open item')} that {'tests' if items == 1 else 'test'} it" if items else "open items"
    first = (
        f"The figures are of {of}, each scored by a set that did not see it. The gap is how many points of the scale the set is "
        "from the judge on average. Too high (+) or too low (−) is what is left of it where both cancel out. The rank "
        "correlation is 1 for the judge's order and 0 for chance."
    )
    if report.constant is not None:
        first += f" The same score for everything is off by {number(report.constant)} there."
    ended = f"It ended: {escape(report.stopped)}." if report.stopped else ""
    return [first, *(part for part in (best_text(report), _counts(report), ended) if part)]


def _counts(report: LearningReport) -> str:
    """Return how the columns of patterns and decisions add up."""
    totals, steps = Totals.of(report.logs), report.steps
    told = ""
    if report.profile != "seed":
        told = (
            "Active patterns are phrases and steps of measured features, such as the length or what is copied from the prompt. "
            "Phrases are proposed, and committed or rejected; steps are not: the fit sets all of them"
        )
        told += f", {len(steps):,} in the set that is kept. " if report.summary is not None and report.patterns else ". "
    told += f"In all: {totals.text}."
    return told if totals.commits or totals.rejections or totals.provisional or steps else ""


def best_text(report: LearningReport) -> str:
    """Return why the best iteration is the best: its score, and what stands beside it."""
    best, scores = report.best, report.scores
    if best is None or best not in scores:
        return ""
    figures = {iteration.iteration: (iteration.abs_gap, iteration.spearman) for iteration in report.iterations}
    if report.start is not None:
        figures[0] = report.start
    if best not in figures:
        return ""
    told = (
        "★ is the best: it has the highest score, one half of which is closeness (1 − gap/4) and one half order "
        "((1 + rank correlation)/2), of 100."
    )
    if _order_alone(figures.get(0, (None, None)), scores.get(0)):
        told += " Of the start the order alone counts: one score for all of the items is closer to the judge."
    if best == 0:
        told += " That is the start: no iteration came to a better score, so that nothing that was learned is kept."
    others = [score for score in scores if score != best and score in figures]
    rival = max(others, key=lambda one: scores[one], default=None)
    shown = [rival] if rival is not None else []
    own_gap, start_gap = figures[best][0], figures.get(0, (None, None))[0]
    if 0 in others and rival != 0 and own_gap is not None and start_gap is not None and own_gap > start_gap:
        shown.append(0)
    return " ".join([told, *(_against(report, best, one, figures) for one in shown)])


def _order_alone(start: tuple[float | None, float | None], score: float | None) -> bool:
    """Return whether the start's score leaves out how close it is, as it does where a constant is closer."""
    gap, rank = start
    return gap is not None and score is not None and score < 50 * (1 - gap / 4 + (1 + (rank or 0.0)) / 2) - 1


def _against(report: LearningReport, best: int, other: int, figures: Mapping[int, tuple[float | None, float | None]]) -> str:
    """Return a sentence that holds another iteration against the best one."""
    scores = report.scores
    name, here = ("The start" if other == 0 else f"Iteration {other}"), "the start" if best == 0 else f"iteration {best}"
    (gap, rank), (own_gap, own_rank) = figures[other], figures[best]
    places = next((count for count in (1, 2, 3, 4) if f"{scores[best]:.{count}f}" != f"{scores[other]:.{count}f}"), 4)
    both = f"{scores[other]:.{places}f} against {scores[best]:.{places}f}"
    if scores[other] == scores[best]:
        return f"{name} has the very same score."
    if None in {gap, rank, own_gap, own_rank} or (number(gap), number(rank)) == (number(own_gap), number(own_rank)):
        return f"{name} has the same gap and order to two decimals: {both}."
    order = "a better" if (rank or 0.0) > (own_rank or 0.0) else "a worse"
    told = [
        f"{'a smaller' if (gap or 0.0) < (own_gap or 0.0) else 'a larger'} gap ({number(gap)}, {here} {number(own_gap)})",
        f"{order} order ({_minus(number(rank))}, {here} {_minus(number(own_rank))})",
    ]
    if number(gap) == number(own_gap):
        told[0] = f"the same gap ({number(gap)})"
    if number(rank) == number(own_rank):
        told[1] = f"the same order ({_minus(number(rank))})"
    return f"{name} has {told[0]} and {told[1]}: {both}."


def decisions_text(report: LearningReport) -> str:
    """Return what committed and rejected mean under the run's profile."""
    if report.profile == "seed":
        return (
            "A phrase is committed when enough of its tests agree with the judge, rejected when too few do, and provisional in "
            "between."
        )
    return (
        "A fit weighs all phrases and steps at once, on the open items. Committed is a phrase that it gave points to; rejected "
        "one that it gave none, or that had points and lost them."
    )


def kept_texts(report: LearningReport) -> dict[int, str]:
    """Return by iteration why one whose gap grew was not rolled back."""
    rows = report.iterations
    gaps = [None if report.start is None else report.start[0], *(row.abs_gap for row in rows)]
    found = {one.iteration: kept_text(one, before) for one, before in zip(rows, gaps, strict=False)}
    return {name: text for name, text in found.items() if text}


def lost_lines(report: LearningReport) -> list[str]:
    """Return which commits are not in the set that is kept, and why; empty before there is a verdict."""
    if report.summary is None or report.best is None:
        return []
    there = {str(pattern["id"]) for pattern in report.patterns}
    then, last = Totals.of(report.logs, until=report.best), Totals.of(report.logs)
    lines: list[str] = []
    gone = [says for name, says in then.standing.items() if name not in there]
    if gone:
        fit = (
            "the last fit, on all open items at once, gave them no points" if report.calibration else "they are not active in it"
        )
        lines.append(f"{len(gone):,} committed, and not in the set that is kept: {fit}: {_named(gone)}")
    later = [says for name, says in last.standing.items() if name not in then.standing and name not in there]
    if later:
        of = "the start" if report.best == 0 else f"iteration {report.best}"
        lines.append(f"{len(later):,} committed later, and not in the set that is kept, which is that of {of}: {_named(later)}")
    return lines


def _named(found: list[str], most: int = 30) -> str:
    more = f", and {len(found) - most:,} more" if len(found) > most else ""
    return ", ".join(escape(one) for one in found[:most]) + more


def stop_words(reason: str, detail: str, why: str) -> str:
    """Return why a run ended. ``why`` is what the last iteration says of itself, empty where it had more to do."""
    return _ENDS.get(why, "there was nothing left to do") if reason == "completed" else detail


def converged_text(summary: Mapping[str, Any]) -> str:
    """Return whether a run converged, and if not what was missing, by how much, and what would help."""
    if summary.get("converged"):
        return "yes: two iterations in a row met every target, and the held-out items prove that it tracks"
    missing = missing_words(summary.get("missing") or ())
    return f"no: {missing}" if missing else "no"


_STATUSES: Final = {"committed_pattern": "committed", "rejected_pattern": "rejected", "proposed_pattern": "provisional"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Proposals by what became of them.

    ``commits`` and ``rejections`` are the sums over iterations, each of which counts what became so in it; ``committed``,
    ``rejected`` and ``provisional`` are what stands at the end. ``standing`` are the descriptions of the committed ones, by id.
    """

    commits: int
    rejections: int
    committed: int
    rejected: int
    provisional: int
    standing: Mapping[str, str]

    @classmethod
    def of(cls, logs: Iterable[Mapping[str, Any]], *, until: int | None = None) -> Totals:
        """Read the logs of the iterations, up to iteration ``until`` where it is given."""
        commits = rejections = 0
        found: dict[str, tuple[str, str]] = {}
        for log in logs:
            if until is not None and int(log["metrics"]["iteration"]) > until:
                continue
            for one in log["actions_taken"]:
                status = _STATUSES.get(str(one.get("action", "")))
                if status is None:
                    continue
                commits += status == "committed"
                rejections += status == "rejected"
                name = str(one.get("pattern_id") or one.get("description"))
                found[name] = (status, str(one.get("description") or name))
        statuses = [status for status, _ in found.values()]
        return cls(
            commits=commits,
            rejections=rejections,
            committed=statuses.count("committed"),
            rejected=statuses.count("rejected"),
            provisional=statuses.count("provisional"),
            standing={name: says for name, (status, says) in found.items() if status == "committed"},
        )

    @property
    def text(self) -> str:
        """Return ``191 committed at the end; 123 more were committed and rejected later``."""
        taken_back, again = self.commits - self.committed, self.rejections - self.rejected
        told = f"{self.committed:,} committed at the end"
        if taken_back:
            told += f" ({taken_back:,} more {_were(taken_back)} committed and rejected later)"
        told += f", {self.rejected:,} rejected"
        if again:
            told += f" ({again:,} more {_were(again)} rejected and committed later)"
        return told + (f", {self.provisional:,} still provisional" if self.provisional else "")


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


_BY: Final = {
    "log_odds": "words that mark items the cheap judge gets wrong",
    "chi_square": "words that mark items the cheap judge gets wrong",
    "judge_words": "words of the judge's reasons that stand in the items",
    "word_family": "families of words, such as one word's forms",
    "fit": "the fit, which found them in the items",
    "given": "the set that the run began with",
    "model": "the judge's model",
    "llm": "the judge's model",
}
_HOW: Final = {
    "identical": "the same as a known one",
    "subsumed": "said already by a more general one",
    "wording": "in nearly the same words",
    "firing": "firing on nearly the same items",
}


def merges(report: LearningReport) -> list[Mapping[str, Any]]:
    """Return the proposals that were merged, each once, with the ``iteration`` that found it first."""
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for iteration, one in sorted(report.proposals.items()):
        for merge in one.get("merged", ()):
            found.setdefault((str(merge["merged"]), str(merge["into"])), {**merge, "iteration": iteration})
    return list(found.values())


def proposal_lines(report: LearningReport) -> list[str]:
    """Return what was proposed, in a few lines: how much by what, and what was merged."""
    by: Counter[str] = Counter()
    for proposal in report.proposals.values():
        by.update(proposal.get("by", {}))
    lines: list[str] = []
    if by:
        words: Counter[str] = Counter()
        for name, count in by.items():
            words[_BY.get(name, name.replace("_", " "))] += count
        told = ", ".join(f"{count:,} from {escape(name)}" for name, count in words.most_common())
        lines.append(f"{plural(sum(by.values()), 'proposal')} that said something new: {told}")
    merged = merges(report)
    if merged:
        how = Counter(str(one["by"]) for one in merged)
        told = ", ".join(f"{count:,} {_HOW.get(name, escape(name))}" for name, count in how.most_common())
        lines.append(f"{plural(len(merged), 'proposal')} merged with one that was there: {told}; for instance")
        lines[-1] += f" {escape(str(merged[0]['explanation']))}"
    notes = dict.fromkeys(str(note) for proposal in report.proposals.values() for note in proposal.get("told", ()))
    return [*lines, *(escape(note) for note in notes)]
