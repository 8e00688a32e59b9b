"""The agreement of raters for people: lines for a terminal, and a page with every pair as a scatter plot."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from jumar.core.rendering.html import DOCUMENT, Layout, block, render_page
from jumar.core.rendering.plot import MOST_DOTS, Dot, scatter_of
from jumar.core.text import cut, escape, number, plural, shortened, signed
from jumar.judging.agreement import Interval
from jumar.judging.raters.figures import FIGURES, Pair, RaterAgreement, RaterFigures
from jumar.judging.raters.ratings import unmatched_text, usual_scale

RELIABLE: Final = 0.8
TENTATIVE: Final = 2 / 3
"""Krippendorff's customary bounds of alpha: below the second no conclusion should be drawn from the ratings."""
_NAMES: Final = {
    "exact": "exact agreement",
    "within_one": "within one point",
    "kappa_weighted": "weighted kappa",
    "alpha": "Krippendorff's alpha",
    "spearman": "Spearman",
    "bias": "bias",
}
_NAME: Final = 24  # characters of a rater's name or an id in a table
_ALIKE: Final = 0.8  # Spearman from which raters order items alike, whatever points they give
_MOST_TEXT: Final = 4_000


def verdict(found: RaterAgreement) -> str:
    """Return one sentence that says how far the raters can be relied on, and what to do."""
    constant = [escape(rater.name) for rater in found.raters if rater.constant]
    if constant:
        return (
            f"{' and '.join(constant)} gave one score to everything, so kappa and rank correlation are undefined: "
            "rate items that differ, or make the rubric tell them apart."
        )
    if found.alpha is None:
        return "Too few ratings differ to say whether the raters agree: rate more items."
    low = found.intervals.get("alpha")
    sure = "" if low is None or low.low >= TENTATIVE else f" Its interval begins at {number(low.low)}: more items would tell."
    if found.alpha >= RELIABLE:
        return f"The raters agree well enough to take one for the other (alpha {number(found.alpha)}, required 0.80).{sure}"
    if found.alpha >= TENTATIVE:
        return (
            f"The raters agree well enough for tentative conclusions (alpha {number(found.alpha)}; 0.67 to 0.80): "
            "sharpen the rubric by the items that are furthest apart."
        )
    if found.spearman is not None and found.spearman >= _ALIKE:
        return (
            f"The raters rank items alike (Spearman {number(found.spearman)}) and give other points "
            f"(alpha {number(found.alpha)}, required 0.67): name each scale with --scale where they differ, or say in the rubric "
            "what each score means."
        )
    return (
        f"Don't take one rater for the other (alpha {number(found.alpha)}, required 0.67): look at the items that are furthest "
        f"apart, sharpen the rubric, and rate again.{_odd_one(found)}{_noisy(found.raters)}{_scales(found.raters)}"
    )


def _odd_one(found: RaterAgreement) -> str:
    """Return who rates unlike the others, where these agree without that one."""
    without = {rater.name: rater.alpha_without for rater in found.raters if rater.alpha_without is not None}
    name = max(without, key=lambda each: without[each], default="")
    return f" Without {escape(name)} alpha is {number(without[name])}." if name and without[name] >= TENTATIVE else ""


def _noisy(raters: Sequence[RaterFigures]) -> str:
    loud = [escape(rater.name) for rater in raters if rater.noise is not None and rater.noise.high_variance]
    return f" {' and '.join(loud)} also differs from itself by more than half a point: average its repeats." if loud else ""


def _scales(raters: Sequence[RaterFigures]) -> str:
    """Return that raters seem to use different scales, none of which is far enough from the others to be sure of it."""
    if len({usual_scale(rater.low, rater.high) for rater in raters}) < 2:
        return ""
    uses = ", ".join(f"{escape(rater.name)} {rater.low:g} to {rater.high:g}" for rater in raters)
    return f" If these are different scales ({uses}), name them with --scale first."


def text_lines(found: RaterAgreement) -> list[str]:
    """Return the lines for a terminal."""
    pairs = len(found.pairs)
    over = f", means over {pairs} pairs" if pairs > 1 else ""
    lines = [f"{plural(found.items, 'item')} in {plural(found.groups, 'group')}, {plural(len(found.raters), 'rater')}{over}", ""]
    width = max(map(len, _NAMES.values())) + 2
    lines += [f"{_NAMES[name]:<{width}}{value} {interval}".rstrip() for name, value, interval in _figures(found)]
    lines += ["", *_rater_lines(found.raters)]
    if pairs == 1:
        lines += ["", *_confusion_lines(found.pairs[0])]
    else:
        lines += ["", *_pair_lines(found.pairs)]
    lines += ["", *_worst_lines(found)] if found.worst else []
    lines += ["", verdict(found)]
    return lines


def _figures(found: RaterAgreement) -> list[tuple[str, str, str]]:
    """Return each figure that there is: its name, itself and its interval in words."""
    names = [name for name in FIGURES if name != "bias" or found.bias is not None]
    return [(name, *figure_texts(found, name)) for name in names]


def figure_texts(found: RaterAgreement, name: str) -> tuple[str, str]:
    """Return a figure and its interval: ``0.71`` and ``[0.63, 0.78]``, ``61.3 %`` and ``[55.1, 67.0]``; a bias as a sentence."""
    value, interval = getattr(found, name), found.intervals.get(name)
    if value is None:
        return "undefined", ""
    if name in {"exact", "within_one"}:
        return f"{100 * value:.1f} %", _range(interval, 100, 1)
    if name != "bias":
        return number(value), _range(interval)
    first, second = (escape(rater.name) for rater in found.raters)
    if round(value, 2) == 0:
        return f"none: {second} and {first} have the same mean", _range(interval)
    higher = "higher" if value > 0 else "lower"
    turned = interval if interval is None or value > 0 else Interval(-interval.high, -interval.low)
    return f"{second} is {number(abs(value))} points {higher} than {first}", _range(turned)


def _range(interval: Interval | None, times: float = 1, places: int = 2) -> str:
    return "" if interval is None else f"[{times * interval.low:.{places}f}, {times * interval.high:.{places}f}]"


def _rater_lines(raters: Sequence[RaterFigures]) -> list[str]:
    rows = [("rater", "items", "mean", "sd", "range", "against the others", "alpha without", "repeats differ by")]
    rows += [(cut(escape(rater.name), _NAME), *_rater_cells(rater)) for rater in raters]
    return _columns(rows)


def _rater_cells(rater: RaterFigures) -> tuple[str, ...]:
    """Return what a rater's row says behind the name."""
    return (
        f"{rater.items:,}",
        number(rater.mean),
        number(rater.sd),
        f"{rater.low:g} to {rater.high:g}",
        "—" if rater.bias is None else signed(rater.bias),
        number(rater.alpha_without),
        "—" if rater.noise is None else number(rater.noise.mean_abs_difference),
    )


def _pair_lines(pairs: Sequence[Pair]) -> list[str]:
    rows = [("pair", "items", "exact", "within one", "kappa", "Spearman", "bias")]
    rows += [
        (
            f"{cut(escape(pair.first), _NAME)} – {cut(escape(pair.second), _NAME)}",
            f"{pair.items:,}",
            f"{100 * pair.exact:.1f} %",
            f"{100 * pair.within_one:.1f} %",
            number(pair.kappa_weighted),
            number(pair.spearman),
            signed(pair.bias),
        )
        for pair in pairs
    ]
    return _columns(rows)


def _confusion_lines(pair: Pair) -> list[str]:
    first, second = cut(escape(pair.first), _NAME), cut(escape(pair.second), _NAME)
    rows = [(f"{first} ↓  {second} →", *(str(label) for label in pair.confusion.labels))]
    for label, counts in zip(pair.confusion.labels, pair.confusion.counts, strict=True):
        rows.append((str(label), *(str(count) if count else "·" for count in counts)))
    return _columns(rows)


def _worst_lines(found: RaterAgreement) -> list[str]:
    rows = [("furthest apart", *(cut(escape(rater.name), _NAME) for rater in found.raters), "apart", "text")]
    for item in found.worst:
        scores = (_score(item.scores.get(rater.name)) for rater in found.raters)
        rows.append((cut(escape(item.id), _NAME), *scores, _score(item.difference), shortened(" ".join(item.text.split()), 40)))
    return [line.rstrip() for line in _columns(rows, text_last=True)]


def _score(value: float | None) -> str:
    return "—" if value is None else f"{round(value, 2):g}"


def _columns(rows: Sequence[Sequence[str]], *, text_last: bool = False) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    last = len(widths) - 1
    return [
        "  ".join(
            cell.ljust(width) if place == 0 or (text_last and place == last) else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def render_html(found: RaterAgreement, layout: Layout = DOCUMENT) -> str:
    """Return the page, with nothing fetched from anywhere: figures, a scatter plot and a table for each pair, the worst items."""
    page: dict[str, Any] = {
        "name": ", ".join(rater.name for rater in found.raters),
        "verdict": verdict(found),
        "bad": found.alpha is None or found.alpha < TENTATIVE,
        "rated": f"{plural(found.items, 'item')} in {plural(found.groups, 'group')}",
        "figures": [_tile(found, *texts) for texts in _figures(found)],
        "pairs": len(found.pairs),
        "raters": [{"name": rater.name, "cells": _rater_cells(rater)} for rater in found.raters],
        "plots": [_plot(found, pair) for pair in found.pairs],
        "worst": [
            {
                "id": item.id,
                "group": item.group or "",
                "scores": [_score(item.scores.get(rater.name)) for rater in found.raters],
                "difference": _score(item.difference),
                "short": shortened(" ".join(item.text.split()), 90),
                "text": block(item.text[:_MOST_TEXT]),
            }
            for item in found.worst
        ],
        "unmatched": [unmatched_text(name, ids) for name, ids in found.unmatched.items() if ids],
    }
    return render_page("agree.html.j2", page, package="jumar.judging.raters", styles=("report.css", "agree.css"), layout=layout)


def _tile(found: RaterAgreement, name: str, value: str, interval: str) -> Mapping[str, str]:
    """Return a figure of the page's head; a bias as a number, whose sentence is too long for a column."""
    if name != "bias":
        return {"name": _NAMES[name], "value": value, "small": interval}
    first, second = (rater.name for rater in found.raters)
    return {"name": f"bias: {second} less {first}", "value": signed(found.bias), "small": interval}


def _plot(found: RaterAgreement, pair: Pair) -> Mapping[str, Any]:
    """Return the scatter plot of a pair: equal scores lie on each other, so a dot's area says how many items it stands for."""
    rows = {rater.name: scores for rater, scores in zip(found.raters, found.scores, strict=True)}
    counts: dict[tuple[float, float], list[str]] = {}
    for item, x, y in zip(found.ids, rows[pair.first], rows[pair.second], strict=True):
        if x is not None and y is not None:
            counts.setdefault((x, y), []).append(item)
    most = max(map(len, counts.values()))
    dots = [
        Dot(
            x=x,
            y=y,
            radius=round(3 + 8 * math.sqrt((len(ids) - 1) / max(1, most)), 1),
            title=f"{pair.first} {x:g}, {pair.second} {y:g}: {_some(ids)}",
        )
        for (x, y), ids in sorted(counts.items(), key=lambda entry: -len(entry[1]))
    ]
    return {
        "pair": pair,
        "plot": scatter_of(dots, f"{pair.first}, score →"),
        "left_out": max(0, len(dots) - MOST_DOTS),
        "figures": [
            f"exact {100 * pair.exact:.1f} %",
            f"within one point {100 * pair.within_one:.1f} %",
            f"weighted kappa {_or_undefined(pair.kappa_weighted)}",
            f"Spearman {_or_undefined(pair.spearman)}",
            f"bias {signed(pair.bias)}",
        ],
    }


def _or_undefined(value: float | None) -> str:
    return "undefined" if value is None else number(value)


def _some(ids: Sequence[str]) -> str:
    first = ", ".join(cut(item, 40) for item in ids[:5])
    return first if len(ids) <= 5 else f"{len(ids):,} items, such as {first}"
