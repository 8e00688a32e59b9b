"""Whatever programs print: usage, scores and prompts stay what they should be."""

from __future__ import annotations

import json
import math
import re
import tempfile
from pathlib import Path
from unittest import mock

from hypothesis import example, given
from hypothesis import strategies as st
from prompted import render_feedback, render_prompt

from jumar.core import redaction
from jumar.loop.checks.validators import PYTEST_FAILURES
from jumar.loop.generators.failures import MAX_ERRORS, error_lines
from jumar.loop.generators.prompt import fenced
from jumar.loop.scorers.length import length_score
from jumar.loop.scorers.markdown import headings, prose_blocks
from jumar.loop.scorers.readability import band_score, count_text
from jumar.model import CheckResult, IterationRecord, ScoreReading, Usage
from jumar.processes.captured_output import CapturedOutput, _Stream
from jumar.processes.environment import build_environment, left_out
from jumar.processes.process import tail
from jumar.processes.usage import USAGE_FIELDS, check_usage_map, merge_usage, parse_score, parse_usage, usage_from_output

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
TEXT = st.text(alphabet=st.characters(codec="utf-8") | st.sampled_from("`#|\n\r\t\x1b\x00\u202e~$"), max_size=200)
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


# ----------------------------------------------------------------------------------------------------------- usage


@given(st.dictionaries(st.sampled_from(USAGE_FIELDS) | st.text(max_size=5), JSON))
def test_usage_is_right_or_unknown(values):
    reading = parse_usage(values, where="x")
    usage = reading.usage
    noted = {note.removeprefix("x: ").partition(" ")[0] for note in reading.notes}
    assert len(noted) == len(reading.notes)
    for name in USAGE_FIELDS:
        found, said = getattr(usage, name), values.get(name)
        if name == "tokens_used" and (said is None or name in noted):
            parts = (usage.input_tokens, usage.output_tokens)
            assert found == (None if None in parts else sum(part for part in parts if part is not None))
        elif said is None or name in noted:
            assert None is found
        elif isinstance(said, str):
            assert found == (said or None), "empty text says nothing"
        elif name == "blocked":
            assert found == ("the generator says that it is blocked" if said else None)
        elif name == "retry_after":
            assert found == min(said, 604_800), "a week at most"
        else:
            assert found == said
    for found in (usage.tokens_used, usage.input_tokens, usage.output_tokens):
        assert found is None or (type(found) is int and found >= 0)
    assert usage.token_cost_usd is None or (math.isfinite(usage.token_cost_usd) and usage.token_cost_usd >= 0)
    assert usage.completed is None or type(usage.completed) is bool
    assert usage == Usage.from_json(_fields(usage)), "it survives its record"


def _fields(usage: Usage):
    from jumar.core.codec import Fields

    return Fields(json.loads(json.dumps(usage.to_json())), "usage")


@given(st.lists(JSON | st.text(max_size=30), max_size=6), st.sampled_from(["\n", "\r\n", "\nnoise\n", "\n\n"]), st.booleans())
def test_usage_from_output_is_what_a_slow_search_finds(parts, separator, indented):
    paths = check_usage_map({"tokens": "a.b", "cost": "0", "model": "x"})
    lines = [part if isinstance(part, str) else json.dumps(part, indent=2 if indented else None) for part in parts]
    documents = [json.loads(json.dumps(part)) for part in parts if isinstance(part, dict | list)]
    stdout = separator.join(lines)
    if any(isinstance(part, str) and re.search(r"[\[{]", part) for part in parts):
        usage_from_output(stdout, paths)  # text that looks like JSON: only that nothing is raised
        return

    def last(*path):
        for document in reversed(documents):
            current = document
            for step in path:
                if isinstance(current, dict):
                    current = current.get(str(step))
                elif isinstance(current, list) and isinstance(step, int):
                    current = current[step] if step < len(current) else None
                else:
                    current = None
            if current is not None:
                return current
        return None

    found = {"tokens_used": last("a", "b"), "token_cost_usd": last(0), "model": last("x")}
    assert parse_usage(found, where="generator output").usage == usage_from_output(stdout, paths).usage


USAGES = st.builds(
    Usage,
    tokens_used=st.none() | st.integers(0, 10**9),
    input_tokens=st.none() | st.integers(0, 10**9),
    output_tokens=st.none() | st.integers(0, 10**9),
    token_cost_usd=st.none() | st.floats(0, 100),
    model=st.none() | st.text(max_size=5),
    completed=st.none() | st.booleans(),
)


@given(USAGES, USAGES)
def test_merging_keeps_what_the_first_knows(first, second):
    merged = merge_usage(first, second)
    for name in USAGE_FIELDS:
        if getattr(first, name) is not None:
            assert getattr(first, name) == getattr(merged, name)
        elif getattr(second, name) is not None:
            assert getattr(second, name) == getattr(merged, name)
        elif name != "tokens_used":
            assert None is getattr(merged, name)


# ---------------------------------------------------------------------------------------------------------- scores


@given(st.floats())
@example(1.0000000000000002)
@example(-0.0)
@example(5e-324)
def test_a_printed_number_is_a_score_exactly_when_it_lies_in_the_unit_interval(number):
    for text in (repr(number), f"noise\n{number!r}\n", json.dumps({"score": number})):
        value = parse_score(text)
        if 0.0 <= number <= 1.0:
            assert (abs(number), None) == (value.score, value.invalid)
        else:
            assert None is value.score
            assert value.invalid


@given(TEXT | st.text() | JSON.map(json.dumps))
def test_whatever_is_printed_there_is_a_score_or_a_reason(stdout):
    value = parse_score(stdout)
    if value.score is None:
        assert value.invalid
    else:
        assert value.invalid is None
        assert 0.0 <= value.score <= 1.0


@given(st.integers(0, 10**6), st.none() | st.integers(0, 1_000), st.none() | st.integers(1, 10**5))
def test_length_is_a_score_and_never_better_outside(count, least, most):
    if least is not None and most is not None and least > most:
        least, most = most, least
    score = length_score(count, least, most)
    assert 0.0 <= score <= 1.0
    inside = (least is None or count >= least) and (most is None or count <= most)
    assert score == 1.0 or not inside
    if most is not None and count >= most:
        assert length_score(count + 1, least, most) <= score


@given(st.floats(-100, 100), st.floats(-20, 20), st.floats(0, 20), st.floats(0.1, 20))
def test_the_band_is_a_score(grade, low, width, falloff):
    score = band_score(grade, low, low + width, falloff)
    assert 0.0 <= score <= 1.0
    assert (score == 1.0) >= (low <= grade <= low + width)


@given(TEXT)
def test_any_text_can_be_counted(text):
    counts = count_text(text)
    assert 0 <= counts.sentences <= counts.words
    assert counts.words <= counts.letters + counts.digits or counts.words == 0 or not text.isascii()
    assert all(1 <= heading.level <= 6 for heading in headings(text))
    assert all(block.strip() for block in prose_blocks(text))


# ---------------------------------------------------------------------------------------------------------- output


@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(1, 60))
def test_a_stream_is_whole_up_to_its_cap_and_then_its_beginning_and_end(chunks, cap):
    stream = _Stream(cap)
    for chunk in chunks:
        stream.add(chunk)
    whole = b"".join(chunks)
    assert len(whole) == stream.total
    assert max(0, len(whole) - cap) == stream.dropped
    if not stream.dropped:
        assert whole.decode("utf-8", "backslashreplace") == stream.text()
    else:
        head, end = cap - cap // 2, cap // 2
        assert whole[:head] + whole[len(whole) - end :] == bytes(stream._first) + stream.rest()
        assert f"[jumar: {len(whole) - cap:,} bytes left out here]" in stream.text()


SECRET = b"correct-horse-battery"
PIECES = st.sampled_from([b"a line\n", b"x" * 40, b"\n", SECRET, SECRET, b"0123456789" * 30])


@given(st.lists(st.tuples(st.booleans(), PIECES, st.integers(0, 21)), max_size=60), st.integers(1, 400), st.booleans())
def test_a_long_output_is_its_beginning_and_its_end_wherever_secrets_stand(pieces, cap, known):
    redactor = redaction.Redactor({"T": SECRET.decode()} if known else {}, shapes=False)
    printed = [(which, chunk) for which, piece, cut in pieces for chunk in (piece[:cut], piece[cut:]) if chunk]
    with (
        tempfile.TemporaryDirectory() as directory,
        mock.patch.object(redaction, "_HELD", 32),  # so that most of it goes by
        mock.patch("jumar.processes.captured_output.TAIL", 64),
        mock.patch("jumar.processes.captured_output.current", return_value=redactor),
    ):
        log = Path(directory) / "log"
        output = CapturedOutput(log, cap, cap)
        for which, chunk in printed:
            (output.stdout if which else output.stderr)(chunk)
        output.finish(None)
        shown = (output.out.text(), output.err.text(), output.merged.tail_text(), log.read_text())
    if known:
        # what a cut leaves of a mark is no part of the secret
        assert not any(part in text for text in shown for part in ("corr", "hors", "batt"))
        return
    out, err, both = (
        b"".join(chunk for which, chunk in printed if which in wanted) for wanted in ({True}, {False}, {True, False})
    )
    for whole, stream in ((out, output.out), (err, output.err), (both, output.merged)):
        assert (len(whole), max(0, len(whole) - cap)) == (stream.total, stream.dropped)
        assert whole.endswith(stream.rest())
        assert len(stream.rest()) == min(stream._end, max(0, len(whole) - stream._head))
    assert both[-64:].decode() == shown[2]
    assert both[: output.merged._head].decode() == shown[3][: output.merged._head]


@given(st.text(max_size=300), st.integers(1, 100))
def test_a_tail_is_the_end(text, limit):
    end = tail(text, limit)
    assert text.endswith(end)
    assert len(end) <= limit
    assert len(end) >= min(len(text), limit // 2)


@given(st.lists(TEXT, max_size=5))
def test_error_lines_are_few_short_and_different(outputs):
    found = error_lines(*outputs, *("Error: x" for _ in outputs))
    assert len(found) <= MAX_ERRORS
    assert len(found) == len(set(found))
    assert all(len(line) <= 300 and "\n" not in line for line in found)


NAMES = st.from_regex(r"[a-z_][a-z_/]{0,10}\.py::[A-Za-z_:]{0,9}[a-z](\[[a-z0-9 .]{1,8}\])?", fullmatch=True)


@given(st.lists(NAMES, max_size=8), st.sampled_from(["", " - AssertionError: x - y", "  "]), st.sampled_from(["FAILED", "ERROR"]))
def test_every_test_of_a_summary_is_found(names, reason, word):
    text = "".join(f"{word} {name.strip()}{reason}\nsomething else\n" for name in names)
    assert [name.strip() for name in names] == [match["id"] for match in re.finditer(PYTEST_FAILURES, text, re.MULTILINE)]


# ---------------------------------------------------------------------------------------------------------- prompts


@given(TEXT)
def test_nothing_inside_can_close_a_fence(text):
    lines = fenced(text).split("\n")
    fence = lines[0]
    assert re.fullmatch(r"`{3,}", fence)
    assert fence == lines[-1]
    assert [] == [line for line in lines[1:-1] if re.match(rf"\s*{fence}", line)]
    assert not UNSAFE.search("\n".join(lines))


@given(TEXT, TEXT, TEXT, TEXT)
def test_a_prompt_shows_no_control_character_and_one_objective(name, output, reason, reflection):
    last = IterationRecord(
        iteration_number=1,
        timestamp="t",
        quality_score=50.0,
        dimensions={name: 0.5},
        checks=(CheckResult(name=name, passed=False, exit_code=1, output_tail=output, failures=(name,)),),
        readings=(ScoreReading(dimension=name, score=0.5, reason=reason),),
        reflections=(reflection,),
        status_reason=reason,
    )
    prompt = render_prompt(objective="x", iteration=2, last=last, history=[last.view()], best=last.view())
    assert not UNSAFE.search(prompt)
    outside, fence = [], ""
    for line in prompt.split("\n"):
        if not fence and (run := re.match(r"`{3,}(?=$)", line)):
            fence = run[0]
        elif fence and line == fence:
            fence = ""
        elif not fence:
            outside.append(line)
    assert ["# Objective", "# This iteration"] == [line for line in outside if re.match("# ", line)]
    assert "" == fence
    feedback = json.loads(render_feedback(loop_id="l", iteration=2, last=last))
    assert output == feedback["last"]["checks"][0]["output_tail"]


# ------------------------------------------------------------------------------------------------------ environment


@given(
    st.dictionaries(
        st.from_regex(r"[A-Z_]{1,12}", fullmatch=True) | st.sampled_from(["PATH", "OPENAI_API_KEY", "NPM_TOKEN"]),
        st.text(max_size=3),
    )
)
def test_a_variable_passes_or_is_left_out(base):
    passed = build_environment(base, (), {})
    assert sorted(base) == sorted([*passed, *left_out(base, ())])
    assert {name: base[name] for name in passed} == passed
    assert build_environment(base, ("*",), {}) == base
    assert build_environment(base, ("*", "!*"), {}) == {}
