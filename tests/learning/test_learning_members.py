"""Which patterns of a set are supported by themselves: planted ones are found, and where there is nothing nothing is."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from learn_items import BAD, GOOD, WORDS, judged_items

from jumar.judging import Item
from jumar.judging.patterns.models import PatternProposal, PatternSet
from jumar.judging.patterns.proposed import as_pattern
from jumar.learning.material import Target
from jumar.learning.proof.support import Member, sealed_tests
from jumar.learning.state import ProposalLedger

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def targets(records: Sequence[dict[str, Any]]) -> list[Target]:
    return [
        Target(Item(one["id"], one["text"], group=one["group"]), sum(one["judge_scores"]) / 2, tuple(one["judge_scores"]))
        for one in records
    ]


def proposals() -> list[PatternProposal]:
    said = [*((one, "good") for one in GOOD), *((one, "bad") for one in BAD), *((one, "good") for one in WORDS)]
    return [PatternProposal(pattern={"phrases": [phrase], "type": kind}, proposed_at=1) for phrase, kind in said]


def members_of(patterns: PatternSet, made: Sequence[PatternProposal], sealed: Sequence[Target]) -> tuple[Member, ...]:
    return sealed_tests(patterns, made, sealed).members


def whole_set(made: Sequence[PatternProposal]) -> PatternSet:
    return PatternSet(version="2.0", patterns=[as_pattern(one, status="active", at=NOW) for one in made])


def test_planted_patterns_are_supported_and_no_others() -> None:
    made = proposals()
    found = members_of(whole_set(made), made, targets(judged_items(60, 6, seed=5)))
    planted = {as_pattern(one).id for one in made if one.pattern["phrases"][0] in {*GOOD, *BAD}}
    assert planted == {one.id for one in found if one.role == "supported"}
    assert len(made) == len(found)
    for one in found[: len(planted)]:
        assert one.increment is not None
        assert 0.6 < abs(one.increment) < 1.2
        assert (one.increment > 0) == (one.type == "good")


def test_where_the_judge_says_anything_nothing_is_supported() -> None:
    made, wrong, tried = proposals(), 0, 0
    for seed in range(20):
        records = targets(judged_items(60, 6, seed=seed))
        scores = [one.score for one in records]
        random.Random(seed).shuffle(scores)
        shuffled = [replace(one, score=score, readings=(score,)) for one, score in zip(records, scores, strict=True)]
        wrong += sum(one.role == "supported" for one in members_of(whole_set(made), made, shuffled))
        tried += 1
    print(f"shuffled sets: {tried}, wrongly supported: {wrong}")
    assert wrong <= 2


def test_what_is_not_in_the_set_counts_as_a_test_and_is_no_member() -> None:
    made = proposals()
    sealed = targets(judged_items(60, 6, seed=5))
    few = made[:2]
    alone, among = members_of(whole_set(few), few, sealed), members_of(whole_set(few), made, sealed)
    assert {one.id for one in alone} == {one.id for one in among} == {as_pattern(one).id for one in few}
    weak = targets(judged_items(14, 4, seed=6))
    supported = [
        sum(one.role == "supported" for one in members_of(whole_set(made[:5]), listed, weak)) for listed in (made[:5], made)
    ]
    assert supported[0] >= supported[1], "the more was tried, the more it takes"
    assert () == members_of(whole_set(few), few, [])
    assert () == members_of(whole_set([]), [], sealed)


def test_tests_of_earlier_looks_count_at_the_next_one_and_the_same_look_is_made_again() -> None:
    made, sealed = proposals(), targets(judged_items(30, 4, seed=5, effect=0.5, noise=0.6))
    few, many = made[:5], [PatternProposal(pattern={"phrases": [f"{a} {b}"]}, proposed_at=1) for a in WORDS for b in WORDS[:20]]

    def supported(found: Any) -> set[str]:
        return {one.id for one in found.members if one.role == "supported"}

    first = sealed_tests(whole_set(many), many, sealed)
    assert [1] * len(many) == [one.iteration for one in first.ledger.entries]
    alone, after = (sealed_tests(whole_set(few), few, sealed, known=known, look=2) for known in (ProposalLedger(), first.ledger))
    assert supported(after) < supported(alone), "eight hundred tests of the first look count at the second"
    assert len(many) + len(few) == len(after.ledger.entries)
    assert after == sealed_tests(whole_set(few), few, sealed, known=after.ledger, look=2)
    third = sealed_tests(whole_set(few), few, sealed, known=alone.ledger, look=3)
    assert supported(third) == supported(alone), "the very same tests are no others"
    assert ProposalLedger.from_json(after.ledger.to_json()) == after.ledger
