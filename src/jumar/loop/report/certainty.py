"""How sure is this: noise, finalists, ties and optimism in sentences and rows, the same for every rendering."""

from __future__ import annotations

from jumar.core.rendering.figures import UNKNOWN, iteration_label, listing, point_text
from jumar.core.text import percent, points
from jumar.loop.ranking.confirmed import Certainty, Compared, Finalist
from jumar.loop.report.read import LoopReport
from jumar.loop.report.reasons import capital

FINALIST_COLUMNS = ("Iteration", "In the loop", "Scored again", "Mean of all", "Standard error")
COMPARED_COLUMNS = ("For the same spend", "Iteration", "In the loop", "Fair score", "By")

_BY = {"holdout": "the hold-out", "confirm": "one more reading", "loop": "its own, which nothing was selected by", None: UNKNOWN}


def certainty_sentences(report: LoopReport) -> tuple[str, ...]:
    """Return what is known of the noise, and what follows from it; empty when nothing is."""
    found = report.certainty
    if found is None or not found.known:
        return ()
    sentences = [*_noise(found), *_finals(found), *_tie(found), *_optimism(found)]
    if report.chosen != found.chosen:
        sentences.append(
            f"All this is about iteration {iteration_label(found.chosen)}, which the rules choose; a person chose another"
        )
    return (*sentences, *found.problems)


def mean_text(report: LoopReport, number: int) -> str:
    """Return ``mean of 3 readings; 72.3% as recorded``; empty where the score is the recorded one."""
    readings = report.readings_of(number)
    return "" if readings == 1 else f"mean of {readings} readings; {percent(report.record(number).quality_score)} as recorded"


def score_text(report: LoopReport, number: int) -> str:
    """Return the score of one iteration by all its readings, with what it is: ``70.1% (mean of 3 readings; …)``."""
    told = mean_text(report, number)
    return f"{percent(report.score_of(number))}{f' ({told})' if told else ''}"


def _noise(found: Certainty) -> list[str]:
    if found.standard_error is None:
        return ["How noisy the scores are is not known: no scorer was asked twice about one iteration"]
    if found.standard_error == 0:
        return ["The scorers gave the same answer every time: a difference between two scores is no chance"]
    how = f"one standard error, {found.degrees} degrees of freedom"
    return [f"Chance alone moves a score by {point_text(found.standard_error)} ({how})"]


def _finals(found: Certainty) -> list[str]:
    numbers = [finalist.iteration for finalist in found.finalists]
    if len(numbers) < 2:
        alone = f"No other iteration is within the noise of iteration {iteration_label(numbers[0])}"
        return [alone] if found.standard_error else []
    if found.rescored:
        return [f"{_iterations(numbers)} were too close to call and were scored again; the mean of all readings decided"]
    return [f"{_iterations(numbers)} are too close to call, and were not all scored again"]


def _tie(found: Certainty) -> list[str]:
    if len(found.tied) < 2:
        return []
    kept = f"iteration {iteration_label(found.chosen)}, the earliest, is kept"
    return [f"{_iterations(list(found.tied))} differ by no more than the noise (±{points(found.width)}): {kept}"]


def _optimism(found: Certainty) -> list[str]:
    confirmed = found.confirmed
    if confirmed is None:
        return (
            ["Nothing confirmed the score that won; the best of several is as a rule a little lucky"]
            if found.standard_error
            else []
        )
    by = "the hold-out gives" if confirmed.by == "holdout" else "read once more, it is"
    told = f"The score that won is {percent(found.won)}; {by} {percent(confirmed.score)}"
    if found.optimism is None:
        return [f"{told}, on other dimensions: they don't compare"]
    interval = "" if found.optimism_width is None else f", give or take {points(found.optimism_width)}"
    told = f"The score that won is {percent(found.won)}; {by} {percent(confirmed.score)}"
    return [f"{told}: optimism of the selection {points(found.optimism, sign=True)} points{interval}"]


def _iterations(numbers: list[int]) -> str:
    return f"I{listing(sorted(numbers))[1:]}"


def finalist_rows(report: LoopReport) -> tuple[tuple[str, ...], ...]:
    """Return the rows under :data:`FINALIST_COLUMNS`; empty with fewer than two finalists."""
    found = report.certainty
    if found is None or len(found.finalists) < 2:
        return ()
    return tuple(_finalist(finalist, found.chosen) for finalist in found.finalists)


def _finalist(finalist: Finalist, chosen: int) -> tuple[str, ...]:
    return (
        iteration_label(finalist.iteration) + (" ✓" if finalist.iteration == chosen else ""),
        percent(finalist.score),
        ", ".join(percent(score) for score in finalist.later) or UNKNOWN,
        UNKNOWN if finalist.mean is None else percent(finalist.mean),
        points(finalist.standard_error),
    )


def compared_rows(report: LoopReport) -> tuple[tuple[str, ...], ...]:
    """Return the rows under :data:`COMPARED_COLUMNS`; empty when nothing is known of the noise."""
    found = report.certainty
    if found is None or not found.known:
        return ()
    return tuple(_compared(each) for each in found.compared)


def _compared(each: Compared) -> tuple[str, ...]:
    return (
        capital(each.which),
        iteration_label(each.iteration),
        percent(each.score),
        UNKNOWN if each.fair is None else percent(each.fair),
        _BY[each.by],
    )
