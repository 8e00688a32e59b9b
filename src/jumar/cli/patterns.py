"""``jumar patterns``: the commands that look after what the cheap judge knows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from jumar.cli.common import json_option, print_json, print_text, quiet_option, warned
from jumar.cli.terminal.output import Column, TableRow, print_table
from jumar.cli.topk import check_output
from jumar.core.text import escape, nearest, plural
from jumar.errors import ItemError, NotFoundError, PatternLoadError, UsageError
from jumar.judging.items.item import Item
from jumar.judging.patterns.coverage import Coverage
from jumar.judging.patterns.models import PatternSet, PatternV2

F = TypeVar("F", bound=Callable[..., Any])


def file_argument(function: F) -> F:
    """Add the ``FILE`` argument: a patterns file."""
    return click.argument("file", type=click.Path(path_type=Path), metavar="FILE")(function)


def on_option(function: F) -> F:
    """Add ``--on``: items to try the patterns on."""
    option = click.option(
        "--on",
        type=click.Path(path_type=Path),
        metavar="ITEMS",
        help="Say what fires on these items: a file as `jumar evaluate` takes, or a folder of .txt, an item a line.",
    )
    return option(function)


def texts_of(path: Path) -> Iterator[str]:
    """Yield the texts of items, in their order. Errors: :class:`jumar.errors.ItemError`, also when there is none."""
    return (item.text for item in items_of(path))


def items_of(path: Path) -> Iterator[Item]:
    """Yield items, in their order. Errors: :class:`jumar.errors.ItemError`, also when there is none."""
    from jumar.judging.items.records import read_items

    number = 0
    for number, item in enumerate(read_items(path), start=1):  # noqa: B007 - the last one is looked at
        yield item
    if not number:
        raise ItemError(f"{escape(str(path))}: no items; give a file with one item a line, or a folder of .txt files")


def share(part: int, whole: int) -> str:
    """Return ``222 of 1,166 (19.0 %)``."""
    percent = f" ({100 * part / whole:.1f} %)" if whole else ""
    return f"{part:,} of {whole:,}{percent}"


def coverage_lines(found: Coverage) -> list[str]:
    """Return what fires, for people."""
    most = sorted(((count, name) for name, count in found.fired.items() if count), reverse=True)[:3]
    wording = [duplicate for duplicate in found.duplicates if duplicate.by == "wording"]
    lines = [
        f"items on which a pattern fires   {share(found.fired_items, found.items)}",
        f"patterns that fire on an item    {share(found.fired_patterns, len(found.fired))}",
        f"most frequent                    {', '.join(f'{escape(name)} on {count:,}' for count, name in most) or 'none'}",
        f"near duplicates by wording       {plural(len(wording), 'pair')}",
    ]
    opposite = [one for one in wording if not one.same_type]
    if opposite:
        lines.append(
            f"  of them one good and one bad   {plural(len(opposite), 'pair')}: {opposite[0].first} and {opposite[0].second}"
        )
    return lines


_STATUSES = ("active", "provisional", "rejected", "pruned")


_LIST_EPILOG = """\b
Examples:
  jumar patterns list patterns.json --type bad --status active"""


@click.command("list", epilog=_LIST_EPILOG)
@file_argument
@click.option("--type", "kind", type=click.Choice(["good", "bad"]), help="Only these.")
@click.option("--status", type=click.Choice(_STATUSES), help="Only these.")
@json_option
@quiet_option
def list_command(file: Path, kind: str | None, status: str | None, *, as_json: bool, quiet: bool) -> int:
    """List the patterns of a file."""
    from jumar.judging.patterns.storage import load_patterns_safely

    with warned():
        found = load_patterns_safely(file)
    chosen = [one for one in found if kind in {None, one.type} and status in {None, one.status}]
    if as_json:
        print_json({"patterns": [one.model_dump(mode="json") for one in chosen]})
        return 0
    columns = (Column(name="id"), Column(name="type"), Column(name="status"), Column(name="weight", right=True))
    print_table(
        (*columns, Column(name="fired", right=True), Column(name="description", fold=True)),
        [
            TableRow(cells=(one.id, one.type, one.status, f"{one.weight:g}", f"{one.times_fired:,}", one.description))
            for one in chosen
        ],
    )
    if not quiet:
        print_text(f"{len(chosen):,} of {plural(len(found), 'pattern')}")
    return 0


_SHOW_EPILOG = """\b
Examples:
  jumar patterns show patterns.json p_017"""


@click.command("show", epilog=_SHOW_EPILOG)
@file_argument
@click.argument("pattern_id", metavar="ID")
@json_option
@quiet_option
def show_command(file: Path, pattern_id: str, *, as_json: bool, quiet: bool) -> int:
    """Show everything about one pattern."""
    from jumar.judging.patterns.storage import load_patterns_safely

    with warned():
        found = {one.id: one for one in load_patterns_safely(file)}
    if pattern_id not in found:
        close = nearest(pattern_id, list(found))
        raise NotFoundError(f"{escape(str(file))} has no pattern '{escape(pattern_id)}'{close}; `jumar patterns list` lists them")
    document = found[pattern_id].model_dump(mode="json")
    if as_json:
        print_json(document)
        return 0
    width = max(map(len, document))
    for name, value in document.items():
        if quiet and value in (None, "", []):
            continue
        shown = ", ".join(map(str, cast("list[Any]", value))) if isinstance(value, list) else value
        print_text(f"{escape(name):<{width}}  {'—' if shown is None or shown == '' else escape(str(shown))}")
    return 0


_STATS_EPILOG = """\b
Examples:
  jumar patterns stats patterns.json
  jumar patterns stats patterns.json --on stories.jsonl --json"""


@click.command("stats", epilog=_STATS_EPILOG)
@file_argument
@on_option
@json_option
@quiet_option
def stats_command(file: Path, on: Path | None, *, as_json: bool, quiet: bool) -> int:
    """Count the patterns of a file; with --on, say what fires, what never does, and what says the same."""
    from jumar.judging.cheap.evaluator import measure_items
    from jumar.judging.patterns.storage import load_pattern_set

    with warned():
        found = load_pattern_set(file)
    patterns = found.patterns
    document: dict[str, Any] = {
        "patterns": len(patterns),
        "types": dict(Counter(pattern.type for pattern in patterns)),
        "statuses": dict(Counter(pattern.status for pattern in patterns)),
        "sources": dict(Counter(pattern.source for pattern in patterns)),
        **_looked_for(patterns),
        "without_keywords": sum(not pattern.keywords for pattern in patterns),
    }
    lines = [] if quiet else [f"{escape(str(file))}: {plural(len(patterns), 'pattern')}"]
    for name in ("types", "statuses", "sources"):
        counts = ", ".join(f"{escape(key)} {count:,}" for key, count in document[name].items())
        lines.append(f"{name:<32} {counts or 'none'}")
    lines.append(f"{'phrases':<32} {document['phrases']:,} ({document['distinct_phrases']:,} distinct)")
    counts = ", ".join(f"{document[name]:,}" for name in ("expressions", "features", "indicators"))
    lines.append(f"{'expressions, features, built in':<32} {counts}")
    if mute := document["cannot_fire"]:
        lines.append(f"{'nothing to fire on':<32} {plural(len(mute), 'pattern')}: {escape(', '.join(mute[:3]))}")
    if on is not None:
        measured = measure_items(found, items_of(on))
        document["coverage"] = measured.as_json()
        document["fired"] = measured.fired
        document["never_fired"] = measured.never
        document["near_duplicates"] = [
            {
                "first": duplicate.first,
                "second": duplicate.second,
                "by": duplicate.by,
                "similarity": duplicate.similarity,
                "same_type": duplicate.same_type,
            }
            for duplicate in measured.duplicates
        ]
        lines += coverage_lines(measured)
    if as_json:
        print_json(document)
    else:
        print_text("\n".join(lines))
    return 0


def _looked_for(patterns: Sequence[PatternV2]) -> dict[str, Any]:
    """Count what the patterns fire on that are looked for: rejected and pruned ones are not."""
    from jumar.judging.cheap.evidence import cannot_fire, detector_for
    from jumar.judging.patterns.matcher import MATCHED, literals

    live = [pattern for pattern in patterns if pattern.status in MATCHED]
    others = [pattern for pattern in live if detector_for(pattern.id, pattern.description) is None]
    phrases = [phrase for pattern in others for phrase in literals(pattern)]
    return {
        "phrases": len(phrases),
        "distinct_phrases": len(set(phrases)),
        "expressions": sum(pattern.regex is not None for pattern in others),
        "features": sum(pattern.feature is not None for pattern in others),
        "indicators": len(live) - len(others),
        "cannot_fire": [pattern.id for pattern in live if cannot_fire(pattern)],
    }


_CHECK_EPILOG = """\b
Examples:
  jumar patterns check patterns.json"""


@click.command("check", epilog=_CHECK_EPILOG)
@file_argument
@json_option
@quiet_option
def check_command(file: Path, *, as_json: bool, quiet: bool) -> int:
    """Say whether a patterns file is valid: exit code 0, or one message that names what is wrong.

    It is the file itself that is checked, never its backup. Names that are nearly known ones, and expressions that
    fire on everything, are warned of.
    """
    from jumar.judging.cheap.features import FeaturePatterns
    from jumar.judging.patterns.matcher import PatternMatcher
    from jumar.judging.patterns.reading import near_misses
    from jumar.judging.patterns.storage import read_pattern_set

    found = read_pattern_set(file)
    try:
        matcher = PatternMatcher(found)
        FeaturePatterns(found.patterns)
    except PatternLoadError as error:
        raise PatternLoadError(f"{escape(str(file))}: {error}") from error
    everything = [name for name in matcher.fired_ids("") if name in matcher.fired_ids("\0\n\0 \0")]
    warnings = near_misses(found) + [f"the regex of pattern {escape(name)} fires on everything" for name in everything]
    for warning in () if as_json else warnings:
        print_text(f"jumar: warning: {escape(str(file))}: {warning}", err=True)
    if as_json:
        print_json({"valid": True, "version": found.version, "patterns": len(found.patterns), "warnings": warnings})
    elif not quiet:
        print_text(f"{escape(str(file))} is valid: {plural(len(found.patterns), 'pattern')}, format {found.version}")
    return 0


_MIGRATE_EPILOG = """\b
Examples:
  jumar patterns migrate learned_patterns.json -o patterns.json
  jumar patterns migrate learned_patterns.json -o patterns.json --on stories.jsonl --json

All patterns are provisional at first: they are reported and move no score. Patterns that were in the output file stay in
`jumar patterns log`; a file of format 1 or of a newer version is not overwritten, and what cannot be read at all is kept in
OUT.versions/unreadable."""


@click.command("migrate", epilog=_MIGRATE_EPILOG)
@click.argument("source", type=click.Path(path_type=Path), metavar="IN")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), required=True, metavar="OUT", help="The new file."
)
@on_option
@json_option
@quiet_option
def migrate_command(source: Path, output: Path, on: Path | None, *, as_json: bool, quiet: bool) -> int:
    """Turn narrative patterns of format 1 into patterns that can fire; nothing of the file is lost."""
    check_output(output)
    from jumar.judging.patterns.migrate import migrate_existing_patterns
    from jumar.judging.patterns.models import PatternSet
    from jumar.judging.patterns.reading import parse_json
    from jumar.judging.patterns.storage import PatternStore, content_of, readable

    where = escape(str(source))
    if output.exists() and source.exists() and output.samefile(source):
        raise UsageError(f"-o {where}: that is the file to be migrated; give the new one another name")
    held = content_of(output)
    if held is not None:
        readable(held, output)
    legacy = parse_json(_text(source, where), where)
    migrated = PatternSet.model_validate(migrate_existing_patterns(legacy, where=where))
    document: dict[str, Any] = {
        "migrated": len(migrated.patterns),
        "good": sum(pattern.type == "good" for pattern in migrated.patterns),
        "bad": sum(pattern.type == "bad" for pattern in migrated.patterns),
        "provisional": sum(pattern.status == "provisional" for pattern in migrated.patterns),
        "without_keywords": sum(not any(map(str.strip, pattern.keywords)) for pattern in migrated.patterns),
    }
    lines = _try(migrated, on, document)
    with warned():
        document["version"] = PatternStore(output).save(migrated, f"migrated from {source.name}")
    document["output"] = str(output.absolute())
    if as_json:
        print_json(document)
    elif not quiet:
        counts = f"{document['good']} good, {document['bad']} bad; {document['without_keywords']} without keywords"
        which = "all" if document["provisional"] == document["migrated"] else f"{document['provisional']:,} of them"
        print_text(f"wrote {escape(str(output))}: {plural(document['migrated'], 'pattern')} ({counts}), {which} provisional")
        if lines:
            print_text("\n".join(lines))
    return 0


def _text(source: Path, where: str) -> str:
    try:
        return source.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no file {where}") from error
    except UnicodeDecodeError as error:
        raise PatternLoadError(f"{where}: not JSON: not UTF-8, byte {error.start + 1}") from error
    except OSError as error:
        raise PatternLoadError(f"{where}: {error.strerror}") from error


def _try(migrated: PatternSet, on: Path | None, document: dict[str, Any]) -> list[str]:
    """Add what fires to ``document``, and return it for people; without items the coverage is null."""
    if on is None:
        document["coverage"] = None
        return []
    from jumar.judging.patterns.coverage import NaiveCount, measure_coverage

    naive = NaiveCount(migrated)
    found = measure_coverage(migrated, naive.seen(texts_of(on)))
    document["coverage"] = found.as_json()
    document["naive_coverage"] = naive.as_json()
    document["never_fired"] = found.never
    document["near_duplicates"] = [
        [duplicate.first, duplicate.second] for duplicate in found.duplicates if duplicate.by == "wording"
    ]
    return [*coverage_lines(found), f"with all keywords at once        {share(naive.fired_items, naive.items)}"]


_LOG_EPILOG = """\b
Examples:
  jumar patterns log patterns.json"""


@click.command("log", epilog=_LOG_EPILOG)
@file_argument
@json_option
@quiet_option
def log_command(file: Path, *, as_json: bool, quiet: bool) -> int:
    """List every recorded save of a patterns file, the last one first."""
    from jumar.judging.patterns.storage import PatternStore, load_pattern_set

    store = PatternStore(file)
    found = store.log()[::-1]
    if not found:
        load_pattern_set(file)  # a file that is not there has no log for another reason
    if as_json:
        print_json({"versions": [asdict(one) for one in found]})
    elif not found:
        if quiet:
            return 0
        print_text(f"{escape(str(file))} was never saved by jumar: there is no version of it yet")
    else:
        columns = (Column(name="version"), Column(name="saved"), Column(name="patterns", right=True), Column(name="", fold=True))
        print_table(columns, [TableRow(cells=(one.short, one.at, f"{one.patterns:,}", one.message)) for one in found])
    return 0


_DIFF_EPILOG = """\b
Examples:
  jumar patterns diff patterns.json 1275882d
  jumar patterns diff patterns.json 1275882d 90ab"""


@click.command("diff", epilog=_DIFF_EPILOG)
@file_argument
@click.argument("before", metavar="BEFORE")
@click.argument("after", required=False, metavar="[AFTER]")
@json_option
@quiet_option
def diff_command(file: Path, before: str, after: str | None, *, as_json: bool, quiet: bool) -> int:
    """Say what differs from one version to another, by default to the file as it is.

    Versions are those of `jumar patterns log`.
    """
    from jumar.judging.patterns.storage import PatternStore

    with warned():
        found = PatternStore(file).diff(before, after)
    if as_json:
        changed = [{"id": one.id, "fields": {name: list(pair) for name, pair in one.fields.items()}} for one in found.changed]
        added, removed = ([one.model_dump(mode="json") for one in some] for some in (found.added, found.removed))
        print_json({"added": added, "removed": removed, "changed": changed, "sections": list(found.sections)})
        return 0
    lines = [f"- {escape(one.id)}  {escape(one.description)}" for one in found.removed]
    lines += [f"+ {escape(one.id)}  {escape(one.description)}" for one in found.added]
    for one in found.changed:
        lines += [f"~ {escape(one.id)}  {escape(name)}: {_shown(old)} → {_shown(new)}" for name, (old, new) in one.fields.items()]
    lines += [f"~ section {escape(name)}" for name in found.sections]
    if lines or not quiet:
        print_text("\n".join(lines) or "no difference")
    return 0


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return escape(text if len(text) <= 60 else text[:59] + "…")


_ROLLBACK_EPILOG = """\b
Examples:
  jumar patterns rollback patterns.json 1275882d"""


@click.command("rollback", epilog=_ROLLBACK_EPILOG)
@file_argument
@click.argument("version", metavar="HASH")
@json_option
@quiet_option
def rollback_command(file: Path, version: str, *, as_json: bool, quiet: bool) -> int:
    """Save a recorded version again: the beginning of its hash is enough, and what the file holds now stays in the log.

    --json has the hash of what was written, which is another one when the version was found in the file in another shape.
    """
    from jumar.judging.patterns.storage import PatternStore

    store = PatternStore(file)
    whole = store.rollback(version)
    found = store.log()[-1]
    if as_json:
        print_json({"version": whole, "patterns": found.patterns, "number": found.number})
    elif not quiet:
        again = f"version {found.short} again"
        if not whole.startswith(version.lower()):
            again = f"version {escape(version)} again, in the shape of today: {found.short}"
        print_text(f"{escape(str(file))} is {again}, with {plural(found.patterns, 'pattern')}; it is save {found.number}")
    return 0
