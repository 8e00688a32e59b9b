"""Gaps of single items: what is averaged, what cancels out, what the expensive judge saw; and the dashboard that says so."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from jumar.judging.gap import GapSummary, explain_gap, pair_results, summarise_gaps
from jumar.judging.items.item import Item
from jumar.judging.models import CheapModeResult, DualModeResult, ExpensiveModeResult, Unscored
from jumar.judging.report.text import DualView, render_dashboard
from jumar.judging.tracking import track


def expensive(
    item: str, gestalt: float, strengths: tuple[str, ...] = (), weaknesses: tuple[str, ...] = (), said: str = ""
) -> ExpensiveModeResult:
    return ExpensiveModeResult(
        story_id=item, gestalt=gestalt, reasoning=said, strengths=list(strengths), weaknesses=list(weaknesses)
    )


def cheap(item: str, gestalt: float) -> CheapModeResult:
    return CheapModeResult(story_id=item, gestalt=gestalt, raw_score=(gestalt - 1) * 5 / 4, reasons=[], patterns_matched=[])


def dual(
    item: str, exp: float, cheap_score: float, *, strengths: tuple[str, ...] = (), weaknesses: tuple[str, ...] = ()
) -> DualModeResult:
    judged = expensive(item, exp, strengths, weaknesses)
    return DualModeResult(story_id=item, expensive=judged, cheap=cheap(item, cheap_score), gap=exp - cheap_score)


def failed(item: str) -> Unscored:
    return Unscored(story_id=item, kind="timed_out", message="no answer in 60 s")


def test_only_items_that_both_scored_are_paired_in_the_order_of_the_expensive_judge() -> None:
    pairs = pair_results(
        [expensive("c", 4.0), expensive("a", 3.0), failed("b"), expensive("d", 2.0)],
        [cheap("a", 3.5), cheap("b", 2.0), cheap("c", 1.0), failed("d")],
    )
    assert [("c", 3.0), ("a", -0.5)] == [(one.story_id, one.gap) for one in pairs]


def test_too_generous_and_too_strict_cancel_out_in_the_signed_gap_only() -> None:
    results = [dual("a", 5.0, 3.0), dual("b", 1.0, 3.0)]
    summary = summarise_gaps(results, {one: Item(one, "text") for one in "ab"})
    assert (0.0, 2.0, False) == (summary.gap, summary.abs_gap_mean, summary.gap_met)
    assert (3.0, 3.0, False) == (summary.expensive_avg, summary.cheap_avg, summary.quality_met)


def test_without_items_there_is_no_average_rather_than_zero() -> None:
    summary = summarise_gaps([], {})
    assert (None, None, None, None) == (summary.gap, summary.abs_gap_mean, summary.gap_met, summary.quality_met)


def test_exactly_half_a_point_is_no_large_gap_and_the_largest_comes_first() -> None:
    results = [dual("half", 3.5, 3.0), dual("small", 3.6, 3.0), dual("large", 1.0, 4.0)]
    summary = summarise_gaps(results, {one.story_id: Item(one.story_id, "text") for one in results})
    assert ["large", "small"] == [one.story_id for one in summary.large]


UNSUPPORTED = "Read the item: no phrase that it shares with the judge's words is supported by other items"


@pytest.mark.parametrize(
    ("result", "text", "issue", "action"),
    [
        (
            dual("a", 4.5, 3.2, strengths=("Names the failing Export Button in the story",)),
            "When I press the failing export button, nothing happens.",
            "Cheap mode was too strict; the expensive judge saw: Names the failing Export Button in the story",
            UNSUPPORTED,
        ),
        (
            dual("a", 1.5, 4.0, weaknesses=("mixes billing and login",), strengths=("short",)),
            "Change billing. Also repair login. It is short.",
            "Cheap mode was too generous; the expensive judge saw: mixes billing and login",
            UNSUPPORTED,
        ),
        (
            dual("a", 4.5, 3.2),
            "anything",
            "Cheap mode was too strict; the expensive judge gave no reason",
            "Read the item: without the judge's reasons there is nothing to look for",
        ),
        (
            dual("a", 4.5, 3.2, strengths=("well shaped",)),
            "anything",
            "Cheap mode was too strict; the expensive judge saw: well shaped",
            "Read the item: none of the judge's words stand in its text, so no phrase of them can fire",
        ),
    ],
)
def test_a_large_gap_says_what_was_missed_and_what_could_fire(result: DualModeResult, text: str, issue: str, action: str) -> None:
    found = explain_gap(result, Item("a", text))
    assert (issue, action) == (found.issue, found.action)


def test_function_words_and_pieces_of_longer_phrases_are_no_signals() -> None:
    result = dual("a", 4.5, 3.2, strengths=("it is about the offline mode of the reader", "offline mode"))
    assert ("offline mode",) == explain_gap(result, Item("a", "This is about the offline mode.")).phrases


def test_reasoning_stands_in_where_no_strength_is_named() -> None:
    one = expensive("a", 4.5, said="Clear benefit. Names a user!")
    result = DualModeResult(story_id="a", expensive=one, cheap=cheap("a", 3.0), gap=1.5)
    assert ("Clear benefit.", "Names a user!") == explain_gap(result, Item("a", "x")).missed


def view(
    results: list[DualModeResult], *, previous: float | None = None, match: float | None = 0.92, cost: float | None = None
) -> DualView:
    items = {one.story_id: Item(one.story_id, "some text") for one in results}
    tracking = (
        track(
            [one.expensive.gestalt for one in results],
            [one.cheap.gestalt for one in results],
            lengths=[9] * len(results),
            groups=[None] * len(results),
        )
        if results
        else None
    )
    return DualView(
        5, len(results) + 1, summarise_gaps(results, items), tracking, match, {"expensive": 1, "cheap": 0}, cost, previous
    )


def test_the_dashboard_has_the_lines_of_the_design() -> None:
    text = render_dashboard(view([dual("s1", 4.5, 3.2, strengths=("nuanced value",)), dual("s2", 4.0, 4.1)]))
    for line in (
        "iteration 5: 2 of 3 items scored by both judges (1 unscored in expensive mode)",
        "judge     4.25 · 0 calls, 0 cached · cost not reported",
        "cheap     3.65 · target: at least 4.0, missed · a pattern fired on 92% of the",
        "          items",
        "gap       MAE 0.70 · target: at most 0.5, missed · signed +0.60: the cheap judge",
        "          is too strict on average",
        "far apart 1 of 3 items by more than 0.5, the farthest first",
        "  s1: judge 4.50, cheap 3.20, gap +1.30",
        "    Issue: Cheap mode was too strict; the expensive judge saw: nuanced value",
        "    Action: Read the item: none of the judge's words stand in its text, so no",
        "verdict   not proven: 2 items in 2 groups are too few, 30 in 20 are the least",
        "DECISION: Gap over its target: read the items that are far apart; `jumar learn`",
        "          makes a cheap judge from these verdicts",
    ):
        assert line in text.splitlines()


def decided(text: str) -> str:
    """The decision as one line."""
    return " ".join(text[text.index("DECISION:") :].split())


@pytest.mark.parametrize(
    ("results", "previous", "decision"),
    [
        ([], None, "No item was scored by both judges: there is nothing to decide from"),
        ([dual("a", 4.0, 3.0)], 1.5, "Gap improving, continuing optimization"),
        ([dual("a", 4.0, 3.0)], 0.5, "Gap growing: look at what changed since the last iteration"),
        (
            [dual("a", 4.0, 3.8)],
            None,
            "The mean gap is small, but that the cheap judge tracks is not proven: look at the checks",
        ),
    ],
)
def test_the_decision_follows_from_the_figures(results: list[DualModeResult], previous: float | None, decision: str) -> None:
    assert f"DECISION: {decision}" == decided(render_dashboard(view(results, previous=previous)))


def many(offset: float) -> list[DualModeResult]:
    scores = [1.0 + (number * 7 % 33) / 8 for number in range(120)]
    return [
        dual(f"i{n}", score, min(5.0, max(1.0, score + offset + (0.05 if n % 2 else -0.05)))) for n, score in enumerate(scores)
    ]


def test_a_small_gap_that_a_constant_has_too_is_not_called_unproven() -> None:
    draw = random.Random(3)
    truth = [4.0 + draw.choice((-0.2, 0.2)) for _ in range(60)]
    text = render_dashboard(view([dual(f"i{n}", score, 4.35 + (n % 2) / 10) for n, score in enumerate(truth)]))
    assert "verdict   does not track: a check failed beyond its interval" in text.splitlines()
    assert "DECISION: The mean gap is small, but the cheap judge does no better than what needs no judge: " in decided(text)
    found = render_dashboard(view([dual(f"i{n}", score, 4.0 + draw.choice((-0.2, 0.2))) for n, score in enumerate(truth)]))
    assert "verdict   not proven: these items leave open whether it agrees with the judge" in found.splitlines()


def test_a_judge_that_tracks_is_told_whether_the_items_are_good_too() -> None:
    assert "not good enough yet" in decided(render_dashboard(view(many(0.0))))
    good = [dual(one.story_id, 3.6 + one.expensive.gestalt / 4, 3.6 + one.cheap.gestalt / 4) for one in many(0.0)]
    good = [one for one in good if one.expensive.gestalt <= 5 and one.cheap.gestalt <= 5]
    assert "its average is met" in decided(render_dashboard(view(good)))


@pytest.mark.parametrize(
    ("flag", "word"), [("all_same_score", "says the same of everything"), ("high_variance", "differs from itself")]
)
def test_a_judge_that_is_none_decides_nothing(flag: str, word: str) -> None:
    shown = replace(view([dual("a", 4.0, 3.0)]), flags=(flag,), stopped="the next call could exceed the limit")
    text = render_dashboard(shown)
    assert word in decided(text)
    for line in (f"health    {flag}", "stopped   the next call could exceed the limit"):
        assert line in text.splitlines()


def test_every_line_fits_a_terminal() -> None:
    long = dual("a", 5.0, 2.0, strengths=("a very long sentence " * 30,))
    assert all(len(line) <= 80 for line in render_dashboard(view([long])).splitlines())


def test_very_many_gaps_are_cut_and_control_characters_shown() -> None:
    results = [dual(f"s\x1b{n}", 5.0, 2.0) for n in range(14)]
    text = render_dashboard(view(results, match=None, cost=0.25))
    assert "  … and 9 more: gap_analysis.json has them all (-o DIR)" in text.splitlines()
    assert 1 == text.count("Issue:") == text.count("Action:")
    assert "\x1b" not in text
    assert "cheap     2.00 · target: at least 4.0, missed · no patterns" in text.splitlines()
    assert "judge     5.00 · 0 calls, 0 cached · $0.25" in text.splitlines()


def test_a_summary_says_when_its_targets_are_met() -> None:
    summary = GapSummary(1, 4.4, 4.0, 0.4, 0.5, ())
    assert (True, True) == (summary.gap_met, summary.quality_met)


# ------------------------------------------------------------------------------------------------------- advice


def judged_items(scores: dict[str, tuple[float, float, str]]) -> tuple[list[DualModeResult], dict[str, Item]]:
    """Items by id: what the expensive and the cheap judge gave them, and their text. The judge's words are the text's own."""
    results = [dual(name, one, other, strengths=(text,), weaknesses=(text,)) for name, (one, other, text) in scores.items()]
    return results, {name: Item(name, text, group=name[0] + name[-1]) for name, (_, _, text) in scores.items()}


def test_a_pattern_is_advised_where_the_other_items_speak_for_it() -> None:
    low = {f"l{n}": (1.0 + n % 2 / 4, 3.0, f"clearly mentions lorem ipsum number{n}") for n in range(6)}
    high = {f"h{n}": (4.0 + n % 3 / 4, 4.2, f"other words altogether{n}") for n in range(12)}
    summary = summarise_gaps(*judged_items({**low, **high}))
    support = summary.large[0].support
    assert support is not None
    assert ("clearly mentions lorem ipsum", "bad", 6, 12) == (support.phrase, support.kind, support.items, support.others)
    said = (
        'Add a bad pattern for "clearly mentions lorem ipsum": the judge gives 1.12 to the 6 items with it and 4.25 to the '
        "12 others, and the cheap judge is 1.88 too high on those with it"
    )
    assert said == summary.large[0].action
    assert said in " ".join(render_dashboard(view_of(summary)).split())


@pytest.mark.parametrize(
    ("why", "scores", "groups"),
    [
        ("the judge rewards it", [(2.0, 4.5)] + 5 * [(5.0, 4.8)], 6),
        ("too few items", 4 * [(1.0, 3.0)], 4),
        ("all of one group", 6 * [(1.0, 3.0)], 1),
        ("the cheap judge is right on average", [(1.5, 3.0)] + 5 * [(1.5, 1.5)], 6),
        ("scattered", 3 * [(1.0, 3.0), (5.0, 4.0)], 6),
        ("three groups that are scored alike", 4 * [(1.0, 3.5), (1.0, 3.5), (4.2, 3.5)], 3),
        ("five items say little about how far they scatter", [(one, 3.5) for one in (1.0, 2.0, 2.5, 3.0, 3.5)], 5),
    ],
)
def test_no_pattern_is_advised_that_the_items_do_not_speak_for(why: str, scores: list[tuple[float, float]], groups: int) -> None:
    phrase = "clearly mentions lorem ipsum"
    low = {f"l{n}": (*pair, f"{phrase} number{n}") for n, pair in enumerate(scores)}
    high = {f"h{n}": (4.0 + n % 3 / 4, 4.2, f"other words altogether{n}") for n in range(12)}
    results, items = judged_items({**low, **high})
    items |= {name: replace(items[name], group=f"g{n % groups}") for n, name in enumerate(low)}
    large = summarise_gaps(results, items).large
    assert [one for one in large if phrase in one.phrases], why
    assert not [one for one in large if one.support is not None], why


def view_of(summary: GapSummary) -> DualView:
    return DualView(1, summary.scored, summary, None, None, {}, 0.0)
