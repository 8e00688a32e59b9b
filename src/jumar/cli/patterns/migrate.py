"""``jumar patterns migrate``: narrative patterns of format 1 become patterns that can fire."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jumar.cli.common import json_option, print_json, print_text, quiet_option, warned
from jumar.cli.patterns.common import coverage_lines, on_option, share, texts_of
from jumar.cli.topk.common import check_output
from jumar.core.text import escape, plural
from jumar.errors import NotFoundError, PatternLoadError, UsageError

if TYPE_CHECKING:
    from jumar.judging.patterns.models import PatternSet

_EPILOG = """\b
Examples:
  jumar patterns migrate learned_patterns.json -o patterns.json
  jumar patterns migrate learned_patterns.json -o patterns.json --on stories.jsonl --json

All patterns are provisional at first: they are reported and move no score. Patterns that were in the output file stay in
`jumar patterns log`; a file of format 1 or of a newer version is not overwritten, and what cannot be read at all is kept in
OUT.versions/unreadable."""


@click.command("migrate", epilog=_EPILOG)
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
    from jumar.judging.patterns.storage import content_of, readable
    from jumar.judging.patterns.versions import PatternStore

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
