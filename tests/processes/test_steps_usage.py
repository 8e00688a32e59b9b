"""What a generator says of its own cost, and what it says wrongly."""

from __future__ import annotations

import json
import os

import pytest

from jumar.errors import ConfigError
from jumar.model import Usage
from jumar.processes.usage import check_usage_map, merge_usage, parse_usage, read_usage_file, usage_from_output


def test_a_complete_usage_file(tmp_path):
    values = {
        "tokens_used": 12,
        "input_tokens": 5,
        "output_tokens": 6,
        "token_cost_usd": 0.25,
        "model": "m",
        "session_id": "s",
        "completed": True,
        "blocked": "needs a key",
    }
    path = tmp_path / "usage.json"
    path.write_text(json.dumps({**values, "of_its_own": [1]}))
    reading = read_usage_file(path)
    assert (Usage(**values), ()) == (reading.usage, reading.notes)


def test_what_is_not_reported_is_unknown_and_no_mistake(tmp_path):
    assert (Usage(), ()) == (read_usage_file(tmp_path / "none").usage, read_usage_file(tmp_path / "none").notes)
    assert parse_usage({}, where="x").usage == parse_usage(dict.fromkeys(["model", "completed"]), where="x").usage == Usage()


def test_tokens_are_summed_only_when_both_parts_are_known():
    assert 7 == parse_usage({"input_tokens": 3, "output_tokens": 4}, where="x").usage.tokens_used
    assert 9 == parse_usage({"tokens_used": 9, "input_tokens": 3, "output_tokens": 4}, where="x").usage.tokens_used
    assert None is parse_usage({"input_tokens": 3}, where="x").usage.tokens_used
    assert None is parse_usage({"input_tokens": 3, "output_tokens": -4}, where="x").usage.tokens_used


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("tokens_used", -1, "-1"),
        ("tokens_used", 1.5, "1.5"),
        ("tokens_used", True, "True"),
        ("tokens_used", "12", "'12'"),
        pytest.param("tokens_used", 10**400, "too large a number", id="huge"),
        ("tokens_used", float("nan"), "nan"),
        ("output_tokens", float("inf"), "inf"),
        ("token_cost_usd", -0.01, "-0.01"),
        ("token_cost_usd", float("nan"), "nan"),
        ("token_cost_usd", "free", "'free'"),
        ("token_cost_usd", [1], "a list"),
        ("model", 3, "3"),
        ("completed", "yes", "'yes'"),
        ("completed", 1, "1"),
        ("blocked", {}, "a dict"),
    ],
)
def test_an_unusable_value_is_unknown_with_a_note_and_the_others_stay(name, value, shown):
    reading = parse_usage({name: value, "session_id": "s"}, where="usage file")
    assert Usage(session_id="s") == reading.usage
    assert 1 == len(reading.notes)
    assert reading.notes[0].startswith(f"usage file: {name} is {shown}, which is not ")
    assert reading.notes[0].endswith("; it counts as unknown")


def test_whole_numbers_may_be_written_as_decimals_and_blocked_as_a_flag():
    assert 5000 == parse_usage({"tokens_used": 5000.0}, where="x").usage.tokens_used
    assert 0.0 == parse_usage({"token_cost_usd": 0}, where="x").usage.token_cost_usd
    assert "the generator says that it is blocked" == parse_usage({"blocked": True}, where="x").usage.blocked
    assert Usage() == parse_usage({"blocked": False}, where="x").usage


@pytest.mark.parametrize(
    ("content", "note"),
    [
        (b"", "usage file: not JSON"),
        (b"{", "usage file: not JSON"),
        (b"\xff\xfe", "usage file: not JSON"),
        (b"[1]", "usage file: not a JSON object"),
        (b"[" * 100_000, "usage file: not JSON"),
        (b" " * (1 << 20) + b"{}", "usage file: cannot be read: it is larger than 1 MiB"),
    ],
)
def test_a_file_that_is_no_usage(content, note, tmp_path):
    path = tmp_path / "usage.json"
    path.write_bytes(content)
    assert (Usage(), (note,)) == (read_usage_file(path).usage, read_usage_file(path).notes)


def test_a_fifo_or_directory_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "directory").mkdir()
    assert ("usage file: cannot be read: it is not a regular file",) == read_usage_file(tmp_path / "fifo").notes
    assert ("usage file: cannot be read: it is not a regular file",) == read_usage_file(tmp_path / "directory").notes


# ------------------------------------------------------------------------------------------------------ from output


def test_a_usage_map_with_short_and_long_names():
    paths = check_usage_map({"cost": "total_cost_usd", "tokens": "usage.output_tokens", "model": "models.-1.name"})
    expected = {"token_cost_usd": ("total_cost_usd",), "tokens_used": ("usage", "output_tokens"), "model": ("models", -1, "name")}
    assert expected == {name: path.terms[0] for name, path in paths.items()}
    assert {(1, False)} == {(len(path.terms), path.every) for path in paths.values()}


@pytest.mark.parametrize(
    ("usage_map", "message"),
    [
        ({"costs": "a"}, r"unknown field 'costs' \(did you mean 'cost'\?\)"),
        ({"cost": ""}, "'cost' has the path ''"),
        ({"cost": "a..b"}, r"'cost' has the path 'a\.\.b'"),
        ({"cost": "a", "token_cost_usd": "b"}, "'token_cost_usd' and its other name are both set"),
    ],
)
def test_a_usage_map_that_is_wrong(usage_map, message):
    with pytest.raises(ConfigError, match=message):
        check_usage_map(usage_map)


PATHS = check_usage_map({"cost": "total_cost_usd", "tokens": "usage.output_tokens"})
FINAL = {"type": "result", "total_cost_usd": 0.5, "usage": {"output_tokens": 9}}


@pytest.mark.parametrize(
    "stdout",
    [
        json.dumps(FINAL),
        json.dumps(FINAL, indent=2),
        "\n".join(json.dumps(each) for each in ({"total_cost_usd": 0.1}, FINAL, {"type": "bye"})),
        f"Thinking… {{not json\n{json.dumps(FINAL, indent=2)}\n[done\n",
        f'{json.dumps(FINAL)}\n[jumar: 12 bytes left out here]\n{{"cut',
    ],
)
def test_the_last_document_that_has_the_path_counts(stdout):
    reading = usage_from_output(stdout, PATHS)
    assert (Usage(tokens_used=9, token_cost_usd=0.5), ()) == (reading.usage, reading.notes)


@pytest.mark.parametrize(
    "later",
    ['{"total_cost_usd": 0.0001, "usage": {"output_tokens": 0}}', '{"total_cost_usd": "none"}', '{"total_cost_usd": true}'],
)
def test_what_is_printed_after_the_program_takes_nothing_off(later):
    assert Usage(tokens_used=9, token_cost_usd=0.5) == usage_from_output(f"{json.dumps(FINAL)}\n{later}\n", PATHS).usage


def test_each_field_is_looked_for_by_itself():
    stdout = '{"total_cost_usd": 1}\n{"usage": {"output_tokens": 4}}\n{"usage": null}\n'
    assert Usage(tokens_used=4, token_cost_usd=1.0) == usage_from_output(stdout, PATHS).usage


def test_a_list_at_the_top_is_gone_through_by_number():
    paths = check_usage_map({"cost": "-1.cost", "tokens": "0.tokens", "model": "9.name"})
    reading = usage_from_output('[{"tokens": 3}, {"cost": 2}]', paths)
    assert Usage(tokens_used=3, token_cost_usd=2.0) == reading.usage
    assert ("generator output: nothing found at '9.name' for model; it counts as unknown",) == reading.notes


@pytest.mark.parametrize(
    ("path", "model"),
    [("1.x", "b"), ("2.x", None), ("-1.x", "b"), ("-2.x", "a"), ("-3.x", None), ("x", None), ("0.x.y", None), ("0.x.0", None)],
)
def test_the_ends_of_a_list(path, model):
    assert model == usage_from_output('[{"x": "a"}, {"x": "b"}]', check_usage_map({"model": path})).usage.model


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("tokens_used", "a number of tokens"),
        ("token_cost_usd", "a number of dollars"),
        ("completed", "true or false"),
        ("model", "text"),
        ("blocked", "text"),
    ],
)
def test_a_note_says_what_was_wanted(name, wanted):
    expected = f"usage file: {name} is a list, which is not {wanted}; it counts as unknown"
    assert (expected,) == parse_usage({name: []}, where="usage file").notes


def test_the_largest_number_that_is_believed():
    assert 10**15 == parse_usage({"tokens_used": 10**15}, where="x").usage.tokens_used
    assert None is parse_usage({"tokens_used": 10**15 + 1}, where="x").usage.tokens_used
    assert 500 == len(parse_usage({"model": "m" * 501}, where="x").usage.model or "")


def test_an_unusable_value_in_the_output_is_a_note():
    reading = usage_from_output('{"total_cost_usd": NaN, "usage": {"output_tokens": "many"}}', PATHS)
    assert Usage() == reading.usage
    assert 2 == len(reading.notes)


# ------------------------------------------------------------------------------------------------------------- sums

STEPS = '{"cost": 0.5, "t": {"in": 1, "out": 2}}\nworking…\n{"note": "no cost"}\n{"cost": 0.25, "t": {"in": 10, "out": 20}}\n'


@pytest.mark.parametrize(
    ("path", "tokens"),
    [
        ("t.in", 10),
        ("t.in + t.out", 30),
        ("sum:t.in", 11),
        ("sum:t.in + t.out", 33),
        ("sum:t.*", 33),
        ("t.*", 30),
        ("t.* + t.in", 40),
        ("sum: t.in", 11),
    ],
)
def test_numbers_are_added_within_a_document_and_over_all(path, tokens):
    reading = usage_from_output(STEPS, check_usage_map({"tokens": path, "cost": "sum:cost"}))
    assert (Usage(tokens_used=tokens, token_cost_usd=0.75), ()) == (reading.usage, reading.notes)


@pytest.mark.parametrize("path", ["t.in + t.none", "none.*", "sum:none", "t.in.*", "t.*.none", "cost.*"])
def test_a_sum_of_which_a_part_is_missing_is_unknown(path):
    reading = usage_from_output(STEPS, check_usage_map({"tokens": path}))
    assert Usage() == reading.usage
    assert (f"generator output: nothing found at '{path}' for tokens_used; it counts as unknown",) == reading.notes


@pytest.mark.parametrize("members", ["{}", "[]"])
def test_a_sum_over_no_members_is_nothing_and_known(members):
    found = usage_from_output(f'{{"models": {members}}}', check_usage_map({"tokens": "models.*.tokens"}))
    assert (Usage(tokens_used=0), ()) == (found.usage, found.notes)


def test_stars_in_lists_and_in_stars():
    paths = check_usage_map({"tokens": "runs.*.models.*.n"})
    stdout = '{"runs": [{"models": {"a": {"n": 1}, "b": {"n": 2}}}, {"models": {"c": {"n": 4}, "d": {"other": 8}}}]}'
    assert 7 == usage_from_output(stdout, paths).usage.tokens_used


@pytest.mark.parametrize("bad", ["-1", '"3"', "true", "NaN", "Infinity", "[1]", "1e16"])
def test_one_bad_number_makes_the_sum_unknown(bad):
    for path in ("sum:n", "n + m", "*"):
        stdout = f'{{"n": 5, "m": {bad}}}' if path != "sum:n" else f'{{"n": 5}}\n{{"n": {bad}}}'
        reading = usage_from_output(stdout, check_usage_map({"cost": path}))
        assert Usage() == reading.usage
        assert 1 == len(reading.notes)
        assert "which is not a number of dollars; it counts as unknown" in reading.notes[0]


def test_a_sum_of_many_decimals_is_exact():
    assert 1.0 == usage_from_output('{"c": 0.1}\n' * 10, check_usage_map({"cost": "sum:c"})).usage.token_cost_usd


def test_a_sum_goes_over_more_documents_than_a_search_for_the_last():
    stdout = '{"n": 1}\n' * 30_000
    assert 30_000 == usage_from_output(stdout, check_usage_map({"tokens": "sum:n"})).usage.tokens_used


def test_a_sum_over_output_of_which_a_part_is_missing_is_unknown_and_other_fields_stay():
    paths = check_usage_map({"cost": "sum:cost", "tokens": "t.in"})
    reading = usage_from_output(STEPS, paths, whole=False)
    assert Usage(tokens_used=10) == reading.usage
    expected = "generator output: 'sum:cost' cannot be summed, because a part of the output was left out"
    assert (f"{expected}; token_cost_usd counts as unknown",) == reading.notes


def test_a_sum_over_what_is_hardly_json_is_unknown():
    reading = usage_from_output(STEPS + "{no\n" * 2_001, check_usage_map({"cost": "sum:cost"}))
    assert Usage() == reading.usage
    assert "because the output is not JSON, one document a line" in reading.notes[0]
    assert 0.75 == usage_from_output(STEPS + "{no\n" * 2_000, check_usage_map({"cost": "sum:cost"})).usage.token_cost_usd


@pytest.mark.parametrize("name", ["model", "session", "completed", "blocked"])
@pytest.mark.parametrize("path", ["sum:a", "a + b", "a.*"])
def test_what_is_no_number_cannot_be_added(name, path):
    with pytest.raises(ConfigError, match=f"'{name}' has the path '.*', which adds up numbers"):
        check_usage_map({name: path})


@pytest.mark.parametrize("path", ["sum:", "a + ", " + a", "a +  + b", "a..b + c", "sum:a."])
def test_an_empty_part_of_a_sum(path):
    with pytest.raises(ConfigError, match="has the path"):
        check_usage_map({"cost": path})


def test_without_a_map_nothing_is_looked_for():
    assert (Usage(), ()) == (usage_from_output(json.dumps(FINAL), {}).usage, usage_from_output(json.dumps(FINAL), {}).notes)


def test_the_first_source_wins_field_by_field():
    merged = merge_usage(Usage(token_cost_usd=1.0, input_tokens=1), Usage(token_cost_usd=2.0, output_tokens=2, completed=True))
    assert Usage(token_cost_usd=1.0, input_tokens=1, output_tokens=2, tokens_used=3, completed=True) == merged


def test_a_cost_has_two_names_and_a_missed_one_is_noted():
    assert 0.5 == parse_usage({"cost_usd": 0.5}, where="usage file").usage.token_cost_usd
    assert 0.2 == parse_usage({"cost_usd": 0.5, "token_cost_usd": 0.2}, where="usage file").usage.token_cost_usd
    assert 0.5 == parse_usage({"cost_usd": 0.5, "token_cost_usd": None}, where="usage file").usage.token_cost_usd
    found = parse_usage({"cost": 0.5, "usd": 1, "token_count": 7, "colour": "red", "model": "m"}, where="usage file")
    assert Usage(model="m") == found.usage
    assert (
        "usage file: 'cost' is no known key and is not counted (did you mean 'cost_usd'?)",
        "usage file: 'usd' is no known key and is not counted (did you mean 'token_cost_usd'?)",
        "usage file: 'token_count' is no known key and is not counted (did you mean 'tokens_used'?)",
    ) == found.notes
