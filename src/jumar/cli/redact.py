"""``jumar redact``: take a secret out of a loop's whole history."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from jumar.cli.common import (
    json_option,
    loop_argument,
    open_loop,
    print_json,
    print_text,
    quiet_option,
    root_option,
)
from jumar.errors import StoreDamagedError, UsageError
from jumar.model.codec import flat
from jumar.text import escape, plural

if TYPE_CHECKING:
    from jumar.redaction import Redactor
    from jumar.store.loop_store import LoopStore
    from jumar.store.redact import Redaction

__all__ = ["redact_command"]

_EPILOG = """\b
Examples:
  jumar redact readme-polish --value-of MY_TOKEN --dry-run   how often it is there
  jumar redact readme-polish --value-of MY_TOKEN
  pass show token | jumar redact readme-polish --stdin --yes
  jumar redact readme-polish --pattern 'acme-[0-9a-f]{16}'

The secret itself is never an argument: others on the machine can read those. One that leaked should be revoked all the same.
A redaction that was interrupted is completed by `jumar redact LOOP`."""

_LIMIT = 1 << 20
_SHOWN = 5


@click.command("redact", epilog=_EPILOG)
@loop_argument
@click.option("--value-of", metavar="VAR", help="The secret is the value of this environment variable.")
@click.option("--value-file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="It is this file's content.")
@click.option("--stdin", "from_stdin", is_flag=True, help="It is what comes on standard input.")
@click.option("--pattern", metavar="REGEX", help="Everything that this regular expression matches.")
@click.option("--dry-run", is_flag=True, help="Only count where it is.")
@click.option("-y", "--yes", is_flag=True, help="Don't ask.")
@root_option
@json_option
@quiet_option
def redact_command(loop: str, root: Path, **given: Any) -> int:
    """Replace a secret in everything that a loop stored: snapshots, their names, logs, records, decisions, prompts, replies.

    Hashes and seals are made anew, a decision says that it was done, and the whole loop is verified. It can't be undone.
    """
    from jumar.decide.operation import refuse_unfinished
    from jumar.store.redact import complete_redaction, plan_redaction

    store = open_loop(root, loop)
    redactor, what = _wanted(given)
    earlier = None if given["dry_run"] else complete_redaction(store)
    if redactor is None:
        if earlier is None:
            raise UsageError("what is to be taken out? Name one of --value-of, --value-file, --stdin and --pattern")
        return _answer(store, root, given, None, earlier.reason)
    refuse_unfinished(store)
    planned = plan_redaction(store, redactor)
    if given["dry_run"]:
        return _show_plan(store, root, given, planned, redactor)
    _ask(given, planned, store)
    done, trees = _redact(store, redactor, what)
    from jumar.store.redact import redact_folder

    replies = [name for folder in _reply_folders(store, root) for name in redact_folder(folder, redactor, change=True)]
    return _answer(store, root, given, done, what, redactor=redactor, replies=len(replies), trees=trees)


def _wanted(given: Mapping[str, Any]) -> tuple[Redactor | None, str]:
    """Return what finds the secret, and how it is called on record. Errors: :class:`UsageError`."""
    from jumar.app.redact_config import unusable
    from jumar.redaction import Redactor, unfit

    flags = (("--value-of", "value_of"), ("--value-file", "value_file"), ("--stdin", "from_stdin"), ("--pattern", "pattern"))
    ways = [flag for flag, name in flags if given[name] not in {None, False}]
    if len(ways) > 1:
        raise UsageError(f"{' and '.join(ways)} both say what the secret is; give one of them at a time")
    if not ways:
        return None, ""
    if given["pattern"] is not None:
        why = unusable(given["pattern"])
        if why is not None:
            raise UsageError(f"--pattern: {given['pattern']!r} {why}")
        return Redactor(patterns=[given["pattern"]], shapes=False), "what a pattern matches"
    value, name, what = _value(given)
    why = unfit(value)
    if why is not None:
        raise UsageError(f"{ways[0]}: the value {why}; --pattern can say more exactly what is meant")
    return Redactor({name: value}, shapes=False, thorough=True), what


def _value(given: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the secret, its name for the replacement, and for the record."""
    if given["value_of"] is not None:
        name: str = given["value_of"]
        if name not in os.environ:
            raise UsageError(f"--value-of: there is no variable {escape(name)}")
        return os.environ[name], name, f"the value of {escape(name)}"
    if given["value_file"] is not None:
        path: Path = given["value_file"]
        try:
            with path.open("rb") as stream:
                data = stream.read(_LIMIT)
        except OSError as error:
            raise UsageError(f"--value-file: {escape(str(path))} cannot be read: {error.strerror}") from None
    else:
        data = sys.stdin.buffer.read(_LIMIT)
    try:
        return data.decode().removesuffix("\n").removesuffix("\r"), "", "a value"
    except UnicodeDecodeError:
        raise UsageError("the value is not UTF-8 text; --pattern can say what is meant, byte by byte") from None


def _ask(given: Mapping[str, Any], planned: Redaction, store: LoopStore) -> None:
    if given["yes"] or not planned.files + planned.renamed:
        return
    question = f"replace it in {_counts(planned)} of loop '{escape(store.loop_id)}'? This can't be undone"
    if given["from_stdin"] or given["as_json"] or not sys.stdin.isatty():
        raise UsageError(f"{question}: --yes says yes, --dry-run only counts")
    click.confirm(question, abort=True)


def _redact(store: LoopStore, redactor: Redactor, what: str) -> tuple[Redaction, int]:
    """Change the loop, and the trees that jumar made for it: a run that goes on would take the secret up again from there."""
    from jumar.loop.clock import SystemClock
    from jumar.loop.identity import current_user
    from jumar.loop.workspace import own_trees
    from jumar.report.views import refresh_views
    from jumar.store.loop_store import LoopStore
    from jumar.store.redact import redact_folder, redact_loop

    at = SystemClock().now()
    done = redact_loop(store, redactor, what=what, by=current_user(), at=at)
    fresh = LoopStore.open(store.paths.directory)
    with fresh.lock():
        refresh_views(fresh, at=at)
        trees = sum(len(redact_folder(tree, redactor, change=True)) for tree in own_trees(fresh))
    return done, trees


def _reply_folders(store: LoopStore, root: Path) -> list[Path]:
    """Return where replies of judges are kept: below the root, and where the loop's configuration says."""
    settings = flat(store.config.get("run") or {})
    scorers = cast("list[dict[str, Any]]", settings.get("scorers") or [])
    named = [settings.get("evaluator.cache"), *(scorer.get("cache") for scorer in scorers)]
    return [root / "replies", *((store.workdir or root) / cache for cache in named if isinstance(cache, str))]


def _counts(found: Redaction) -> str:
    renamed = f", {plural(found.renamed, 'name')}" if found.renamed else ""
    return f"{plural(found.files, 'file')} ({plural(found.places, 'place')}{renamed})"


def _show_plan(store: LoopStore, root: Path, given: Mapping[str, Any], planned: Redaction, redactor: Redactor) -> int:
    from jumar.store.redact import redact_folder

    replies = sum(len(redact_folder(folder, redactor, change=False)) for folder in _reply_folders(store, root))
    tree = _work_tree(store, redactor)
    if given["as_json"]:
        document = {"loop_id": store.loop_id, "dry_run": True, **planned.to_json(), "replies": replies, "work_tree": tree}
        print_json(document)
    elif not given["quiet"]:
        print_text(f"it is in {_counts(planned)} and {replies:,} of the judge's replies; nothing was changed")
        _say_work_tree(tree)
    return 0


def _answer(
    store: LoopStore,
    root: Path,
    given: Mapping[str, Any],
    done: Redaction | None,
    what: str,
    *,
    redactor: Redactor | None = None,
    replies: int = 0,
    trees: int = 0,
) -> int:
    """Verify the loop, say what was done and what was not reached; exit code 14 when the loop is damaged."""
    from jumar.store.verify import verify

    report = verify(open_loop(root, str(store.paths.directory)))
    tree = [] if redactor is None else _work_tree(store, redactor)
    left = () if done is None else done.left
    if given["as_json"]:
        document = {"loop_id": store.loop_id, "dry_run": False, **({} if done is None else done.to_json())}
        print_json({**document, "replies": replies, "own_trees": trees, "work_tree": tree, "verified": report.to_json()["ok"]})
    else:
        if not given["quiet"]:
            print_text(f"{what}: {_counts(done)} changed, {replies} of the judge's replies" if done else f"completed: {what}")
            if trees:
                print_text(f"  and {plural(trees, 'file')} of the trees that jumar made for the loop")
        for place in left:
            print_text(f"  still there: {place}")
        _say_work_tree(tree)
        for problem in report.problems:
            print_text(f"  {problem.path}: {problem.what}; {problem.fix}")
        if not given["quiet"]:
            verdict = plural(len(report.problems), "problem") if report.problems else "ok"
            print_text(f"verified: {verdict} ({plural(report.iterations, 'iteration')}, {plural(report.files, 'file')})")
            print_text("not looked at: git history, backups, other loops, and what is packed or encrypted; revoke the secret")
    return StoreDamagedError.exit_code if report.problems else 0


def _work_tree(store: LoopStore, redactor: Redactor) -> list[str]:
    """Return the paths of the work directory that hold the secret, of those that the last snapshot had."""
    numbers = store.iteration_numbers()
    if store.workdir is None or not numbers:
        return []
    found: list[str] = []
    for path in store.manifest(numbers[-1]).entries:
        place = store.workdir / path
        if place.is_file() and not place.is_symlink() and redactor.finds(place.read_bytes()):
            found.append(path)
    return found


def _say_work_tree(paths: list[str]) -> None:
    if paths:
        shown = ", ".join(escape(path) for path in paths[:_SHOWN]) + (" …" if len(paths) > _SHOWN else "")
        print_text(f"  still in the work directory, which is yours to change: {shown}")
