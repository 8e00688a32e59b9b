"""What the columns of a table mean: which is the metric, which way is better, and what became of each experiment.

The names of columns and the words of a status vary from loop to loop; what is taken is said, and what cannot be told is asked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

from jumar.app.imports.tables import Row, Table, number_in
from jumar.core.given import better_words
from jumar.core.text import cut, escape, nearest
from jumar.errors import UsageError
from jumar.model.ordering import Direction

Fate = Literal["kept", "discarded", "crashed", "unknown", "untold"]
"""What a status says became of an experiment; ``untold`` where the table has none, or one that only says that it ran."""

_WORDS: Final[Mapping[Fate, str]] = {
    "kept": "keep kept keeps accept accepted adopt adopted advance baseline best better committed merged new_best improved "
    "improvement promoted retain retained true winner yes",
    "discarded": "discard discarded revert reverted reject rejected rollback rolled_back drop dropped worse not_kept "
    "no_improvement false no",
    "untold": "complete completed done finished ok pass passed ran succeeded success successful",
    "crashed": "crash crashed fail failed failure error timeout timed_out oom broken aborted diverged exception killed segfault",
}
_FATES: Final[Mapping[str, Fate]] = {word: fate for fate, words in _WORDS.items() for word in words.split()}
_STATUS_NAMES: Final = ("status", "state", "decision", "verdict", "outcome", "tag", "kept", "keep", "result", "action")
_ASIDE: Final = re.compile(
    r"(commit|timestamp|started|created)(_.*)?|hash|sha|session|iter|iteration|n|no|id|idx|index|step|run|experiment|exp|trial"
    r"|rounds?|epoch|seed|segment|time|date|at|delta|best|confidence|batch|agent|name|description|.*_(at|hash|id)",
    re.IGNORECASE,
)
_HIGHER: Final = re.compile(
    r"acc|auc|f1|score|reward|return|bleu|rouge|precision|recall|per_s|throughput|flops|ops|speedup|success|coverage|sharpe|r2"
    r"|loglik|spearman|pearson|corr|pass|fps|qps|iou|psnr|ssim|ndcg|mrr|win",
    re.IGNORECASE,
)
_LOWER: Final = re.compile(
    r"loss|bpb|rmse|mae|mse|err|latency|perplexity|ppl|fid|wer|cer|bits_per|cost|bytes|regret|_ms$|_us$|_ns$|_s$|µs|sec|time|size",
    re.IGNORECASE,
)
_RATE: Final = re.compile(r"per_s\w*", re.IGNORECASE)  # so many a second: the time in its name is no duration
_SURE: Final = 2 / 3  # of the experiments that say which way is better have to agree
_ENOUGH: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One row: its value where it has one, what became of it and in which words, and what else stands beside it."""

    line: int
    value: float | None
    fate: Fate
    status: str
    note: str
    commit: str
    at: str

    @property
    def ranks(self) -> bool:
        """Whether it can be the best: it has a value, and its status does not say that this is none."""
        return self.value is not None and self.fate in {"kept", "discarded", "untold"}


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The experiments of a loop in their order. ``found`` says what was taken for what, ``sha256`` of which bytes."""

    metric: str
    direction: Direction
    experiments: tuple[Experiment, ...]
    skipped: tuple[tuple[int, str], ...]
    found: tuple[str, ...]
    sha256: str = ""


def history_of(table: Table, *, metric: str | None = None, direction: Direction | None = None) -> History:
    """Return what a table says. Errors: :class:`UsageError` that asks for ``--metric`` or ``--direction``."""
    status = _status_column(table)
    column, name = _metric_column(table, metric, status)
    fates: list[Fate] = [_fate(row.cell(status)) if status is not None else "untold" for row in table.rows]
    read: list[Experiment] = []
    skipped = list(table.skipped)
    for row, fate in zip(table.rows, fates, strict=True):
        if not row.has(column):
            skipped.append((row.line, f"no {name}"))
        elif table.names and len(row.cells) > len(table.names) and row.cell(column + 1).isdecimal():
            skipped.append((row.line, "more cells than the header has names"))  # 1,4 may be a number with a decimal comma
        else:
            read.append(_experiment(table, row, column, status, fate))
    if not any(each.ranks for each in read):
        odd = next((each.status for each in read if each.fate == "unknown" and each.value is not None), None)
        said = "" if odd is None else f": nobody knows whether one whose status is '{escape(cut(odd, 40))}' counts"
        raise UsageError(
            f"{_shown(table)}: no row has {escape(cut(name, 60))} and can be ranked{said}; --metric names another column"
        )
    better, why = (direction, "as given") if direction else _direction(table, name, read)
    found = [table.note] if table.note else []
    found += [
        f"metric {escape(name)}{_others(table, column, status, name, metric)}",
        f"{better_words(better)} ({why})",
    ]
    found += [f"status in {escape(_called(table, status))}"] if status is not None else ["no status, so every row counts"]
    skipped.sort()
    return History(
        metric=name, direction=better, experiments=tuple(read), skipped=tuple(skipped), found=tuple(found), sha256=table.sha256
    )


def _experiment(table: Table, row: Row, column: int, status: int | None, fate: Fate) -> Experiment:
    value = number_in(row.cell(column))
    notes = [row.cell(place) for place in map(table.column, ("description", "change", "note")) if place is not None]
    aside = {column, status, *map(table.column, ("commit", "commit_hash", "timestamp"))}
    others = (f"{name}={row.cell(place)}" for place, name in enumerate(table.names) if place not in aside and row.cell(place))
    commit = next((row.cell(place) for place in map(table.column, ("commit", "commit_hash")) if place is not None), "")
    return Experiment(
        line=row.line,
        value=None if fate == "crashed" or (table.zero_is_none and value == 0) else value,
        fate=fate,
        status=row.cell(status),
        note=notes[0] if notes else ", ".join(others),
        commit=commit if re.fullmatch("[0-9a-f]{7,40}", commit) else "",
        at=row.cell(table.column("timestamp")),
    )


def _shown(table: Table) -> str:
    return escape(str(table.path))


# ------------------------------------------------------------------------------------------------------------- the status


def _fate(cell: str) -> Fate:
    word = re.match(r"\W*([a-z]+(?:[_ ][a-z]+)?)", cell.lower())
    if word is None:
        return "unknown"
    whole = word[1].replace(" ", "_")
    return _FATES.get(whole) or _FATES.get(re.split("[_ ]", word[1])[0] if " " in word[1] else whole, "unknown")


def _status_column(table: Table) -> int | None:
    """Return the column that says what became of each: one that is called so, else one that says it in nearly every row."""
    told = {place: _told(table.rows, place) for place in range(table.width)}
    named = [place for name in _STATUS_NAMES if (place := table.column(name)) is not None and told[place] > 0]
    if named:
        return named[0]
    likely = max(told, key=lambda place: told[place], default=None)
    return likely if likely is not None and told[likely] > len(table.rows) / 2 else None


def _told(rows: Sequence[Row], column: int) -> int:
    return sum(_fate(row.cell(column)) != "unknown" and len(row.cell(column)) <= 40 for row in rows)


# ------------------------------------------------------------------------------------------------------------- the metric


def _metric_column(table: Table, metric: str | None, status: int | None) -> tuple[int, str]:
    likely = [place for place in _measures(table) if place != status]
    if metric is not None:
        column = table.column(metric)
        if column is not None:
            return column, table.names[column]
        own = None if table.metric is None else table.column(table.metric)
        if own is not None:
            return own, metric
        if likely and not _is_readable(table):
            return likely[0], metric
        known = [table.names[place] for place in likely if place < len(table.names)]
        raise UsageError(
            f"{_shown(table)} has no column {escape(metric)}{nearest(metric, known)}; columns of numbers are: "
            f"{', '.join(map(escape, known)) or 'none'}"
        )
    if not likely:
        raise UsageError(f"{_shown(table)}: no column of numbers was found; --metric names the column")
    if not _is_readable(table):
        raise UsageError(
            f"{_shown(table)} has no header that says what its columns are; the first one of numbers is column {likely[0] + 1}. "
            "--metric NAME takes it under that name"
        )
    own = [place for name in (table.metric, "metric", "score") if name and (place := table.column(name)) in likely]
    column = (own or likely)[0] or 0
    return column, table.names[column]


def _is_readable(table: Table) -> bool:
    """Whether the header says anything: a known name among its own."""
    return any(_ASIDE.fullmatch(name) or name.casefold() in _STATUS_NAMES or name == table.metric for name in table.names)


def _measures(table: Table) -> list[int]:
    readable = _is_readable(table)
    return [place for place in range(table.width) if _is_measure(table, place, readable=readable)]


def _is_measure(table: Table, column: int, *, readable: bool) -> bool:
    """Whether a column holds numbers for most experiments, and is neither their count nor what stands aside by its name."""
    name = table.names[column] if column < len(table.names) else ""
    if _ASIDE.fullmatch(name):
        return False
    values = [number_in(row.cell(column)) for row in table.rows]
    known = [value for value in values if value is not None]
    counts = len(known) > 1 and all(after - before == 1 for before, after in pairwise(known))
    return 2 * len(known) > sum(bool(row.cell(column)) for row in table.rows) and not (counts and not readable)


def _called(table: Table, column: int) -> str:
    return table.names[column] if column < len(table.names) else f"column {column + 1}"


def _others(table: Table, column: int, status: int | None, name: str, metric: str | None) -> str:
    """Return which other columns could have been meant where nobody named one, and what the file calls one that was named."""
    if metric is not None:
        return "" if _called(table, column) == name else f" (in the file: {escape(_called(table, column))})"
    if table.metric is not None:
        return ""
    others = [table.names[place] for place in _measures(table) if place < len(table.names) and place not in {column, status}]
    shown = ", ".join(map(escape, [name, *others[:5]]))
    return f" (the first of {shown}; --metric names another)" if others else ""


# ---------------------------------------------------------------------------------------------------------- the direction


def _direction(table: Table, metric: str, experiments: Iterable[Experiment]) -> tuple[Direction, str]:
    if len(table.directions) == 1:
        return next(iter(table.directions)), "as the file says"
    votes, what = _votes(experiments), escape(cut(metric, 60))
    total, told = votes.total(), not table.directions
    ways: tuple[Direction, ...] = ("max", "min") if told else ()
    for way in ways:
        if total >= _ENOUGH and votes[way] >= _SURE * total:
            return way, f"{votes[way]} of {total:,} decisions to keep or discard agree"
    high, low = bool(_HIGHER.search(metric)), bool(_LOWER.search(_RATE.sub("", metric)))
    if told and high != low:
        return "max" if high else "min", f"by its name, {what}"
    tied = f"neither its name nor what was kept tells ({votes['max']} decisions for higher, {votes['min']} for lower)"
    why = "the file says both" if table.directions else tied
    raise UsageError(f"{_shown(table)}: is a higher or a lower {what} better? {why}. Give --direction max or --direction min")


def _votes(experiments: Iterable[Experiment]) -> Counter[Direction]:
    """Count what each decision says: what is kept is better than what was kept before, what is discarded is worse."""
    votes: Counter[Direction] = Counter()
    last: float | None = None
    for each in experiments:
        if each.value is None or each.fate not in {"kept", "discarded"}:
            continue
        if last is not None and each.value != last:
            rises = each.value > last
            votes["max" if rises == (each.fate == "kept") else "min"] += 1
        last = each.value if each.fate == "kept" else last
    return votes
