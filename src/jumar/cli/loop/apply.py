"""``jumar apply``: the selected iteration into the working directory, or onto a branch; and back."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

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
from jumar.core.clock import SystemClock, current_user
from jumar.core.redaction import current, redacted_json
from jumar.core.text import escape, plural
from jumar.errors import NothingEvaluatedError, UsageError
from jumar.loop.decisions.apply import apply, data_of, finish, plan_undo, undo, way_back, workdir_of
from jumar.loop.decisions.git import make_branch, make_commit
from jumar.loop.decisions.moves import Change
from jumar.loop.decisions.plan import ApplyPlan, plan_apply, unclaimed
from jumar.loop.decisions.select import record_selection, refuse_program
from jumar.loop.report.views import refresh_views
from jumar.loop.store.in_force import artifact_rules, config_now, criteria_of, last_applied, select_from, standing, unfinished
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.running import locked_tree
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
    store = open_loop(root, loop, tell=not (given["quiet"] or given["as_json"]))
    if not given["dry_run"]:
        refuse_program(store.loop_id, "apply")
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


def _workdir(store: LoopStore) -> Path:
    if store.workdir is None:
        kept = shown_path(store.paths.final_output)
        raise UsageError(f"loop '{store.loop_id}' names no working directory to apply to; its selected files are in {kept}")
    return store.workdir


def _standing(store: LoopStore) -> tuple[int, Decision | None]:
    """Return the iteration that stands, or would stand by the rules, and the decision if there is one yet."""
    found = standing(store, criteria_of(config_now(store)))
    if found.iteration is None:
        raise NothingEvaluatedError(
            f"nothing to apply: no iteration of loop '{store.loop_id}' has a valid score; `jumar show` says why for each"
        )
    return found.iteration, found.decision


def _decided(store: LoopStore, *, by: str, at: str) -> tuple[int, str]:
    """Return the iteration that stands and why; record the selection first when nobody decided yet. The lock is held."""
    iteration, decision = _standing(store)
    if decision is None:
        decision = record_selection(store, select_from(store, criteria_of(config_now(store))), by=by, at=at)
    return iteration, decision.reason


@contextlib.contextmanager
def _changing(store: LoopStore, workdir: Path) -> Generator[tuple[str, str]]:
    """Hold both locks, give who and when, and bring the views up to date at the end."""
    clock = SystemClock()
    with store.lock(), locked_tree(store, workdir):
        yield current_user(), clock.now()
        refresh_views(store, at=clock.now())


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
    iteration, _ = _standing(store)
    plan = plan_apply(store, iteration, _workdir(store), artifact_rules(store))
    if given["as_json"]:
        further = {"dry_run": True, "applied": False, "interrupted": found and found.kind}
        _print_document({"loop_id": store.loop_id, **plan.to_json(), **further})
        return
    if found is not None:
        way_out = command_for("apply", store.paths.directory)
        print_line("note", f"the {found.kind} of iteration {found.best_iteration} was interrupted; {way_out} finishes it first")
    if plan.empty:
        print_line(
            "plan", f"{shown_path(plan.workdir)} holds iteration {iteration} already ({plural(len(plan.unchanged), 'file')})"
        )
        _print_lines(_left_alone(plan.left_alone))
        return
    print_line("plan", f"applying iteration {iteration} to {shown_path(plan.workdir)} would change")
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
    with _changing(store, workdir) as (by, at):
        decision = undo(store, by=by, at=at, force=given["force"])
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
            print_line("kept", f"files that had changed since are in {shown_path(store.paths.directory / kept)}")


def _apply(store: LoopStore, given: Mapping[str, Any]) -> None:
    workdir = _workdir(store)
    found = unfinished(store)
    if found is not None:
        workdir = workdir_of(store, found)
    with _changing(store, workdir) as (by, at):
        if unfinished(store) is not None:
            document, lines = _finished(store, finish(store, by=by, at=at))
        elif given["branch"] is not None or given["make_commit"]:
            document, lines = _with_git(store, workdir, given["branch"], by=by, at=at)
        else:
            document, lines = _plainly(store, workdir, by=by, at=at)
    if given["as_json"]:
        _print_document(document)
    elif not given["quiet"]:
        _print_lines(lines)


Answer = tuple[dict[str, Any], list[tuple[str, str]]]
"""The JSON document and the lines of one answer, each after its label."""


def _finished(store: LoopStore, decision: Decision) -> Answer:
    iteration = decision.best_iteration
    lines = [("finished", f"the interrupted {decision.kind} of iteration {iteration}")]
    stands, _ = _standing(store)
    if decision.kind == "undo" or stands != iteration:
        lines.append(("next", f"{command_for('apply', store.paths.directory)} again applies iteration {stands}"))
    document = {"loop_id": store.loop_id, "iteration": iteration, "finished": decision.kind, "decision": decision.number}
    return document | {"applied": decision.kind == "apply", "standing": stands}, lines


def _plainly(store: LoopStore, workdir: Path, *, by: str, at: str) -> Answer:
    iteration, reason = _decided(store, by=by, at=at)
    plan = plan_apply(store, iteration, workdir, artifact_rules(store))
    # an apply that changes nothing is written down too: --undo takes back the last one, not the one before it
    decision = apply(store, plan, by=by, at=at, reason=reason)
    undo = command_for("apply", store.paths.directory, "--undo")
    document = {"loop_id": store.loop_id, **plan.to_json(), "dry_run": False, "applied": not plan.empty}
    document |= {"decision": decision.number, "undo": command_for("apply", store.paths.directory, "--undo", named=True)}
    if plan.empty:
        line = f"{shown_path(workdir)} holds iteration {iteration} already ({plural(len(plan.unchanged), 'file')})"
        return document, [("applied", line), *_left_alone(plan.left_alone)]
    lines = [("applied", f"iteration {iteration} is in {shown_path(workdir)}: {_counts(plan)}")]
    lines += [("not made", f"{_name(path)} (a FIFO, device or socket)") for path in plan.skipped]
    lines += _left_alone(plan.left_alone)
    lines.append(("undo", undo))
    return document, lines


def _with_git(store: LoopStore, workdir: Path, branch: str | None, *, by: str, at: str) -> Answer:
    iteration, reason = _decided(store, by=by, at=at)
    rules = artifact_rules(store)
    if branch is not None:
        made = make_branch(store, iteration, workdir, branch, rules=rules, by=by, at=at)
        untouched = "working directory and HEAD are as they were"
        lines = [("branch", f"iteration {iteration} is {made.commit[:12]} on branch {escape(branch)}; {untouched}")]
    else:
        made = make_commit(store, iteration, workdir, rules=rules, by=by, at=at, reason=reason)
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
