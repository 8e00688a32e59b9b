"""The third and the fourth phase of the first design, from its own words; one and two stand in test_judging_dual."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from statistics import fmean

from judge_server import Answer, JudgeServer, Seen

from jumar.judging import IterationMetrics, check_convergence, detect_divergence
from jumar.judging.component_health import check_pattern_learner
from jumar.judging.judges.openai import OpenAIJudge
from jumar.judging.patterns import (
    PatternMatcher,
    PatternProposal,
    PatternSet,
    merge_patterns,
    merge_proposals,
    validate_provisional_patterns,
)
from jumar.judging.patterns.proposed import as_pattern
from jumar.learning import RECOVERY_ACTIONS, GapItem, LearnState, RecoveryMeans, Scored, check_change, execute_recovery, propose
from jumar.learning.proposals.asking import ask_for_proposals

DAY = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = ["report", "lists", "figures", "region", "month", "tables", "notes", "charts"]


def stories(count: int, seed: int) -> list[GapItem]:
    """A judge that likes what 'saves time' and dislikes a 'quick hack'; the cheap one knows neither."""
    random = Random(seed)
    found: list[GapItem] = []
    for number in range(count):
        said, score = [("saves time", 4.8), ("quick hack", 1.4), ("", 3.1)][number % 3]
        words = [*random.choices(WORDS, k=8), said, *random.choices(WORDS, k=8)]
        found.append(GapItem(id=f"s{number}", text=" ".join(words), expensive=score, cheap=3.0, group=f"g{number // 2}"))
    return found


def cheap(patterns: Sequence[PatternProposal], items: Sequence[GapItem]) -> list[GapItem]:
    """The items scored with the patterns that were committed, a point each."""
    made = [as_pattern(one) for one in patterns if one.status == "validated"]
    matcher = PatternMatcher(made)
    points = [[1.0 if made[at].type == "good" else -1.0 for at in matcher.fired(item.text)] for item in items]
    return [replace(item, cheap=min(5.0, max(1.0, 3.0 + sum(ones)))) for item, ones in zip(items, points, strict=True)]


def gap(items: Sequence[GapItem]) -> float:
    return fmean(abs(one.gap) for one in items)


def tried(proposals: Sequence[PatternProposal], items: Sequence[GapItem]) -> list[PatternProposal]:
    judged = [{"story_id": one.id, "gestalt": one.expensive} for one in items]
    return validate_provisional_patterns(proposals, [{"id": one.id, "text": one.text} for one in items], judged)


def test_seed_4_phase_3_pattern_learning_loop() -> None:
    """Proposals with a model and without, provisional → validated or rejected, committed without anybody's hand."""
    learn, test = stories(60, 1), stories(60, 2)

    def answer(seen: Seen, _number: int) -> Answer:
        good = "saves time" in seen.json["messages"][1]["content"]
        category, phrase = ("value_phrases", "saves time") if good else ("bad_story_indicators", "quick hack")
        return Answer(f'{{"category": "{category}", "pattern": "{phrase}", "rationale": "it recurs"}}')

    async def ask(server: JudgeServer) -> tuple[PatternProposal, ...]:
        judge = OpenAIJudge("small", base_url=f"{server.base}/v1", api_key="key-of-no-importance")
        try:
            return (await ask_for_proposals(learn, judge, limit=30)).proposals
        finally:
            await judge.aclose()

    with JudgeServer(answer) as server:
        asked = asyncio.run(ask(server))
    assert {"saves time": "good", "quick hack": "bad"} == {one.pattern["phrases"][0]: one.pattern["type"] for one in asked}

    proposals = merge_proposals([*asked, *propose(learn, iteration=1)], (), [one.text for one in learn]).kept
    assert {"provisional"} == {one.status for one in proposals}
    decided = tried(proposals, test)
    committed = [one.pattern["phrases"] for one in decided if one.status == "validated"]
    assert any("saves time" in one or "time" in one for one in committed)
    assert all(one.stories_tested == 60 for one in decided)
    assert gap(cheap(decided, test)) < gap(test)
    counts = {status: sum(one.status == status for one in decided) for status in ("validated", "rejected", "provisional")}
    print(counts, f"gap {gap(test):.2f} → {gap(cheap(decided, test)):.2f}")
    health = check_pattern_learner(proposed=len(proposals), committed=counts["validated"], rejected=counts["rejected"])
    assert health.healthy


def test_seed_4_phase_4_self_healing_and_convergence() -> None:
    """A set that got worse is found out, rolled back and confirmed; duplicates and idle patterns go; then it converges."""
    learn, test = stories(60, 1), stories(60, 2)
    good = PatternSet(
        version="2.0",
        patterns=[
            as_pattern({"phrase": "saves time"}, status="active"),
            as_pattern({"phrase": "quick hack", "type": "bad"}, status="active"),
        ],
    )
    harmful = as_pattern({"phrase": "saves time", "type": "bad"}, status="active")

    def scored(patterns: PatternSet) -> list[Scored]:
        given = [
            PatternProposal(pattern=one.model_dump(), proposed_at=0, status="validated")
            for one in patterns.patterns
            if one.status == "active"
        ]
        return [Scored(id=one.id, expensive=one.expensive, cheap=one.cheap, group=one.group) for one in cheap(given, test)]

    def evaluate(state: LearnState) -> float:
        return fmean(abs(one.expensive - one.cheap) for one in scored(state.patterns))

    before = LearnState(patterns=good)
    before = before.remembered(abs_gap=evaluate(before))
    worse = replace(before, iteration=1, patterns=good.model_copy(update={"patterns": [*good.patterns, harmful]}))
    found = check_change(scored(good), scored(worse.patterns))
    assert found.regression
    assert found.condition is not None
    assert "gap_increased" == found.condition.name

    history = [metrics(number, one) for number, one in enumerate((0.2, 0.4, 0.7))]
    divergence = detect_divergence(history)
    recovery = execute_recovery(divergence, worse, evaluate)
    assert ("rollback_patterns",) == recovery.kept
    assert good == recovery.state.patterns
    assert not check_change(scored(good), scored(recovery.state.patterns)).regression, "evaluated again, it is as it was"
    assert recovery.entries[0]["after"] < recovery.entries[0]["before"]

    crowded = good.model_copy(
        update={
            "patterns": [
                *good.patterns,
                as_pattern({"phrase": "saves"}, status="active"),
                as_pattern({"phrase": "unheard of"}, status="active"),
            ]
        }
    )
    means = RecoveryMeans(texts=[one.text for one in learn])
    cleaned = execute_recovery("pattern_explosion", replace(before, patterns=crowded), evaluate, "seed", means)
    assert [name for name, _ in RECOVERY_ACTIONS["pattern_explosion"]] == list(cleaned.kept)
    assert 2 == sum(one.status == "active" for one in cleaned.state.patterns.patterns)
    assert 4 == len(cleaned.state.patterns.patterns), "nothing is deleted"
    assert 1 == len(merge_patterns(crowded.patterns).merges)

    settled = [metrics(number, 0.3, tracks=True) for number in range(3)]
    proof = check_convergence(settled)
    assert proof["converged"]
    assert [1, 2] == proof["proof"]["iterations_checked"]
    assert not check_convergence(history)["converged"]


def metrics(iteration: int, gap_: float, *, tracks: bool = False) -> IterationMetrics:
    return IterationMetrics(
        iteration=iteration,
        timestamp=DAY,
        expensive_avg=4.4,
        cheap_avg=4.4 - gap_,
        gap=gap_,
        gap_delta=0.0,
        pattern_count=2,
        provisional_patterns=0,
        patterns_committed=0,
        patterns_rejected=0,
        abs_gap=gap_,
        story_ids=["s0"],
        tracks=tracks,
    )
