"""What a learning run prints at its end."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any, Final

from jumar.app.learning_model import LearnResult
from jumar.cli.common import print_text, shown_path
from jumar.text import escape, plural

__all__ = ["show_result", "show_summary"]

_VERDICTS: Final = {
    "tracks": "tracks: what it says follows the judge, beyond chance, a constant and the length of the text",
    "not_proven": "not proven: the sealed items leave open whether it follows the judge",
    "fails": "fails: it does not follow the judge",
}


def show_result(found: LearnResult, *, quiet: bool) -> None:
    """Print how a run ended: the verdict and its figures, or how to go on."""
    if found.summary is None:
        cut = "while the sealed items were judged; run the same command again to go on, it is the same look"
        print_text(f"stopped   {cut if found.cut_off else found.outcome.stop.detail}")
        return
    if quiet:
        print_text(f"verdict   {found.summary['verdict']}")
        return
    show_summary(found.summary)
    path = found.output / "patterns.json"
    print_text(f"wrote     {shown_path(path)}")
    print_text(f"next      jumar learn report {shlex.quote(escape(str(found.output)))}")


def show_summary(summary: Mapping[str, Any]) -> None:
    """Print the verdict, and the figures that it rests on."""
    from jumar.judging.tracking.track import FEWEST_GROUPS, FEWEST_ITEMS

    held, iterations = summary["heldout"], plural(int(summary["iterations"]), "iteration")
    print_text(
        f"learned   {iterations}, best is {summary['best_iteration']}; {summary['committed']:,} committed, "
        f"{summary['rejected']:,} rejected, {summary['supported']:,} supported one by one, {summary['rolled_back']:,} rolled back"
    )
    print_text(f"verdict   {_VERDICTS[str(summary['verdict'])]}")
    if held is not None and (int(held["items"]) < FEWEST_ITEMS or int(held["groups"]) < FEWEST_GROUPS):
        print_text(f"          too few to prove anything: {FEWEST_ITEMS} sealed items in {FEWEST_GROUPS} groups are the least")
    if held is not None:
        print_text(
            f"sealed    {plural(int(held['items']), 'item')} in {plural(int(held['groups']), 'group')}: off by "
            f"{_number(held['mae'])} {_interval(held['interval'])}; a constant by {_number(held['constant_mae'])}, "
            f"the length alone by {_number(held['length_mae'])}"
        )
        print_text(
            f"ranks     Spearman {_number(held['spearman'])} {_interval(held['spearman_interval'])}; "
            f"the length alone {_number(held['length_spearman'])}"
        )
    failed = [name.replace("_", " ") for name, one in summary["probes"]["probes"].items() if not one["passed"]]
    if failed:
        print_text(f"gamed     real items that were made worse score higher: {', '.join(failed)}")
    met = "met" if summary["quality_met"] else "not met"
    print_text(f"quality   the items' cheap average is {_number(summary['cheap_avg'])}; the target of 4.0 is {met}")
    cost = summary["cost_usd"]
    print_text(f"judge     {plural(int(summary['judge_calls']), 'call')}, {'unknown cost' if cost is None else f'${cost:.4f}'}")


def _number(value: float | None) -> str:
    return "—" if value is None else f"{value:.2f}"


def _interval(pair: list[float] | None) -> str:
    return "(no interval)" if pair is None else f"({pair[0]:.2f} to {pair[1]:.2f})"
