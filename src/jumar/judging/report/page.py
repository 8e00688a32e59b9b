"""Pages of an evaluation: cheap against expensive, an item a point; and one item with all that both judges said of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from jumar.core.rendering.figures import UNKNOWN, dollars
from jumar.core.rendering.html import Layout, block, render_page
from jumar.core.rendering.plot import (
    MOST_DOTS,
    WIDE,
    Dot,
    Mark,
    Panel,
    Plot,
    Tick,
    iteration_ticks,
    linear,
    lines_of,
    range_of,
    scatter_of,
)
from jumar.core.text import number, plural, signed
from jumar.judging.cheap.scoring import BASE, CURVE
from jumar.judging.models import CheapModeResult, ExpensiveModeResult, Unscored
from jumar.judging.report.text import VERDICT_SENTENCES, check_rows, noise_sentence, statistic_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jumar.judging.models import Contribution
    from jumar.judging.report.read import EvaluationReport, GapPoint, ItemScores, ItemVerdicts

_PACKAGE: Final = "jumar.judging.report"
_MOST_ROWS: Final = 300
_MOST_TEXT: Final = 200_000
_ALWAYS: Final = {BASE: "what every item begins with", CURVE: "calibration to the judge's scale"}
_SMALL: Final = 0.005  # points: no score that is shown would change by it


def render_html(report: EvaluationReport, layout: Layout) -> str:
    """Return the page of an evaluation; items link to pages of their own where the layout has them."""
    both = [item for item in report.items if item.gap is not None]
    ordered = sorted(report.items, key=_farthest_first)
    tracking = report.tracking
    page = {
        "name": report.directory.parent.name,
        "number": report.number,
        "lead": _lead(report, len(both)),
        "tone": {"tracks": "sure", "does_not_track": "bad"}.get((tracking or {}).get("verdict", ""), "open"),
        "facts": _facts(report),
        "scatter": scatter_of([_dot(item) for item in both], "the judge's score →") if both else None,
        "left_out": max(0, len(both) - MOST_DOTS),
        "statistics": [] if tracking is None else [tuple(map(_minus, row)) for row in statistic_rows(tracking)],
        "checks": [] if tracking is None else [tuple(map(_minus, row)) for row in check_rows(tracking)],
        "noise": "" if tracking is None or tracking.get("judge_noise") is None else noise_sentence(tracking["judge_noise"]),
        "course": course_plot(report.course),
        "judges": [name for name, figures in (("Judge", report.expensive), ("Cheap", report.cheap)) if figures is not None],
        "rows": [_row(item) for item in ordered[:_MOST_ROWS]],
        "more": max(0, len(ordered) - _MOST_ROWS),
    }
    return render_page("evaluation.html.j2", page, package=_PACKAGE, layout=layout)


def render_item(report: EvaluationReport, verdicts: ItemVerdicts, layout: Layout) -> str:
    """Return the page of one item: its text, what the judge said, and what each pattern gave to the cheap score."""
    item = verdicts.item
    scores = next(one for one in report.items if one.id == item.id)
    page = {
        "id": item.id,
        "group": item.group or "",
        "facts": [
            ("Judge", number(scores.expensive), ""),
            ("Cheap judge", number(scores.cheap), ""),
            (
                "Gap",
                UNKNOWN if scores.gap is None else _minus(signed(scores.gap)),
                "" if scores.gap is None else _way(scores.gap),
            ),
        ],
        "texts": [
            (name, block(text[:_MOST_TEXT]))
            for name, text in (("Prompt", item.prompt), ("Context", item.context), ("Text", item.text))
            if text
        ],
        "judge": _judge(verdicts.expensive),
        "cheap": _cheap(verdicts.cheap),
    }
    return render_page("item.html.j2", page, package=_PACKAGE, layout=layout)


def course_plot(course: tuple[GapPoint, ...]) -> Plot | None:
    """Return the mean absolute gap over the evaluations of a folder; None for fewer than two."""
    known = [point.abs_gap for point in course if point.abs_gap is not None]
    if len(known) < 2:
        return None
    numbers = [point.number for point in course]
    axis = range_of([*known, 0.5], steps=3, least=0.1, zero=True)
    x = linear(numbers[0], numbers[-1], WIDE.left + 10, WIDE.x_end - 10)
    y = linear(axis.low, axis.high, 150, 34)
    panel = Panel(
        top=34,
        bottom=150,
        y_ticks=axis.ticks(y),
        levels=(Tick(at=y(0.5), label="target 0.5"),),
        marks=tuple(
            Mark(x=x(point.number), y=y(point.abs_gap), kind="item", title=f"evaluation {point.number}: {point.abs_gap:.3f}")
            for point in course
            if point.abs_gap is not None
        ),
        lines=lines_of((x(point.number), None if point.abs_gap is None else y(point.abs_gap)) for point in course),
        name="Mean absolute gap",
        note="points of the scale, less is better",
    )
    return Plot(frame=WIDE, panels=(panel,), x_ticks=iteration_ticks(numbers, WIDE, x), x_title="evaluation")


def _farthest_first(item: ItemScores) -> tuple[float, float, str]:
    lowest = min((score for score in (item.expensive, item.cheap) if score is not None), default=0.0)
    return (0.0 if item.gap is None else -abs(item.gap), lowest, item.id)


def _lead(report: EvaluationReport, both: int) -> str:
    if report.tracking is not None:
        return VERDICT_SENTENCES.get(str(report.tracking["verdict"]), "").replace("**", "")
    if report.expensive is not None and report.cheap is not None:
        return "No item was scored by both judges." if not both else "What the scores of both judges amount to is not on file."
    return f"{plural(len(report.items), 'item')} scored by the {'judge' if report.cheap is None else 'cheap judge'} alone."


def _facts(report: EvaluationReport) -> list[tuple[str, str, str]]:
    facts: list[tuple[str, str, str]] = [("Items", f"{len(report.items):,}", _unscored(report))]
    for name, figures in (("Judge", report.expensive), ("Cheap judge", report.cheap)):
        if figures is not None:
            facts.append((f"{name}, average", number(figures.get("gestalt_avg")), str(figures.get("judge", ""))))
    if report.gap is not None and report.tracking is not None:
        tracking = report.tracking
        for name, label in (("mae", "MAE"), ("spearman", "Spearman")):
            length = tracking["baselines"]["length_only"][name]
            facts.append((label, _minus(number(tracking[name])), f"length alone {_minus(number(length))}"))
    if report.expensive is not None:
        cost = report.expensive.get("cost_usd")
        shown = "not reported" if cost is None else dollars(cost, places=2)
        facts.append(("Cost of the judge", shown, plural(int(report.expensive.get("calls", 0)), "call")))
    return facts


def _unscored(report: EvaluationReport) -> str:
    counts = (
        (name, (figures or {}).get("unscored", 0)) for name, figures in (("judge", report.expensive), ("cheap", report.cheap))
    )
    return ", ".join(f"{count:,} unscored ({name})" for name, count in counts if count)


def _dot(item: ItemScores) -> Dot:
    judge, cheap = item.expensive or 0.0, item.cheap or 0.0
    return Dot(x=judge, y=cheap, title=f"{item.id}: judge {judge:.2f}, cheap {cheap:.2f}", key=quote(item.id, safe=""))


def _row(item: ItemScores) -> Mapping[str, str]:
    gap = UNKNOWN if item.gap is None else _minus(signed(item.gap))
    figures = {"Judge": number(item.expensive), "Cheap": number(item.cheap), "gap": gap}
    return {"id": item.id, "key": quote(item.id, safe=""), "text": item.text, **figures}


def _minus(text: str) -> str:
    return text.replace("-", "−")


def _way(gap: float) -> str:
    return "the same" if not round(gap, 2) else "the cheap judge is too strict" if gap > 0 else "the cheap judge is too generous"


def _judge(result: ExpensiveModeResult | Unscored | None) -> dict[str, Any] | None:
    if result is None:
        return None
    if isinstance(result, Unscored):
        return {"unscored": f"{result.kind.replace('_', ' ')}: {result.message}", "raw": block(result.raw or "")}
    readings = ", ".join(f"{reading:g}" for reading in result.readings) if len(result.readings) > 1 else ""
    return {
        "unscored": "",
        "readings": readings,
        "reasoning": block(result.reasoning),
        "lists": [(name, rows) for name, rows in (("Strengths", result.strengths), ("Weaknesses", result.weaknesses)) if rows],
    }


def _words(result: CheapModeResult, given: Sequence[Contribution]) -> dict[str, str]:
    """Return what the patterns of a set look for, in words: its reasons are these, with the points of each in the same order."""
    found: dict[str, str] = {}
    for one, reason in zip((one for one in given if one.name not in _ALWAYS), result.reasons, strict=False):
        points, _, said = reason.partition(" ")
        if points != f"{one.points:+.2f}":
            break
        found[one.name] = said
    return found


def _told(name: str, words: Mapping[str, str]) -> str:
    return _ALWAYS.get(name) or words.get(name) or name.replace("_", " ")


def _share(one: Contribution) -> str:
    return "" if one.name in _ALWAYS else f"{one.share:.0%}"


def _cheap(result: CheapModeResult | Unscored | None) -> dict[str, Any] | None:
    if result is None:
        return None
    if isinstance(result, Unscored):
        return {"unscored": f"{result.kind.replace('_', ' ')}: {result.message}"}
    given = sorted((one for one in result.contributions if abs(one.points) >= _SMALL), key=lambda one: -abs(one.points))
    words = _words(result, given)
    return {
        "unscored": "",
        "contributions": [(_told(one.name, words), _minus(signed(one.points)), _share(one)) for one in given[:100]],
        "more": len(result.contributions) - len(given[:100]),
        "sub_scores": [(name.replace("_", " "), number(value)) for name, value in result.sub_scores.items()],
        "missed": result.patterns_missed,
    }
