"""``jumar agree``: the figures against published examples, definitions and a second library; what is printed and refused."""

from __future__ import annotations

import json
import math
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import call, unwrapped
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from jumar.errors import ConfigError, ItemError
from jumar.judging.agreement import weighted_kappa
from jumar.judging.raters.figures import compare_raters, interval_alpha
from jumar.judging.raters.ratings import read_raters

N = math.nan
# four observers, twelve units: the worked example of Krippendorff, Computing Krippendorff's Alpha-Reliability (2011)
OBSERVERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, N, N, N],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, N, 3],
        [N, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, N],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, N],
    ]
)
SCORES = st.integers(1, 5)
TWO = st.lists(st.tuples(SCORES, SCORES), min_size=2, max_size=40)


def rows(name: str, **scores: Any) -> Path:
    path = Path(name)
    path.write_text("".join(json.dumps({"id": item, "gestalt": score}) + "\n" for item, score in scores.items()))
    return path


def agreement(*files: Path, **options: Any) -> Any:
    return call("agree", *files, "--json", *(part for name, value in options.items() for part in (f"--{name}", value))).document


# --------------------------------------------------------------------------------------------------------- the figures


def test_alpha_is_that_of_the_published_example():
    assert pytest.approx(0.849, abs=5e-4) == interval_alpha(OBSERVERS)


@given(st.lists(st.lists(st.none() | SCORES, min_size=3, max_size=3), min_size=1, max_size=15))
def test_alpha_is_what_its_definition_says(items: list[list[int | None]]):
    """Pairs within items against pairs of all ratings, one after the other."""
    units = [[score for score in item if score is not None] for item in items]
    units = [unit for unit in units if len(unit) > 1]
    together = [score for unit in units for score in unit]
    pairs = [(a - b) ** 2 for a, b in combinations(together, 2)]
    expected = None
    if sum(pairs):
        observed = sum(2 * sum((a - b) ** 2 for a, b in combinations(unit, 2)) / (len(unit) - 1) for unit in units)
        expected = 1 - observed / len(together) / (sum(pairs) / len(pairs))
    table = np.array([[N if score is None else score for score in item] for item in items], dtype=float).T
    assert (None if expected is None else pytest.approx(expected, abs=1e-9)) == interval_alpha(table)


@given(TWO)
def test_kappa_is_that_of_scikit_learn(pairs: list[tuple[int, int]]):
    first, second = np.array(pairs, dtype=float).T
    if np.ptp(first) and np.ptp(second):
        expected = cohen_kappa_score(first, second, labels=[1, 2, 3, 4, 5], weights="quadratic")
        assert pytest.approx(expected, abs=1e-9) == weighted_kappa(first, second)
    else:
        assert weighted_kappa(first, second) is None


@given(st.lists(SCORES, min_size=2, max_size=30), st.randoms(use_true_random=False))
def test_kappa_of_equal_margins_is_the_product_moment_correlation(scores: list[int], random: Any):
    """Cohen (1968): with quadratic weights and equal marginal distributions kappa is Pearson's correlation."""
    first, second = np.array(scores, dtype=float), np.array(random.sample(scores, len(scores)), dtype=float)
    if np.ptp(first):
        assert pytest.approx(np.corrcoef(first, second)[0, 1], abs=1e-9) == weighted_kappa(first, second)


def test_shares_bias_and_confusion_of_two():
    found = agreement(rows("a.jsonl", x=1, y=2, z=4, w=5), rows("b.jsonl", x=1, y=3, z=4, w=3))
    assert (0.5, 0.75, -0.25) == (found["exact"], found["within_one"], found["bias"])
    assert {
        "labels": [1, 2, 3, 4, 5],
        "counts": [[1, 0, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 1, 0], [0, 0, 1, 0, 0]],
    } == found["confusion"]
    assert [("w", 2), ("y", 1)] == [(item["id"], item["difference"]) for item in found["worst"]]


def test_repeats_count_by_their_median_and_are_the_noise_of_a_rater():
    found = agreement(rows("a.jsonl", x=[1, 2, 5], y=[4, 4], z=3), rows("b.jsonl", x=2, y=4, z=3))
    assert 1.0 == found["exact"]
    assert [2, None] == [rater["noise"] and rater["noise"]["items"] for rater in found["raters"]]


def test_one_file_of_lists_is_a_rater_a_place():
    found = agreement(rows("a.jsonl", x=[1, 2], y=[4, 4, 5], z=[3, 1]))
    assert [("rater 1", 3), ("rater 2", 3), ("rater 3", 1)] == [(rater["name"], rater["items"]) for rater in found["raters"]]
    assert found["confusion"] is None
    assert [3, 1, 1] == [pair["items"] for pair in found["pairs"]]
    assert found["bias"] is None


def test_more_than_two_raters_are_judged_by_the_mean_of_their_pairs():
    found = agreement(rows("a.jsonl", x=1, y=5, z=3), rows("b.jsonl", x=1, y=4, z=3), rows("c.jsonl", x=2, y=4, z=3))
    assert pytest.approx((2 / 3 + 1 / 3 + 2 / 3) / 3) == found["exact"]
    assert pytest.approx(sum(pair["kappa_weighted"] for pair in found["pairs"]) / 3) == found["kappa_weighted"]
    assert pytest.approx([1 / 6, -1 / 3, 1 / 6]) == [rater["bias"] for rater in found["raters"]]


def test_who_rates_unlike_the_others_is_named_where_these_agree():
    files = [
        rows(f"{name}.jsonl", **dict(zip("uvwxyz", scores, strict=True)))
        for name, scores in (("a", (1, 2, 3, 4, 5, 1)), ("b", (1, 2, 3, 4, 4, 1)), ("odd", (5, 1, 5, 1, 2, 4)))
    ]
    found = agreement(*files)
    assert [rater["alpha_without"] for rater in found["raters"]] == [
        agreement(*(file for file in files if file != without))["alpha"] for without in files
    ]
    assert "Without odd alpha is 0.9" in unwrapped(call("agree", *files, check=0).out)
    two = call("agree", *files[1:], check=0).out
    assert "Without" not in two
    assert [None, None] == [rater["alpha_without"] for rater in agreement(*files[1:])["raters"]]


def test_groups_and_texts_are_taken_from_whichever_file_has_them(tmp_path: Path):
    full = [{"id": str(n), "group": str(n // 4), "gestalt": 1 + n % 5, "text": f"text {n}"} for n in range(40)]
    bare = [{"id": one["id"], "gestalt": 6 - one["gestalt"]} for one in full]
    for name, lines in (("full", full), ("bare", bare)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    one, other = (agreement(*(tmp_path / f"{name}.jsonl" for name in order)) for order in (("full", "bare"), ("bare", "full")))
    assert (10, 10) == (one["groups"], other["groups"])
    assert one["intervals"]["alpha"] == other["intervals"]["alpha"]
    assert [each["text"] for each in one["worst"]] == [each["text"] for each in other["worst"]]


def test_a_group_that_no_record_has_is_refused_unless_nobody_named_it(tmp_path: Path):
    files = [rows(str(tmp_path / name), a=1, b=2, c=4) for name in ("one.jsonl", "other.jsonl")]
    assert 3 == agreement(*files)["groups"]
    assert "--group documnt: no record that has a score has this key" in unwrapped(
        call("agree", *files, "--group", "documnt", check=2).err
    )


def test_a_null_in_a_list_is_a_rating_that_was_not_given(tmp_path: Path):
    path = tmp_path / "observers.jsonl"
    units = [[None if math.isnan(score) else score for score in unit] for unit in OBSERVERS.T.tolist()]
    path.write_text("".join(json.dumps({"id": n, "judge_scores": unit}) + "\n" for n, unit in enumerate(units)))
    found = agreement(path)
    assert (pytest.approx(0.849, abs=5e-4), [9, 10, 10, 11]) == (found["alpha"], [rater["items"] for rater in found["raters"]])
    repeats = read_raters([path, rows("other.jsonl", **{"1": 2, "2": 3, "3": 3})], keys=["judge_scores", "gestalt"])
    assert (2.0, 3.0) == (repeats[0].single["1"], repeats[0].single["9"] - 2)
    path.write_text('{"id": 1, "judge_scores": [3, null]}\n{"id": 2, "judge_scores": [null, 3]}\n')
    assert "no item that rater 1 scored has a score of another rater" in unwrapped(call("agree", path, check=2).err)


def test_intervals_go_by_group_and_hold_the_figure():
    lines = [{"id": str(n), "group": str(n // 4), "a": 1 + n % 5, "b": 1 + (n + n % 3) % 5} for n in range(200)]
    for name in "ab":
        Path(f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    grouped = agreement(Path("a.jsonl"), Path("b.jsonl"), key="a")
    assert 50 == grouped["groups"]
    found = compare_raters(read_raters([Path("a.jsonl"), Path("b.jsonl")], keys=["a", "b"]))
    for name in ("exact", "within_one", "kappa_weighted", "alpha", "spearman", "bias"):
        interval = found.intervals[name]
        assert interval is not None
        assert interval.low <= getattr(found, name) <= interval.high, name
    assert found == compare_raters(read_raters([Path("a.jsonl"), Path("b.jsonl")], keys=["a", "b"]))


def test_the_two_judges_of_an_evaluation_are_two_keys_of_one_file():
    lines = [{"id": str(n), "cheap": 1 + n % 5, "expensive": 1 + n % 4} for n in range(20)]
    Path("scores.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = call("agree", "scores.jsonl", "scores.jsonl", "--key", "cheap", "--key", "expensive", "--json").document
    assert ["cheap", "expensive"] == [rater["name"] for rater in found["raters"]]


def test_raters_who_order_alike_with_other_points_are_told_so():
    paths = rows("a.jsonl", v=1, w=2, x=3, y=4, z=5), rows("b.jsonl", v=1, w=1.5, x=2, y=2.5, z=3)
    done = call("agree", *paths)
    assert "The raters rank items alike (Spearman 1.00) and give other points (alpha" in done.out
    assert "<dt>bias: b less a</dt><dd>-1.00" in call("agree", *paths, "--format", "html").out


def test_a_scale_is_mapped_to_one_to_five():
    found = call(
        "agree", rows("a.jsonl", x=1, y=5, z=3), rows("b.jsonl", x=0, y=100, z=50), "--scale", "1,5", "--scale", "0,100", "--json"
    )
    assert 1.0 == found.document["exact"]


# ------------------------------------------------------------------------------------------------------ what is told


def test_items_that_one_rater_has_alone_are_left_out_and_told():
    done = call("agree", rows("a.jsonl", x=1, y=2, z=3), rows("b.jsonl", x=1, y=2, q=4, r=5))
    assert "2 items in 2 groups, 2 raters" in done.out
    assert "1 item of a is rated by nobody else, and left out: z" in done.err
    assert "2 items of b are rated by nobody else, and left out: q, r" in done.err


def test_a_constant_rater_has_neither_kappa_nor_rank():
    done = call("agree", rows("a.jsonl", x=3, y=3, z=3), rows("b.jsonl", x=1, y=2, z=3))
    assert "a gave one score to everything, so kappa and rank correlation are undefined" in done.words
    found = agreement(Path("a.jsonl"), Path("b.jsonl"))
    assert (None, None) == (found["kappa_weighted"], found["spearman"])


@pytest.mark.parametrize(
    ("shift", "says"), [(0, "agree well enough to take one for the other"), (2, "Don't take one rater for the other")]
)
def test_the_last_line_says_what_to_do(shift: int, says: str):
    first = {f"i{n}": 1 + n % 5 for n in range(60)}
    second = {f"i{n}": 1 + (n + shift * (n % 3)) % 5 for n in range(60)}
    assert says in call("agree", rows("a.jsonl", **first), rows("b.jsonl", **second)).words


@pytest.mark.parametrize(
    ("lines", "options", "says"),
    [
        (('{"id": "x", "gestalt": 1}', '{"id": "y", "gestalt": 2}'), ("c.jsonl",), "c.jsonl: no such file"),
        (('{"id": "p", "gestalt": 1}', '{"id": "q", "gestalt": 2}'), (), "a shares 0 items with b"),
        (('{"id": "x", "gestalt": "good"}',), (), "b.jsonl, line 1: 'gestalt' should be a finite number"),
        (('{"id": "x", "gestalt": NaN}',), (), "b.jsonl, line 1"),
        (('{"id": "x", "gestalt": true}',), (), "should be a finite number"),
        (('{"gestalt": 3}',), (), "b.jsonl, line 1: 'id' should be"),
        (('{"id": "x", "gestalt": 3}', '{"id": "x", "gestalt": 3}'), (), "the id 'x' is in the file twice"),
        (('{"id": "x", "score": 3}',), (), "no record has a score under 'gestalt' or 'judge_scores'"),
        (('{"id": "x", "gestalt": 3}',), ("--key", "score"), "no record has a score under 'score'"),
        (('{"id": "x", "gestalt": 3}',), ("--key", "a b"), "--key a b:"),
        (('{"id": "x", "gestalt": 30}', '{"id": "y", "gestalt": 70}'), (), "different scales: a uses 1 to 4, b uses 30 to 70"),
        (('{"id": "x", "gestalt": 3}',), ("--scale", "1,5"), "--scale is given 1 time for 2 files"),
        (('{"id": "x", "gestalt": 3}',), ("b.jsonl",), "b.jsonl is named twice"),
        (("no json",), (), "b.jsonl, line 1"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_the_place(lines: tuple[str, ...], options: tuple[str, ...], says: str):
    rows("a.jsonl", x=1, y=4)
    Path("b.jsonl").write_text("\n".join(lines) + "\n")
    done = call("agree", "a.jsonl", "b.jsonl", *options, check=2)
    assert says in unwrapped(done.err)
    assert done.out == ""


def test_a_file_without_scores_says_what_is_in_it():
    Path("other.jsonl").write_text('{"id": "x", "score": 3}\n')
    Path("empty.jsonl").write_text("")
    good = rows("a.jsonl", x=1, y=4)
    assert "--key. There are: id, score" in unwrapped(call("agree", good, "other.jsonl", check=2).err)
    assert "--key, once for each file" in unwrapped(call("agree", good, "other.jsonl", "--key", "gestalt", check=2).err)
    assert "there is no record in it" in unwrapped(call("agree", good, "empty.jsonl", check=2).err)


def test_a_score_outside_of_its_scale_is_refused():
    paths = rows("a.jsonl", x=1, y=4, z=5), rows("b.jsonl", x=2, y=4, z=7)
    found = call("agree", *paths, "--scale", "1,5", "--scale", "1,6", check=2)
    assert "b.jsonl: the score 7 of z is outside of 1,6" in unwrapped(found.err)


def test_scales_that_may_differ_are_named_where_raters_disagree():
    ten = rows("b.jsonl", x=9, y=1, z=2)
    told = unwrapped(call("agree", rows("a.jsonl", x=1, y=4, z=5), ten, check=0).out)
    assert "If these are different scales (a 1 to 5, b 1 to 9), name them with --scale first." in told
    alike = unwrapped(call("agree", rows("a.jsonl", x=1, y=4, z=5), rows("b.jsonl", x=5, y=1, z=2), check=0).out)
    assert "different scales" not in alike


def test_a_lower_rater_has_an_interval_with_the_sign_of_the_sentence():
    Path("a.jsonl").write_text("".join(f'{{"id": "{n}", "group": "{n % 4}", "gestalt": {2 + n % 4}}}\n' for n in range(16)))
    Path("b.jsonl").write_text("".join(f'{{"id": "{n}", "group": "{n % 4}", "gestalt": {1 + n % 4}}}\n' for n in range(16)))
    assert "b is 1.00 points lower than a [1.00, 1.00]" in call("agree", "a.jsonl", "b.jsonl", check=0).out


def test_a_way_out_of_other_scales_is_proposed_as_it_works():
    rows("a.jsonl", x=1, y=4, z=5)
    rows("b.jsonl", x=10, y=70, z=100)
    with pytest.raises(ItemError, match="--scale 1,5 --scale 0,100"):
        read_raters([Path("a.jsonl"), Path("b.jsonl")])
    assert 2 == len(read_raters([Path("a.jsonl"), Path("b.jsonl")], scales=[(1, 5), (0, 100)]))


def test_one_file_of_single_scores_names_no_second_rater():
    with pytest.raises(ItemError, match="name a second file"):
        read_raters([rows("a.jsonl", x=1, y=4)])
    with pytest.raises(ConfigError, match="--key is given 3 times for 2 files"):
        read_raters([Path("a.jsonl"), Path("a.jsonl")], keys=["a", "b", "c"])


def test_names_and_texts_are_shown_and_never_obeyed():
    item, rest = '{"id": "x\\u001b[2J<b>", "gestalt": ', '{"id": "y", "gestalt": 4}\n'
    Path("a.jsonl").write_text(f'{item}1, "text": "<script>alert(1)</script>"}}\n{rest}')
    Path("b.jsonl").write_text(f"{item}5}}\n{rest}")
    assert "\x1b" not in call("agree", "a.jsonl", "b.jsonl").out
    call("agree", "a.jsonl", "b.jsonl", "-o", "out.html")
    page = Path("out.html").read_text()
    assert "<script" not in page
    assert "x\\x1b[2J&lt;b&gt;" in page


def test_the_page_and_the_document_go_where_the_name_says():
    rows("a.jsonl", x=1, y=4, z=2)
    rows("b.jsonl", x=1, y=5, z=2)
    call("agree", "a.jsonl", "b.jsonl", "-o", "out.html")
    call("agree", "a.jsonl", "b.jsonl", "-o", "out.json")
    assert Path("out.html").read_text().startswith("<!doctype html>")
    assert {
        "raters",
        "items",
        "exact",
        "within_one",
        "kappa_weighted",
        "alpha",
        "spearman",
        "bias",
        "intervals",
        "confusion",
        "worst",
    } <= set(json.loads(Path("out.json").read_text()))


# ---------------------------------------------------------------------------------------------------- recorded raters


def test_three_raters_of_summaries_hardly_agree(recorded_data: Path):
    found = agreement(recorded_data / "judged" / "newsroom.jsonl")
    assert (3, 420, 60) == (len(found["raters"]), found["items"], found["groups"])
    assert 0 < found["intervals"]["alpha"][0] < found["alpha"] < found["intervals"]["alpha"][1] < 0.667


def test_a_models_repeats_agree(recorded_data: Path):
    found = agreement(recorded_data / "judged" / "vicuna.jsonl")
    assert found["within_one"] > 0.95
    assert found["alpha"] > 0.667
