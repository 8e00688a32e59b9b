"""``jumar patterns stats``: how many there are of what, and what fires on given items."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import click

from jumar.cli.common import json_option, print_json, print_text, quiet_option, warned
from jumar.cli.patterns.common import coverage_lines, file_argument, items_of, on_option
from jumar.core.text import escape, plural

_EPILOG = """\b
Examples:
  jumar patterns stats patterns.json
  jumar patterns stats patterns.json --on stories.jsonl --json"""


@click.command("stats", epilog=_EPILOG)
@file_argument
@on_option
@json_option
@quiet_option
def stats_command(file: Path, on: Path | None, *, as_json: bool, quiet: bool) -> int:
    """Count the patterns of a file; with --on, say what fires, what never does, and what says the same."""
    from jumar.judging.cheap.evidence import measure_items
    from jumar.judging.patterns.storage import load_pattern_set

    with warned():
        found = load_pattern_set(file)
    patterns = found.patterns
    document: dict[str, Any] = {
        "patterns": len(patterns),
        "types": dict(Counter(pattern.type for pattern in patterns)),
        "statuses": dict(Counter(pattern.status for pattern in patterns)),
        "sources": dict(Counter(pattern.source for pattern in patterns)),
        "phrases": sum(len(pattern.phrases) for pattern in patterns),
        "distinct_phrases": len({phrase for pattern in patterns for phrase in pattern.phrases}),
        "expressions": sum(pattern.regex is not None for pattern in patterns),
        "features": sum(pattern.feature is not None for pattern in patterns),
        "without_keywords": sum(not pattern.keywords for pattern in patterns),
    }
    lines = [] if quiet else [f"{escape(str(file))}: {plural(len(patterns), 'pattern')}"]
    for name in ("types", "statuses", "sources"):
        counts = ", ".join(f"{escape(key)} {count:,}" for key, count in document[name].items())
        lines.append(f"{name:<32} {counts or 'none'}")
    distinct = f"{document['phrases']:,} ({document['distinct_phrases']:,} distinct)"
    lines.append(f"{'phrases, expressions':<32} {distinct}, {document['expressions']:,}")
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
