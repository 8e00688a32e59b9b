"""What was proposed in a learning run, by what, and what was merged with something that was there already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from jumar.core.text import escape, plural
from jumar.learning.report.view import LearningReport

__all__ = ["merges", "proposal_lines"]

_BY: Final = {
    "log_odds": "words that mark items the cheap judge gets wrong",
    "chi_square": "words that mark items the cheap judge gets wrong",
    "judge_words": "words of the judge's reasons that stand in the items",
    "word_family": "families of words, such as one word's forms",
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
    for number, one in sorted(report.proposals.items()):
        for merge in one.get("merged", ()):
            found.setdefault((str(merge["merged"]), str(merge["into"])), {**merge, "iteration": number})
    return list(found.values())


def proposal_lines(report: LearningReport) -> list[str]:
    """Return what was proposed, in a few lines: how much by what, and what was merged."""
    by: Counter[str] = Counter()
    for one in report.proposals.values():
        by.update(one.get("by", {}))
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
    notes = dict.fromkeys(str(note) for one in report.proposals.values() for note in one.get("told", ()))
    return [*lines, *(escape(note) for note in notes)]
