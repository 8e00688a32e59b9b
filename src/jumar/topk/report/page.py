"""The page of a file of rankings: one query's scores with every strategy's cut, and the comparison where items are labelled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from jumar.core.rendering.html import Layout, render_page
from jumar.core.rendering.plot import NARROW, WIDE, Frame, Line, Mark, Panel, Plot, Tick, linear, range_of, round_step
from jumar.core.text import plural
from jumar.topk.report.cuts import Cut, comparison_cells, comparison_heads, cuts_of, figure, interval
from jumar.topk.result import Scale

if TYPE_CHECKING:
    from jumar.topk.tuning.metrics import Comparison

_PACKAGE: Final = "jumar.topk.report"
_TOP, _SCORES, _ROW = 36, 150, 18
_NAMES_WIDE, _NAMES_NARROW = 150, 128
_LEAST_RANKS: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryScores:
    """One query: its scores, best first, and for each whether it is relevant; None where nothing is labelled."""

    query_id: str
    scores: tuple[float, ...]
    relevant: tuple[bool, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionAsked:
    """What a page of selections is asked for."""

    file: str
    max_k: int = 20
    min_k: int = 1
    scale: Scale = "similarity"


def render_html(
    asked: SelectionAsked, queries: Sequence[QueryScores], place: int, comparison: Comparison | None, layout: Layout
) -> str:
    """Return the page of the query at ``place``, which links to the ones beside it."""
    query = queries[place]
    cuts = cuts_of(query.scores, max_k=asked.max_k, min_k=asked.min_k, scale=asked.scale)
    counts = [cut.kept for cut in cuts if cut.kept is not None]
    shown = max(_LEAST_RANKS, *counts, asked.max_k) if counts else _LEAST_RANKS
    page: dict[str, Any] = {
        "asked": asked,
        "query": query.query_id,
        "of": "1 query" if len(queries) == 1 else f"{len(queries):,} queries",
        "before": queries[place - 1].query_id if place else None,
        "after": queries[place + 1].query_id if place + 1 < len(queries) else None,
        "lead": _lead(query, counts),
        "wide": cut_plot(query, cuts, WIDE, shown),
        "narrow": cut_plot(query, cuts, NARROW, shown),
        "labelled": query.relevant is not None,
        "left_out": max(0, len(query.scores) - shown),
        "cuts": [_cells(cut) for cut in cuts],
        "heads": [] if comparison is None else comparison_heads(comparison),
        "rows": [] if comparison is None else [comparison_cells(comparison, row) for row in comparison.rows],
        "refused": {} if comparison is None else comparison.refused,
        "oracle": "" if comparison is None else f"{figure(comparison.oracle_f1)} ({interval(comparison.oracle_f1)})",
    }
    return render_page("selections.html.j2", page, package=_PACKAGE, layout=layout)


def cut_plot(query: QueryScores, cuts: Sequence[Cut], frame: Frame, shown: int) -> Plot | None:
    """Return scores over ranks, and below them a bar a strategy up to where it cuts; None where there is no cut."""
    scores = query.scores[:shown]
    if not scores or all(cut.kept is None for cut in cuts):  # refused by all: their differences may be above every float
        return None
    left = _NAMES_WIDE if frame.width >= WIDE.width else _NAMES_NARROW
    frame = Frame(width=frame.width, left=left, right=frame.right, x_ticks=frame.x_ticks)
    x = linear(0.5, len(scores) + 0.5, frame.left, frame.x_end)
    axis = range_of(scores, steps=4, least=1e-9)
    y = linear(axis.low, axis.high, _TOP + _SCORES, _TOP)
    relevant = query.relevant or ()
    marks = tuple(
        Mark(
            x=x(rank),
            y=y(score),
            kind="item" if rank > len(relevant) or relevant[rank - 1] else "skipped",
            title=f"rank {rank}: {score:.4g}{_said(relevant, rank)}",
            radius=3.5,
        )
        for rank, score in enumerate(scores, 1)
    )
    upper = Panel(top=_TOP, bottom=_TOP + _SCORES, y_ticks=axis.ticks(y), marks=marks, name="Scores", note="best first")
    kept = [cut for cut in cuts if cut.kept is not None]
    begin = _TOP + _SCORES + 52
    rows = [(begin + _ROW * place + 8, cut) for place, cut in enumerate(kept)]
    lower = Panel(
        top=begin,
        bottom=begin + _ROW * len(kept) + 4,
        y_ticks=tuple(Tick(at=at, label=cut.strategy) for at, cut in rows),
        lines=tuple(Line(kind="stair", path=f"M{x(0.5):g} {at}H{x((cut.kept or 0) + 0.5):g}") for at, cut in rows if cut.kept),
        marks=tuple(
            Mark(x=x((cut.kept or 0) + 0.5), y=at, kind="item", title=f"{cut.strategy} keeps {cut.kept}: {cut.rule}", radius=3.5)
            for at, cut in rows
        ),
        name="Kept by",
    )
    step = max(1, int(round_step(len(scores) / frame.x_ticks)))
    ticks = tuple(Tick(at=x(rank), label=str(rank)) for rank in range(1, len(scores) + 1) if rank == 1 or rank % step == 0)
    return Plot(frame=frame, panels=(upper, lower), x_ticks=ticks, x_title="rank", is_dense=True)


def _cells(cut: Cut) -> tuple[str, str, str, str]:
    kept = "refused" if cut.kept is None else str(cut.kept)
    return cut.strategy, kept, "—" if cut.cutoff_score is None else f"{cut.cutoff_score:.4g}", cut.rule


def _said(relevant: Sequence[bool], rank: int) -> str:
    return "" if rank > len(relevant) else ", relevant" if relevant[rank - 1] else ", not relevant"


def _lead(query: QueryScores, counts: Sequence[int]) -> str:
    if not counts:
        return "No strategy takes these scores."
    told = f"Of {plural(len(query.scores), 'item')} the strategies keep {min(counts)} to {max(counts)}"
    if query.relevant is None:
        return f"{told}."
    relevant = sum(query.relevant)
    return f"{told}; {relevant:,} {'is' if relevant == 1 else 'are'} relevant."
