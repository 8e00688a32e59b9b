"""``jumar select``: what would be selected, by these rules or others; or a person's own choice."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import click

from jumar.app.decide import select_iteration
from jumar.cli.common import (
    DecimalRange,
    command_for,
    held_words,
    loop_argument,
    open_loop,
    print_json,
    print_line,
    print_text,
    shown_path,
    standard_options,
)
from jumar.core.given import sides
from jumar.core.rendering.figures import in_points, point_text
from jumar.core.text import escape, points
from jumar.errors import UsageError
from jumar.loop.decisions.select import parse_use
from jumar.loop.ranking.choose import choose, ordered
from jumar.loop.store.in_force import config_now, criteria_of, imported_commit, select_from, standing
from jumar.loop.store.loop_store import LoopStore
from jumar.model import Decision, SelectionCriteria, SelectionResult
from jumar.model.selection import MODES, refuse_share

_EPILOG = """\b
Examples:
  jumar select                    what the loop's own rules choose
  jumar select readme-polish --mode highest_quality --threshold 80
  jumar select --use 3 --reason "keeps the API stable"
  jumar select --use best --reason "back to the rules"

Without --use nothing is written. Exit code: 0, or 12 when no iteration has a valid score."""


@click.command("select", epilog=_EPILOG)
@loop_argument
@click.option("--mode", type=click.Choice(MODES), help="How to choose (default: as the loop was configured).")
@click.option("--threshold", type=DecimalRange(0, 100), metavar="T", help="The score that counts as good enough, 0-100.")
@click.option(
    "--require-verification/--no-require-verification",
    default=None,
    help="For most_recent_above_threshold: whether only verified ones qualify.",
)
@click.option("--use", metavar="best|final|N", help="Choose this one, whatever the rules say; needs --reason.")
@click.option("--reason", help="Why; kept with the decision.")
@standard_options
def select_command(
    loop: str | None,
    mode: Literal["highest_quality", "highest_quality_verified", "most_recent_above_threshold"] | None,
    threshold: float | None,
    require_verification: bool | None,
    use: str | None,
    reason: str | None,
    root: Path,
    *,
    as_json: bool,
    quiet: bool,
) -> int:
    """Show which iteration would be selected, or let another one stand.

    The working directory is never touched; `jumar apply` does that.
    """
    if reason is not None and use is None:
        raise UsageError("--reason belongs to --use best|final|N")
    if threshold is not None:
        try:
            refuse_share(threshold)
        except ValueError as error:
            raise UsageError(f"--threshold: {error}") from None
    store = open_loop(root, loop, tell=use is not None and not (quiet or as_json))
    own = criteria_of(config_now(store))
    criteria = replace(
        own,
        mode=own.mode if mode is None else mode,
        threshold=own.threshold if threshold is None else threshold,
        require_verification=own.require_verification if require_verification is None else require_verification,
    )
    if use is not None:
        decision = _override(store, use, reason or "", criteria)
        if decision.kind == "held":
            raise UsageError(held_words(decision, store.paths.directory))
        _show_override(store, decision, criteria, as_json=as_json, quiet=quiet)
        return 0
    result = select_from(store, criteria)
    if as_json:
        print_json(_document(store, result, criteria))
    elif quiet:
        print_text(str(result.stands))
    else:
        _show(store, result, criteria)
    return 0


def _document(store: LoopStore, result: SelectionResult, criteria: SelectionCriteria) -> dict[str, Any]:
    return {
        "loop_id": store.loop_id,
        **result.to_json(),
        "criteria": criteria.to_json(),
        "standing": standing(store).iteration,
        "decision": None,
    }


def _show(store: LoopStore, result: SelectionResult, criteria: SelectionCriteria) -> None:
    threshold = "no threshold" if criteria.threshold is None else f"threshold {points(criteria.threshold)}"
    print_line("rules", f"{criteria.mode}, {threshold}")
    print_line("by rules", f"iteration {result.stands}, {points(result.quality_score)} · {escape(in_points(result.reason))}")
    if result.fallback is not None:
        print_line("relaxed", f"{result.fallback}: nothing satisfies all the rules")
    if result.runner_up is not None and result.margin is not None:
        print_line("runner-up", f"iteration {result.runner_up}, {_apart(result.margin)}")
    if result.degradation_detected and result.final_quality is not None:
        print_line("last", f"iteration {result.final_iteration}, {points(result.final_quality)}: it is not the best")
    if result.below_start:
        print_line("note", "it scores less than the start state, and is selected because only it verified")
    now = standing(store)
    if now.decision is None:
        print_line("selected", "nothing is recorded yet; `jumar apply` would record and apply what the rules select")
        return
    how = "by a person" if now.decision.kind == "override" else "by the rules"
    print_line("selected", f"iteration {now.iteration}, {how} ({escape(now.decision.by)}, {escape(now.decision.at)})")
    if now.iteration != result.stands:
        use = f'--use {result.stands} --reason "…"'
        print_line("", f"{command_for('select', store.paths.directory, use)} selects {result.stands} instead")


def _apart(margin: float) -> str:
    """Return how far the next best is from the selected one: ``15 points lower``."""
    if points(margin) == "0":
        return "the same score" if margin == 0 else "less than 0.1 points away"
    return f"{point_text(margin)} {sides(margin, 'lower', 'higher')[margin < 0]}"


# --------------------------------------------------------------------------------------------------------- by a person


def _override(store: LoopStore, use: str, reason: str, criteria: SelectionCriteria) -> Decision:
    wanted = parse_use(use)
    if config_now(store).get("override_enabled") is False:
        raise UsageError(
            f"loop '{store.loop_id}' allows no overrides: its configuration has [override] enabled = false. "
            "Without --use this command computes the rules' choice; --mode and --threshold try others."
        )
    confirm = _confirmed if sys.stdin.isatty() else None
    return select_iteration(store, wanted, reason=reason, criteria=criteria, confirm=confirm)


def _confirmed(begun: str) -> bool:
    print_line("note", f"jumar was killed in {begun}: a program of the loop may be who asks for this", err=True)
    return click.confirm("select it all the same?", err=True)


def _show_override(store: LoopStore, decision: Decision, criteria: SelectionCriteria, *, as_json: bool, quiet: bool) -> None:
    result = _result_of(store, decision, criteria)
    if as_json:
        print_json(_document(store, result, criteria) | {"decision": decision.to_json()})
        return
    if quiet:
        return
    before = "" if decision.replaced in {None, decision.best_iteration} else f", instead of {decision.replaced}"
    print_line("selected", f"iteration {decision.best_iteration}, {points(result.quality_score)}{before}")
    print_line("reason", f"{escape(decision.reason)} ({escape(decision.by)})")
    where = "the working directory" if store.workdir is None else shown_path(store.workdir)
    commit = imported_commit(store, decision.best_iteration or 0)
    if commit is not None:
        print_line("next", f"git switch --detach {commit}")
    elif store.workdir is not None or "origin" not in store.config:
        print_line("apply", f"{command_for('apply', store.paths.directory)} puts it into {where}")


def _result_of(store: LoopStore, decision: Decision, criteria: SelectionCriteria) -> SelectionResult:
    """Return the person's choice in the fields of a selection: whether it meets the rules, how far it is from the next best."""
    views = store.views()
    own = next(view for view in views if view.number == decision.best_iteration)
    alone = choose([own], criteria)
    by_rules = select_from(store, criteria)
    others = [view for view in ordered(views, criteria) if view.number != own.number]
    margin = None if not others or others[0].score is None else round(alone.quality_score - others[0].score, 4)
    final, start = by_rules.final_quality, views[0]
    return replace(
        alone,
        reason=decision.reason,
        final_iteration=by_rules.final_iteration,
        final_quality=final,
        degradation_detected=own.number != by_rules.final_iteration and final is not None and alone.quality_score > final,
        runner_up=others[0].number if others else None,
        margin=margin,
        below_start=start.number == 0 and start.score is not None and alone.quality_score < start.score,
    )
