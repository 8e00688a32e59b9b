"""Histories that scripts and agents wrote: which column is the metric, which way is better, what became of each row."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import LOGS

from jumar.app.imports.history import Experiment, History, history_of
from jumar.app.imports.load import positions
from jumar.app.imports.tables import read_table
from jumar.errors import UsageError

_FATES = {"keep": "kept", "discard": "discarded", "crash": "crashed", "other": "unknown"}


def _history(tmp_path: Path, text: str, *, name: str = "results.tsv", **asked: str) -> History:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return history_of(read_table(path), **asked)  # pyright: ignore[reportArgumentType]


def _values(found: History) -> list[float | None]:
    return [each.value for each in found.experiments]


_RATCHET = "commit\tval_x\tmemory_gb\tstatus\tdescription\n" + "".join(
    f"abc{number:04}\t{value}\t4.1\t{status}\ttry {number}\n"
    for number, (value, status) in enumerate(
        [("0.99", "keep"), ("0.98", "keep"), ("1.02", "discard"), ("0.000000", "crash"), ("0.97", "keep"), ("0.975", "discard")]
    )
)


def test_the_log_of_a_ratchet_says_everything_itself(tmp_path: Path) -> None:
    found = _history(tmp_path, _RATCHET)
    assert (found.metric, found.direction) == ("val_x", "min")  # 4 of 4 decisions say so; the name says nothing
    assert _values(found) == [0.99, 0.98, 1.02, None, 0.97, 0.975]
    assert [each.fate for each in found.experiments] == ["kept", "kept", "discarded", "crashed", "kept", "discarded"]
    assert [each.ranks for each in found.experiments] == [True, True, True, False, True, True]
    assert "--metric names another" in found.found[0]  # memory_gb is a column of numbers too


def test_what_was_kept_beats_the_name_of_the_metric(tmp_path: Path) -> None:
    found = _history(tmp_path, _RATCHET.replace("val_x", "val_score"))
    assert found.direction == "min"


@pytest.mark.parametrize(
    ("name", "direction"), [("accuracy", "max"), ("val_loss", "min"), ("tokens_per_sec", "max"), ("p50_ms", "min")]
)
def test_the_name_tells_where_the_rows_do_not(tmp_path: Path, name: str, direction: str) -> None:
    assert _history(tmp_path, f"run\t{name}\n1\t5\n2\t7\n").direction == direction


def test_a_direction_that_nobody_tells_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"results\.tsv: is a higher or a lower quux better\?.*--direction"):
        _history(tmp_path, "run\tquux\n1\t5\n2\t7\n")
    assert _history(tmp_path, "run\tquux\n1\t5\n2\t7\n", direction="min").direction == "min"


def test_what_only_ran_to_its_end_ranks_and_what_failed_or_still_runs_does_not(tmp_path: Path) -> None:
    for name, words in {"state": ["COMPLETE", "FAIL", "PRUNED"], "Status": ["FINISHED", "FAILED", "RUNNING"]}.items():
        rows = "".join(f"{number},0.{number},{word}\n" for number, word in enumerate(words, start=5))
        found = _history(tmp_path, f"number,value,{name}\n{rows}", direction="max")
        assert [True, False, False] == [each.ranks for each in found.experiments]
        assert f"status in {name}" in found.found


def test_without_a_description_the_other_columns_say_what_a_row_was(tmp_path: Path) -> None:
    found = _history(tmp_path, "trial,lr,layers,accuracy,state\n0,1e-3,4,0.9,COMPLETE\n1,1e-4,,0.8,FAIL\n", metric="accuracy")
    assert ["trial=0, lr=1e-3, layers=4", "trial=1, lr=1e-4"] == [each.note for each in found.experiments]


def test_a_decimal_comma_is_no_cell_of_its_own(tmp_path: Path) -> None:
    assert [2.5, 2.4] == _values(_history(tmp_path, "step;loss;note\n1;2,5;a, b\n2;2,4;c\n"))
    found = _history(tmp_path, "commit,loss\nabc,1.5\ndef,1,4\n")
    assert ([1.5], ((3, "more cells than the header has names"),)) == (_values(found), found.skipped)
    assert [1.5] == _values(_history(tmp_path, "commit,loss,note\nabc,1.5,wider, and deeper\n"))


def test_a_file_that_says_both_directions_is_asked_about(tmp_path: Path) -> None:
    text = "# metric_direction: higher_is_better\n# metric_direction: lower_is_better\nrun\tacc\tstatus\n1\t5\tkeep\n"
    with pytest.raises(UsageError, match="the file says both"):
        _history(tmp_path, text)


def test_spaces_for_tabs_short_rows_and_lines_that_are_none(tmp_path: Path) -> None:
    text = (
        "commit  val_bpb  status  description\n"
        "aaaaaaa  1.5  keep  the first one\n"
        "bbbbbbb  1.4  keep\n"
        "and a sentence that went on\n"
        "ccccccc\n"
        "ddddddd  nan  keep  not a number\n"
        "eeeeeee  1e999  discard  too large\n"
        "fffffff  1.2  maybe  nobody knows\n"
    )
    found = _history(tmp_path, text)
    assert _values(found) == [1.5, 1.4, None, None, 1.2]
    assert [line for line, _ in found.skipped] == [4, 5]
    assert [each.ranks for each in found.experiments] == [True, True, False, False, False]  # unknown statuses never rank


@pytest.mark.parametrize("ran", ["finished", "ok", "COMPLETE", "success", "done", "passed"])
def test_a_status_that_only_says_that_it_ran_ranks_and_a_crash_beside_it_does_not(tmp_path: Path, ran: str) -> None:
    found = _history(tmp_path, f"Name,State,val_loss\na,{ran},0.9\nb,crashed,0.1\nc,{ran},0.5\n", name="runs.csv")
    assert [(each.value, each.fate, each.ranks) for each in found.experiments] == [
        (0.9, "untold", True),
        (None, "crashed", False),
        (0.5, "untold", True),
    ]


def test_rows_that_nobody_can_rank_are_refused_with_their_status(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no row has acc and can be ranked: nobody knows whether one whose status is 'zork'"):
        _history(tmp_path, "run,acc,status\n1,0.5,zork\n2,,failed\n")


def test_semicolons_quoted_cells_of_tabs_and_a_long_cell_of_commas_are_read(tmp_path: Path) -> None:
    semicolons = _RATCHET.replace("\t", ";")
    quoted = "\n".join("\t".join(f'"{cell}"' for cell in line.split("\t")) for line in _RATCHET.splitlines())
    long = _RATCHET.replace("\t", ",").replace("try 1", "x" * 200_000)
    for text in (semicolons, quoted, long):
        assert _values(_history(tmp_path, text)) == [0.99, 0.98, 1.02, None, 0.97, 0.975]


def test_many_columns_take_no_longer_than_their_cells(tmp_path: Path) -> None:
    names = "\t".join(f"c{number}" for number in range(8_000))
    rows = "\n".join("\t".join([str(row)] * 8_000) for row in (1, 2))
    begun = time.process_time()
    assert _values(_history(tmp_path, f"{names}\n{rows}\n", metric="c7", direction="max")) == [1.0, 2.0]
    assert time.process_time() - begun < 10  # looking at every name for each of them takes minutes


def test_single_spaces_leave_the_description_whole(tmp_path: Path) -> None:
    found = _history(tmp_path, "commit val_bpb status description\naaaaaaa 1.5 keep the first one of all\n")
    assert found.experiments[0].note == "the first one of all"


def test_a_quoted_cell_of_commas_may_hold_line_feeds_and_a_quote_in_tabs_may_not(tmp_path: Path) -> None:
    text = 'run,acc,status,description\n1,0.5,keep,"a\nb, c"\n2,0.6,keep,d\n'
    found = _history(tmp_path, text, name="runs.csv")
    assert _values(found) == [0.5, 0.6]
    assert found.experiments[0].note == "a\nb, c"
    tabs = _history(tmp_path, 'run\tacc\tstatus\tdescription\n1\t0.5\tkeep\t"open\n2\t0.6\tkeep\td\n')
    assert _values(tabs) == [0.5, 0.6]


def test_without_a_header_the_metric_is_named(tmp_path: Path) -> None:
    text = "first\t0.5\tkeep\tx\nsecond\t0.4\tdiscard\ty\n"
    with pytest.raises(UsageError, match=r"no header.*column 2.*--metric NAME"):
        _history(tmp_path, text)
    found = _history(tmp_path, text, metric="sharpe", direction="max")
    assert (found.metric, _values(found)) == ("sharpe", [0.5, 0.4])


def test_a_column_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no column val_y \(did you mean 'val_x'\?\); columns of numbers are: val_x, memory_gb"):
        _history(tmp_path, _RATCHET, metric="val_y")


def test_json_lines_say_metric_and_direction_and_a_second_loop_is_left_out(tmp_path: Path) -> None:
    lines = [
        {"type": "config", "metricName": "total_ms", "bestDirection": "lower"},
        {"run": 1, "metric": 0, "metrics": {}, "status": "crash"},
        {"run": 2, "metric": 3.9, "metrics": {"rss": 5}, "status": "keep", "timestamp": 1773707132664},
        {"run": 3, "metric": 4.2, "metrics": {"rss": 4}, "status": "discard"},
        {"type": "probe", "exit_code": 0},
        {"type": "config", "metricName": "total_ms", "bestDirection": "lower"},
        {"run": 4, "metric": 1.0, "status": "keep"},
    ]
    text = "\n".join([*map(json.dumps, lines), "{broken", "3"])
    found = _history(tmp_path, text, name="log.jsonl")
    assert (found.metric, found.direction, _values(found)) == ("total_ms", "min", [None, 3.9, 4.2])
    assert dict(found.skipped) == {
        5: "no total_ms",
        7: "of another loop in the file",
        8: "not readable as JSON",
        9: "no JSON object",
    }
    assert _values(_history(tmp_path, text, name="log.jsonl", metric="rss")) == [5.0, 4.0]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "holds no rows"),
        ("run\tacc\n", "holds no rows"),
        ("[1, 2", "not readable as JSON"),
        ("run\tname\n1\tx\n", "no column of numbers"),
        ("run\tacc\tstatus\n1\t0.5\tcrash\n", "no row has acc and can be ranked|no column of numbers"),
    ],
)
def test_a_file_that_holds_no_history_is_refused_by_name(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as refused:
        _history(tmp_path, text)
    assert "results.tsv" in str(refused.value)


def test_a_file_that_is_no_text_or_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_bytes(b"a\tb\n\xff\xfe\t1\n")
    with pytest.raises(UsageError, match="byte 4: not UTF-8"):
        read_table(tmp_path / "x.tsv")
    with pytest.raises(UsageError, match="cannot be read"):
        read_table(tmp_path / "gone.tsv")


def _of(values: list[float], direction: str) -> History:
    experiments = tuple(
        Experiment(line=line, value=value, fate="kept", status="keep", note="", commit="", at="")
        for line, value in enumerate(values)
    )
    return History(metric="m", direction=direction, experiments=experiments, skipped=(), found=())  # pyright: ignore[reportArgumentType]


_VALUES = st.lists(st.floats(min_value=-1e300, max_value=1e300), min_size=1, max_size=30)


@given(_VALUES, st.sampled_from(["min", "max"]))
def test_positions_are_within_0_and_100_and_order_as_the_values_do(values: list[float], direction: str) -> None:
    places = positions(_of(values, direction))
    ordered = sorted(places, reverse=direction == "max")
    assert [places[value] for value in ordered] == sorted(places.values(), reverse=True)
    assert len(set(places.values())) == len(set(values))  # different values never tie, however far off the worst is
    assert all(math.isfinite(place) and -1e-9 <= place <= 100 for place in places.values())
    assert places[ordered[0]] == 100


def test_every_recorded_loop_is_read_as_it_was_recorded() -> None:
    """Words of the recorded logs are masked, headers and statuses among them: those say less than the loops' own records."""
    if not LOGS.is_dir():
        pytest.skip("the recorded loops are not here")
    known = {loop["id"]: loop for loop in map(json.loads, (LOGS / "loops.jsonl").read_text(encoding="utf-8").splitlines())}
    alike = rows = 0
    files = sorted((LOGS / "logs").iterdir())
    for path in files:
        loop = known[path.stem]
        found = history_of(read_table(path), metric=loop["metric"])
        assert found.direction == loop["direction"], path.name
        wanted = [(each["score"], _FATES[each["status"]]) for each in loop["iterations"]]
        alike += [(each.value, each.fate) for each in found.experiments] == wanted
        rows += len(found.experiments)
    print(f"{len(files)} recorded loops, {rows} rows; {alike} are as recorded, row by row")
    assert alike >= 54
