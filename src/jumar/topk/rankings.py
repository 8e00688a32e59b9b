"""Rankings from files, and selections from logs. What comes out is checked and names its line when it is wrong.

Rankings are JSON Lines, TREC run and qrels, or tables.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, cast

from jumar.core.text import escape, nearest, once, plural
from jumar.errors import ConfigError, JumarError, NotFoundError, ScoreError
from jumar.topk.contract import as_float, shown
from jumar.topk.result import Scale
from jumar.topk.tuning import LabelledQuery, graded, labelled
from jumar.topk.tuning.drift import LoggedSelection

FORMATS = ("jsonl", "trec", "csv")

_COLUMNS = ("query_id", "score", "relevant", "relevant_total")
_KEYS = ("query_id", "scores", "relevant", "relevant_total", "missed", "items")


@dataclass(frozen=True, slots=True, eq=False)
class RankedList:
    """One query's scores as they were given; ``items`` are None unless the line had some."""

    query_id: str | int
    scores: list[Any]
    items: list[Any] | None
    where: str


def read_rankings(path: Path) -> list[RankedList]:
    """Return the rankings of a JSON Lines file, ``-`` for stdin: ``{"query_id", "scores": [...]}``, optional ``items``.

    Blank lines are skipped. Errors: :class:`jumar.errors.NotFoundError`; :class:`jumar.errors.ScoreError` that names the line.
    """
    return [_ranking(row, where) for row, where in _rows(path)]


def _ranking(row: Mapping[str, Any], where: str) -> RankedList:
    _need(row, where, "query_id", "scores")
    query_id = row["query_id"]
    if isinstance(query_id, bool) or not isinstance(query_id, str | int):
        raise ScoreError(f"{where}: 'query_id' is {shown(query_id)}; give a text or a whole number")
    if not isinstance(row["scores"], list):
        raise ScoreError(f"{where}: 'scores' is {shown(row.get('scores'))}; give a list of numbers, best first")
    scores: list[Any] = row["scores"]  # pyright: ignore[reportUnknownVariableType]
    for position, score in enumerate(scores):
        if isinstance(score, bool) or not isinstance(score, int | float):
            raise ScoreError(f"{where}: the score at position {position} is {shown(score)}; give a number")
    items: list[Any] | None = row.get("items")
    if items is not None and (not isinstance(items, list) or len(items) != len(scores)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ScoreError(f"{where}: 'items' is {shown(items)}; give a list with one entry for each of the {len(scores)} scores")
    if items is not None:
        try:
            json.dumps(items, allow_nan=False)
        except (ValueError, RecursionError) as error:
            raise ScoreError(
                f"{where}: 'items' holds NaN, an infinity or too deep a nest, which JSON cannot say again"
            ) from error
    return RankedList(query_id, scores, items, where)


def _need(row: Mapping[str, Any], where: str, *keys: str) -> None:
    """Refuse a line without one of ``keys``, with those that it has. Errors: :class:`jumar.errors.ScoreError`."""
    for key in keys:
        if key not in row:
            others = [name for name in row if name not in _KEYS]
            close = nearest(key, others) or nearest(key.removesuffix("s").removeprefix("query_"), others)
            has = f"the line has {', '.join(map(escape, row))}" if row else "the line has no keys"
            raise ScoreError(f"{where}: '{key}' is missing; {has}{close}")


def read_runs(
    path: Path,
    *,
    qrels: Path | None = None,
    form: str | None = None,
    grade: int = 1,
    scale: Scale = "similarity",
    notes: list[str] | None = None,
) -> tuple[LabelledQuery, ...]:
    """Return the labelled queries of a file.

    ``form`` is ``jsonl`` (``{"query_id", "scores", "relevant", "relevant_total"}`` a line), ``trec`` (a run, with the judgements
    in ``qrels``) or ``csv`` (a row an item, columns ``query_id, score, relevant`` and optionally ``relevant_total``; tabs in
    a ``.tsv``); by default told from ``qrels`` and the file's suffix. Relevant is what has at least ``grade``; lower grades count
    as 0. ``notes`` gets a sentence on what was left out. Errors: :class:`jumar.errors.NotFoundError`;
    :class:`jumar.errors.ScoreError` for what cannot be read, a file without queries, a query that is there twice, and judgements
    of which none fits the run; :class:`jumar.errors.ConfigError`.
    """
    chosen = form or _form(path, qrels)
    if (chosen == "trec") != (qrels is not None):
        raise ConfigError("--qrels holds the judgements of a TREC run: give both, or neither")
    if chosen == "trec" and qrels is not None:
        found = _trec(path, qrels, grade, scale, [] if notes is None else notes)
    else:
        rows = _table(path, scale) if chosen == "csv" else _rows(path)
        found = _unique((_labelled(row, where, number, grade, scale), where) for number, (row, where) in enumerate(rows))
    if not found:
        raise ScoreError(f"{_named(path)}: there are no queries in it: give at least one labelled query")
    return found


def _unique(queries: Iterable[tuple[LabelledQuery, str]]) -> tuple[LabelledQuery, ...]:
    """Return the queries. Errors: :class:`jumar.errors.ScoreError` for one that is there twice: it would count twice."""
    found: dict[str, tuple[LabelledQuery, str]] = {}
    for query, where in queries:
        if query.query_id in found:
            before = found[query.query_id][1].rpartition(", ")[2]
            raise ScoreError(f"{where}: query {escape(query.query_id)} is there already, on {before}; keep one of the two")
        found[query.query_id] = (query, where)
    return tuple(query for query, _ in found.values())


def _labelled(row: Mapping[str, Any], where: str, number: int, grade: int, scale: Scale) -> LabelledQuery:
    _need(row, where, "scores", "relevant")
    query_id = row.get("query_id", number)
    if isinstance(query_id, bool) or not isinstance(query_id, str | int):
        raise ScoreError(f"{where}: 'query_id' is {shown(query_id)}; give a text or a whole number")
    if "relevant_total" not in row and (close := nearest("relevant_total", [key for key in row if key not in _KEYS])):
        raise ScoreError(f"{where}: no 'relevant_total'{close}; it is how many relevant items there are, retrieved or not")
    if grade > 1:
        row = {**row, **{name: _from(row[name], grade) for name in ("relevant", "missed") if name in row}}
        if isinstance(row.get("missed"), list):  # they say what is left of the total
            row = {**row, "missed": [one for one in row["missed"] if one], "relevant_total": None}
    try:
        return labelled([{**row, "query_id": query_id}], scale=scale)[0]
    except JumarError as error:
        raise ScoreError(f"{where}: {error}") from error


def _from(grades: Any, least: int) -> Any:
    """Return ``grades`` with 0 for those below ``least``; what is no list of numbers is left to be refused."""
    if not isinstance(grades, list):
        return grades
    values: list[Any] = grades  # pyright: ignore[reportUnknownVariableType]
    return [0 if isinstance(value, int | float) and value < least else value for value in values]


def _form(path: Path, qrels: Path | None) -> str:
    if qrels is not None:
        return "trec"
    return "csv" if path.suffix.lower() in {".csv", ".tsv"} else "jsonl"


# ------------------------------------------------------------------------------------------------------------ lines


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the lines of a file (``-``: stdin) that are not blank, each with the words that name it.

    Errors: :class:`jumar.errors.NotFoundError`, :class:`jumar.errors.ScoreError` for what is not UTF-8.
    """
    shown_name = _named(path)
    try:
        data = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no file {shown_name}") from error
    except IsADirectoryError as error:
        raise NotFoundError(f"{shown_name} is a directory; name a file") from error
    except OSError as error:
        raise NotFoundError(f"{shown_name} cannot be read ({error.strerror}); name a file that can be") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ScoreError(f"{shown_name}, line {line}: not UTF-8") from error
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield line, f"{shown_name}, line {number}"


def _named(path: Path) -> str:
    return "stdin" if str(path) == "-" else escape(str(path))


def _rows(path: Path) -> Iterator[tuple[Mapping[str, Any], str]]:
    for line, where in _lines(path):
        try:
            row = json.loads(line, object_pairs_hook=once)
        except (ValueError, RecursionError) as error:
            raise ScoreError(f"{where}: not JSON ({error}); one JSON object a line{_other_form(line)}") from error
        if not isinstance(row, dict):
            raise ScoreError(f"{where}: {shown(row)} is no object; one JSON object a line")
        yield row, where


def _other_form(line: str) -> str:
    """Return what a line that is no JSON looks like, and the way to read that; empty when it looks like nothing known."""
    fields = line.split()
    if len(fields) == 6 and fields[3].isdigit():
        return ". It looks like a TREC run: `jumar topk compare` and `tune` take one together with its judgements, --qrels FILE"
    if not line.lstrip().startswith(("{", "[")) and ("," in line or "\t" in line):
        return ". It looks like a table: `jumar topk compare` and `tune` take one from a file that ends in .csv or .tsv"
    return ""


# ----------------------------------------------------------------------------------------------------------- tables


def _table(path: Path, scale: Scale) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the queries of a table, in the order in which they first occur; rows of one query need not be together."""
    found = list(_lines(path))
    tabs = path.suffix.lower() == ".tsv"
    reader = csv.reader((line for line, _ in found), delimiter="\t" if tabs else ",", strict=True)
    header: list[str] | None = None
    queries: dict[str, tuple[dict[str, Any], str]] = {}
    begin = 0
    try:
        for cells in reader:
            where, begin = found[begin][1], reader.line_num  # a quoted cell may take several lines
            if header is None:
                header = _header([cell.strip().lower() for cell in cells], where, tabs=tabs)
                continue
            if len(cells) != len(header):
                raise ScoreError(f"{where}: {len(cells)} cells below {len(header)} columns")
            _add(queries, dict(zip(header, cells, strict=True)), where, scale)
    except csv.Error as error:
        raise ScoreError(f"{found[begin][1]}: not a table ({error}); quotes come in pairs, around whole cells") from error
    return iter(queries.values())


def _header(names: list[str], where: str, *, tabs: bool) -> list[str]:
    for name in _COLUMNS[:3]:
        if name not in names:
            separator = "tabs, as in any .tsv" if tabs else "commas, as in any .csv"
            raise ScoreError(
                f"{where}: no column '{name}'{nearest(name, names)}; separated by {separator}, its columns are "
                f"{', '.join(escape(name) for name in names)}; needed are {', '.join(_COLUMNS[:3])}"
            )
    return names


def _add(queries: dict[str, tuple[dict[str, Any], str]], row: Mapping[str, str], where: str, scale: Scale) -> None:
    query, _ = queries.setdefault(row["query_id"], ({"query_id": row["query_id"], "scores": [], "relevant": []}, where))
    score = _number(row["score"], "score", where)
    before = query["scores"][-1] if query["scores"] else score
    if before < score if scale != "distance" else before > score:
        raise ScoreError(
            f"{where}: the scores of query {escape(row['query_id'])} are not sorted, best first: {score!r} is better than "
            f"{before!r}, the one before it; sort the rows{_other_end(len(query['scores']), scale)}"
        )
    query["scores"].append(score)
    query["relevant"].append(_number(row["relevant"], "relevant", where))
    if row.get("relevant_total", "").strip():
        total = _number(row["relevant_total"], "relevant_total", where)
        if total != query.setdefault("relevant_total", int(total)):
            given = shown(row["relevant_total"])
            raise ScoreError(f"{where}: 'relevant_total' is {given}; give a whole number, the same in all rows of a query")


def _other_end(place: int, scale: Scale) -> str:
    """Return what to say of scores out of order when the second of a query is: perhaps all are in the other order."""
    if place > 1:
        return ""
    return (
        "; if larger is better, leave out scale='distance'"
        if scale == "distance"
        else "; are these distances? pass scale='distance'"
    )


def _number(text: str, field: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError as error:
        raise ScoreError(f"{where}: '{field}' is {shown(text)}; give a number") from error
    if number - number != 0.0:
        raise ScoreError(f"{where}: '{field}' is {shown(text)}; give a finite number")
    return number


# ------------------------------------------------------------------------------------------------------------- TREC


def _trec(run: Path, qrels: Path, grade: int, scale: Scale, notes: list[str]) -> tuple[LabelledQuery, ...]:
    """Return a TREC run (``query Q0 document rank score tag``) with its judgements (``query 0 document grade``).

    As in trec_eval the order is that of the scores, those of the same score by document, last one first; the column of ranks does
    not count. Queries without any judgement are left out; those judged without anything relevant are out of scope; those judged
    and not in the run have an empty ranking. ``notes`` says how many. Errors: :class:`jumar.errors.ScoreError`, also when no
    query of the run is judged, or none of its documents.
    """
    judged: dict[str, dict[str, float]] = {}
    for (query_id, _, document, value), where in _fields(qrels, 4):
        judgements = judged.setdefault(query_id, {})
        given = _number(value, "grade", where)
        if judgements.setdefault(document, given) != given:
            raise ScoreError(f"{where}: query {escape(query_id)} has document {escape(document)} with another grade before")
    found: dict[str, list[tuple[float, str]]] = {query_id: [] for query_id in judged}
    seen: set[tuple[str, str]] = set()
    for (query_id, _, document, _, value, _), where in _fields(run, 6):
        if (query_id, document) in seen:
            raise ScoreError(f"{where}: query {escape(query_id)} has document {escape(document)} twice")
        seen.add((query_id, document))
        score = _number(value, "score", where)
        if query_id in found:
            found[query_id].append((score, document))
    _check_fit(judged, seen, (run, qrels), notes)
    for judgements in judged.values():
        for document in [document for document, given in judgements.items() if given < grade]:
            del judgements[document]
    return labelled(_judged(judged, found, ascending=scale == "distance"), scale=scale)


def _check_fit(
    judged: Mapping[str, Mapping[str, float]], seen: set[tuple[str, str]], names: tuple[Path, Path], notes: list[str]
) -> None:
    """Refuse judgements of which none is about the run, and take note of queries that only one of both files has."""
    run, qrels = map(_named, names)
    queries = {query_id for query_id, _ in seen}
    if not seen:
        return
    if not judged:
        raise ScoreError(f"{qrels}: there is no judgement in it; a line is `query 0 document grade`")
    if queries.isdisjoint(judged):
        here, there = shown(min(queries)), shown(min(judged))
        raise ScoreError(
            f"{qrels} judges no query of {run}: queries are called {here} in the run and {there} in the judgements; name files "
            "that belong together"
        )
    if not any(document in judged.get(query_id, {}) for query_id, document in seen):
        here = shown(min(document for query_id, document in seen if query_id in judged))
        there = shown(min(document for item in judged.values() for document in item))
        raise ScoreError(
            f"{qrels} judges no document that {run} has for the same query: documents are called {here} in the run and {there} "
            "in the judgements; name files that belong together"
        )
    alone, absent = len(queries - judged.keys()), len(judged.keys() - queries)
    if alone:
        notes.append(f"{plural(alone, 'query').replace('querys', 'queries')} of {run} without any judgement: left out")
    if absent:
        what = plural(absent, "judged query").replace("querys", "queries")
        notes.append(f"{what} not in {run}: counted as if nothing had been retrieved")


def _judged(
    judged: Mapping[str, Mapping[str, float]], found: Mapping[str, list[tuple[float, str]]], *, ascending: bool
) -> Iterable[LabelledQuery]:
    for query_id, ranking in found.items():
        ranking.sort(key=lambda one: one[1], reverse=True)
        ranking.sort(key=lambda one: one[0], reverse=not ascending)
        relevant = judged[query_id]
        retrieved = {document for _, document in ranking}
        grades = tuple(relevant.get(document, 0.0) for _, document in ranking)
        missed = tuple(given for document, given in relevant.items() if document not in retrieved)
        labels = tuple(grade > 0 for grade in grades)
        yield LabelledQuery(query_id, tuple(score for score, _ in ranking), labels, len(relevant), *graded(grades, missed))


def _fields(path: Path, count: int) -> Iterator[tuple[list[str], str]]:
    for line, where in _lines(path):
        fields = line.split()
        if len(fields) != count:
            raise ScoreError(f"{where}: {len(fields)} fields; a TREC {'run' if count == 6 else 'qrels file'} has {count} a line")
        yield fields, where


# ------------------------------------------------------------------------------------------------------------- logs


class SelectionLog(NamedTuple):
    """The selections of a log in its order, and how many lines held none."""

    readings: tuple[LoggedSelection, ...]
    skipped: int


def read_log(path: Path) -> SelectionLog:
    """Return the selections in a log, one JSON object a line, ``-`` for stdin; lines of others are skipped and counted.

    Errors: :class:`jumar.errors.NotFoundError`; :class:`jumar.errors.ScoreError` when there is no selection in it.
    """
    found: list[LoggedSelection] = []
    skipped = 0
    for line, _ in _lines(path):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        readings = list(_readings(row)) if isinstance(row, dict) else []  # pyright: ignore[reportUnknownArgumentType]
        found += readings
        skipped += not readings
    if not found:
        raise ScoreError(
            f"{escape(str(path))}: no selection in it; it takes lines with 'retrieval', as jumar.topk.JsonFormatter "
            "writes them, or the output of `jumar topk select --json`"
        )
    return SelectionLog(tuple(found), skipped)


def _readings(row: Mapping[str, Any]) -> Iterator[LoggedSelection]:
    if isinstance(row.get("retrieval"), dict):
        kinds: dict[str, Any] = row["retrieval"]
        where = _time(row.get("time")) or str(row.get("logical_turn_id") or "")
        for kind, one in kinds.items():
            if isinstance(one, dict):
                selection = cast("dict[str, Any]", one)
                yield from _reading(f"{kind} · {selection.get('strategy')}", selection, "output_count", where)
    elif "method" in row:
        yield from _reading(str(row["method"]), row, "kept", f"query {row.get('query_id')}")


def _reading(stream: str, row: Mapping[str, Any], counted: str, where: str) -> Iterator[LoggedSelection]:
    cutoff, kept = as_float(row.get("cutoff_score")), row.get(counted)
    if cutoff - cutoff == 0.0 and isinstance(kept, int) and not isinstance(kept, bool) and kept >= 0:
        yield LoggedSelection(stream, cutoff, kept, where)


def _time(value: Any) -> str:
    """Return seconds since 1970 as a time for people, and a text as it is."""
    if isinstance(value, str):
        return value
    seconds = as_float(value)
    if not 0 <= seconds < 253_402_300_800:  # the year 10000
        return ""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
