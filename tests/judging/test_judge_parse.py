"""What an answer means, and what it does not."""

from __future__ import annotations

import json
import math
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.judging.asking.prompt import NoReading, ParsedReply, parse_reply

WHOLE = {"reasoning": "why", "strengths": ["a"], "weaknesses": ["b", "c"], "gestalt": 4}
READ = ParsedReply(4.0, "why", ("a",), ("b", "c"))


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(WHOLE),
        f"  {json.dumps(WHOLE, indent=2)}\n",
        f"```json\n{json.dumps(WHOLE)}\n```",
        f"Here is my verdict:\n```\n{json.dumps(WHOLE)}\n```\nHope it helps.",
        f"I think {json.dumps(WHOLE)} is fair, {{really}}.",
        json.dumps({**WHOLE, "gestalt": 4.0, "score": 4}),
        f'<think>Perhaps {{"gestalt": 2}}? No.</think>\n{json.dumps(WHOLE)}',
        f"{{not this}} but {json.dumps({**WHOLE, 'more': {'gestalt': 1}})}",
        f"{json.dumps(WHOLE)}\n{json.dumps(WHOLE)}",
    ],
)
def test_one_verdict_in_whatever_surrounds_it(text: str):
    assert (READ,) == parse_reply(text)


def test_score_is_another_name_and_words_may_be_missing():
    assert (ParsedReply(3.5),) == parse_reply('{"score": 3.5}')
    assert (ParsedReply(3.5, "", ("good",)),) == parse_reply('{"score": 3.5, "strengths": "good", "weaknesses": null}')


def test_several_readings_at_once():
    assert (ParsedReply(4.0), ParsedReply(2.0)) == parse_reply('{"readings": [{"gestalt": 4}, {"gestalt": 2}]}')


def test_an_answer_of_more_readings_than_anybody_asks_for_is_none():
    many = [{"gestalt": 4}] * 1_001
    assert 1_000 == len(cast("tuple[ParsedReply, ...]", parse_reply(json.dumps({"readings": many[1:]}))))
    assert parse_reply(json.dumps({"readings": many})) == NoReading(
        "unparseable", "the answer has 1,001 readings; at most 1,000 are taken"
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I would give this a solid 4 out of 5.",
        "4",
        "[4]",
        '{"gestalt": "4/5"}',
        '{"gestalt": "4"}',
        '{"gestalt": true}',
        '{"gestalt": null}',
        '{"gestalt": NaN}',
        '{"gestalt": Infinity}',
        '{"gestalt": 1e999}',
        '{"gestalt": [4]}',
        '{"rating": 4}',
        '{"gestalt": 4, "gestalt": 5}',
        '{"gestalt": 4, "score": 5}',
        '{"gestalt": 4} or rather {"gestalt": 5}',
        '{"gestalt": 4',
        '{"item": {"gestalt": 5}, "gestalt": ',
        '{"reasoning": "{", "item": {"gestalt": 5',
        '{"reasoning": {"gestalt": 4}}',
        '{"gestalt": 4, "strengths": [1]}',
        '{"gestalt": 4, "reasoning": 7}',
        '{"readings": []}',
        '{"readings": [4]}',
        "{" * 5000,
        '{"a":' * 2000,
    ],
)
def test_no_verdict(text: str):
    found = parse_reply(text)
    assert isinstance(found, NoReading)
    assert "unparseable" == found.kind


@pytest.mark.parametrize("text", ['{"gestalt": 11}', '{"gestalt": 0}', '{"gestalt": -1.5}', '{"gestalt": 1' + "0" * 400 + "}"])
def test_a_score_beyond_the_scale_is_out_of_range_and_never_cut_to_fit(text: str):
    found = parse_reply(text)
    assert isinstance(found, NoReading)
    assert "out_of_range" == found.kind
    assert "is not from 1 to 5" in found.message


@pytest.mark.parametrize(
    "text", ["I'm sorry, but I can't help with that.", "I cannot judge this.", "Sorry, no.", '{"refusal": "not this one"}']
)
def test_a_refusal_is_one(text: str):
    found = parse_reply(text)
    assert isinstance(found, NoReading)
    assert "refused" == found.kind


def test_other_scales_are_mapped_linearly():
    assert (ParsedReply(1.0), ParsedReply(3.0), ParsedReply(5.0)) == parse_reply(
        '{"readings": [{"score": 0}, {"score": 50}, {"score": 100}]}', (0, 100)
    )
    found = parse_reply('{"score": 101}', (0, 100))
    assert isinstance(found, NoReading)
    assert "is not from 0 to 100" in found.message


@given(st.text() | st.from_regex(r'\{"gestalt": ?[0-9.eE+-]*[,}].*', fullmatch=True))
def test_no_text_raises_and_every_reading_is_on_the_scale(text: str):
    found = parse_reply(text)
    if not isinstance(found, NoReading):
        assert all(1.0 <= one.gestalt <= 5.0 for one in found)


@given(
    st.floats(-1e6, 1e6).flatmap(lambda low: st.tuples(st.just(low), st.floats(low + 1e-3, low + 1e6))),
    st.floats(0, 1),
)
def test_a_value_on_any_scale_stays_on_ours(scale: tuple[float, float], share: float):
    value = min(scale[1], max(scale[0], scale[0] + share * (scale[1] - scale[0])))
    mapped = parse_reply(json.dumps({"score": value}), scale)
    assert not isinstance(mapped, NoReading)
    assert 1.0 <= mapped[0].gestalt <= 5.0
    assert math.isclose(mapped[0].gestalt, 1.0 + 4.0 * (value - scale[0]) / (scale[1] - scale[0]), abs_tol=1e-9)
