"""``jumar apply``: the selected iteration into the working directory, or onto a branch; and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import click

from jumar.app.decide import Applied, apply_selected, commit_selected, plan_selected, selected_iteration, undo_apply, workdir_for
from jumar.cli.common import (
    command_for,
    loop_argument,
    open_loop,
    print_json,
    print_line,
    print_text,
    shown_path,
    standard_options,
    way_to_apply,
)
from jumar.core.redaction import current, redacted_json
from jumar.core.text import escape, plural
from jumar.errors import UsageError
from jumar.loop.decisions.apply import data_of, plan_undo, way_back
from jumar.loop.decisions.git import CommitResult
from jumar.loop.decisions.moves import Change
from jumar.loop.decisions.plan import ApplyPlan, unclaimed
from jumar.loop.store.in_force import last_applied, unfinished
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.trust import FROM_ELSEWHERE
from jumar.model import Decision

_SHOWN = 5  # of the files that git filters

_EPILOG = """\b
Examples:
  jumar apply --dry-run           what would change
  jumar apply                     of the loop that runs, else of the newest
  jumar apply readme-polish       of this one
  jumar apply --undo              back to the state just before; of a loop in place, to its start
  jumar apply --branch best-of-loop

An apply that was interrupted is finished by the next one, or taken back with --undo."""

_MARKS = {"add": "A", "replace": "M", "remove": "D"}


class _ApplyCommand(click.Command):
    """Says how another iteration is applied to whoever names one here."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, list(args))
        except click.UsageError as error:
            number = next((word for word in args if word.isdecimal()), None)
            if number is None:
                raise
            raise click.UsageError(f"{error.format_message().rstrip('.')}: {way_to_apply(number)}", ctx) from None


@click.command("apply", cls=_ApplyCommand, epilog=_EPILOG)
@loop_argument
@click.option("--dry-run", is_flag=True, help="Only show what would be written and removed.")
@click.option(
    "--undo", "take_back", is_flag=True, help="Restore the state just before the last apply, at last that before the loop."
)
@click.option("--force", is_flag=True, help="With --undo: also over files that changed since; they are set aside first.")
@click.option("--branch", metavar="NAME", help="Commit it on a new git branch; working directory and HEAD stay as they are.")
@click.option("--commit", "make_commit", is_flag=True, help="Apply it, and commit it on the current git branch.")
@standard_options
def apply_command(loop: str | None, root: Path, **given: Any) -> int:
    """Put the selected iteration into the loop's working directory: the last override, else the selection.

    The part of the tree that [artifacts] matches becomes equal to the snapshot; what is replaced or removed is kept for --undo.
    """
    _check_options(given)
    tell = not (given["quiet"] or given["as_json"])
    store = open_loop(root, loop, tell=tell)
    if tell and not store.trust.ours:
        print_line("note", FROM_ELSEWHERE, err=True)
    if given["dry_run"]:
        _dry_run(store, given)
    elif given["take_back"]:
        _undo(store, given)
    else:
        _apply(store, given)
    return 0


def _check_options(given: Mapping[str, Any]) -> None:
    ways = [flag for flag, name in (("--undo", "take_back"), ("--branch", "branch"), ("--commit", "make_commit")) if given[name]]
    if len(ways) > 1:
        raise UsageError(f"{' and '.join(ways)} are different things to do; choose one")
    if given["force"] and not given["take_back"]:
        raise UsageError("--force belongs to --undo: an apply keeps a copy of everything that it replaces")
    if given["dry_run"] and ways and ways != ["--undo"]:
        raise UsageError(
            f"--dry-run shows what a plain apply or --undo would change; {ways[0]} changes no file of yours by surprise"
        )


def _name(path: str) -> str:
    """Return the name of a file for people: a program may have put a secret into it."""
    return current().redact(escape(path))


def _print_document(document: Mapping[str, Any]) -> None:
    print_json(redacted_json(document, current().redact))


# ------------------------------------------------------------------------------------------------------- looking only


def _dry_run(store: LoopStore, given: Mapping[str, Any]) -> None:
    found = unfinished(store)
    if given["take_back"]:
        undo = plan_undo(store)
        if given["as_json"]:
            _print_document({"loop_id": store.loop_id, "dry_run": True, "applied": False, **undo.to_json()})
            return
        nothing = "" if undo.moves.changes else " nothing"
        what = "putting the start back" if undo.apply is None else f"taking iteration {undo.iteration} back"
        print_line("plan", f"{what} in {shown_path(undo.workdir)} would change{nothing}")
        _print_changes(undo.moves.changes)
        for path in undo.conflicts:
            print_line("conflict", f"{_name(path)} changed since; --force sets it aside first")
        _print_lines(_left_alone(undo.left_alone))
        return
    plan = plan_selected(store)
    if given["as_json"]:
        further = {"dry_run": True, "applied": False, "interrupted": found and found.kind}
        _print_document({"loop_id": store.loop_id, **plan.to_json(), **further})
        return
    if found is not None:
        way_out = command_for("apply", store.paths.directory)
        print_line("note", f"the {found.kind} of iteration {found.best_iteration} was interrupted; {way_out} finishes it first")
    if plan.empty:
        print_line(
            "plan", f"{shown_path(plan.workdir)} holds iteration {plan.iteration} already ({plural(len(plan.unchanged), 'file')})"
        )
        _print_lines(_left_alone(plan.left_alone))
        return
    print_line("plan", f"applying iteration {plan.iteration} to {shown_path(plan.workdir)} would change")
    _print_changes(plan.moves.changes)
    print_line("files", f"{_counts(plan)}; nothing was written")
    _print_lines(_left_alone(plan.left_alone))


def _print_changes(changes: tuple[Change, ...]) -> None:
    for change in changes:
        print_text(f"  {_MARKS[change.verb]} {_name(change.path)}")


def _left_alone(paths: Sequence[str]) -> list[tuple[str, str]]:
    return [("note", f"left alone: {current().redact(unclaimed(paths))}")] if paths else []


def _print_lines(lines: Iterable[tuple[str, str]]) -> None:
    for label, text in lines:
        print_line(label, text)


def _counts(plan: ApplyPlan) -> str:
    verbs = [change.verb for change in plan.moves.changes]
    parts = [f"{verbs.count(verb):,} {past}" for verb, past in (("add", "added"), ("replace", "replaced"), ("remove", "removed"))]
    return f"{', '.join(parts)}, {len(plan.unchanged):,} unchanged"


# ------------------------------------------------------------------------------------------------------------ changing


def _undo(store: LoopStore, given: Mapping[str, Any]) -> None:
    workdir = plan_undo(store).workdir
    decision = undo_apply(store, force=given["force"])
    kept = decision.data.get("set_aside")
    changed = any(data_of(decision).section("moves").data.values())
    if given["as_json"]:
        aside = None if kept is None else str(store.paths.directory / kept)
        document = {"loop_id": store.loop_id, "iteration": decision.best_iteration, "workdir": str(workdir)}
        document |= {"undone": decision.data.get("apply"), "decision": decision.number, "set_aside": aside}
        _print_document(document | {"changed": changed})
    elif not given["quiet"]:
        already = "" if changed else "nothing to change: "
        to_start = decision.kind == "apply"
        before = "the loop began" if to_start else f"iteration {decision.best_iteration} was applied"
        print_line("undone", f"{already}{shown_path(workdir)} is what it was before {before}")
        further, last = None if changed else way_back(store), last_applied(store)
        if further is not None:
            again = command_for("apply", store.paths.directory, "--undo")
            earlier = f"takes back the apply of iteration {last.best_iteration} before it" if last is not None else ""
            print_line("next", f"{again} again {earlier if further == 'apply' else 'puts the start back'}")
        elif to_start:
            print_line("next", f"{command_for('apply', store.paths.directory)} applies the selected iteration again")
        if kept is not None:
            place = shown_path(store.paths.directory / kept)
            print_line("kept", f"files that had changed since, or are in no whole snapshot, are in {place}")


def _apply(store: LoopStore, given: Mapping[str, Any]) -> None:
    with_git = given["branch"] is not None or given["make_commit"]
    done = commit_selected(store, given["branch"]) if with_git else apply_selected(store)
    if done.plan is not None:
        document, lines = _plainly(store, done, done.plan)
    elif done.commit is not None:
        document, lines = _with_git(store, done, done.commit, given["branch"])
    else:
        document, lines = _finished(store, cast("Decision", done.decision))
    if given["as_json"]:
        _print_document(document)
    elif not given["quiet"]:
        _print_lines(lines)


Answer = tuple[dict[str, Any], list[tuple[str, str]]]
"""The JSON document and the lines of one answer, each after its label."""


def _finished(store: LoopStore, decision: Decision) -> Answer:
    iteration = decision.best_iteration
    lines = [("finished", f"the interrupted {decision.kind} of iteration {iteration}")]
    stands, _ = selected_iteration(store)
    if decision.kind == "undo" or stands != iteration:
        lines.append(("next", f"{command_for('apply', store.paths.directory)} again applies iteration {stands}"))
    document = {"loop_id": store.loop_id, "iteration": iteration, "finished": decision.kind, "decision": decision.number}
    return document | {"applied": decision.kind == "apply", "standing": stands}, lines


def _plainly(store: LoopStore, done: Applied, plan: ApplyPlan) -> Answer:
    undo = command_for("apply", store.paths.directory, "--undo")
    document = {"loop_id": store.loop_id, **plan.to_json(), "dry_run": False, "applied": not plan.empty}
    document["decision"] = done.decision and done.decision.number
    document["undo"] = command_for("apply", store.paths.directory, "--undo", named=True)
    if plan.empty:
        line = f"{shown_path(plan.workdir)} holds iteration {plan.iteration} already ({plural(len(plan.unchanged), 'file')})"
        return document, [("applied", line), *_left_alone(plan.left_alone)]
    lines = [("applied", f"iteration {plan.iteration} is in {shown_path(plan.workdir)}: {_counts(plan)}")]
    lines += [("not made", f"{_name(path)} (a FIFO, device or socket)") for path in plan.skipped]
    lines += _left_alone(plan.left_alone)
    lines.append(("undo", undo))
    return document, lines


def _with_git(store: LoopStore, done: Applied, made: CommitResult, branch: str | None) -> Answer:
    iteration, workdir = done.iteration, workdir_for(store)
    if branch is not None:
        untouched = "working directory and HEAD are as they were"
        lines = [("branch", f"iteration {iteration} is {made.commit[:12]} on branch {escape(branch)}; {untouched}")]
    else:
        where = escape(made.ref.removeprefix("refs/heads/"))
        lines = [("commit", f"iteration {iteration} is {made.commit[:12]} on {where}, and in {shown_path(workdir)}")]
    if not made.created:
        lines.append(("note", "git held it already: no commit was made"))
    lines += [("left out", f"{_name(path)} (in a repository of its own)") for path in made.left_out]
    lines += _left_alone(made.left_alone)
    if made.filtered:
        some = "; ".join(map(_name, made.filtered[:_SHOWN])) + ("; …" if len(made.filtered) > _SHOWN else "")
        count = plural(len(made.filtered), "file")
        lines.append(("note", f"git keeps other bytes than the iteration has of {count}, by a filter or line endings: {some}"))
    document = {
        "loop_id": store.loop_id,
        "iteration": iteration,
        "workdir": str(workdir),
        "ref": made.ref,
        "commit": made.commit,
        "created": made.created,
        "left_out": list(made.left_out),
        "left_alone": list(made.left_alone),
        "filtered": list(made.filtered),
        "applied": branch is None,
        "decision": made.decision and made.decision.number,
    }
    return document, lines
