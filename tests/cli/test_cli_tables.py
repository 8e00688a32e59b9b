"""How the commands draw: aligned whatever the characters, harmless whatever the names, as wide as the window."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from commands import CONTROL, call, record
from hypothesis import given
from hypothesis import strategies as st

from jumar.cli.common import command_for, shown_path, writable
from jumar.cli.loop.list import age_text
from jumar.cli.terminal.output import Column, TableRow, print_table
from jumar.core.text import cell_width
from jumar.loop.report.status import elapsed

COLUMNS = (Column(name="left"), Column(name="right", right=True), Column(name=""))
WIDE = "日本語"


def drawn(rows: list[tuple[str, str, str]], capsys: pytest.CaptureFixture[str]) -> list[str]:
    print_table(COLUMNS, [TableRow(cells=cells) for cells in rows])
    return capsys.readouterr().out.splitlines()


def test_plain_columns_are_aligned(capsys: pytest.CaptureFixture[str]):
    lines = drawn([("a", "1", "x"), ("long name", "1,234", ""), (WIDE, "−2", "é")], capsys)
    expected = ["  left       right", "  a              1  x", "  long name  1,234", f"  {WIDE}        −2  é"]
    assert expected == lines


def test_width_counts_columns_of_the_terminal():
    assert [0, 3, 6, 1, 1, 2] == [cell_width(text) for text in ("", "abc", WIDE, "é", "e\u0301", "★★")]


@given(st.lists(st.tuples(st.text(), st.text(), st.text()), max_size=5))
def test_no_cell_reaches_the_terminal_raw(rows: list[tuple[str, str, str]]):
    import io
    from unittest import mock

    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with mock.patch("sys.stdout", out):
        print_table(COLUMNS, [TableRow(cells=cells) for cells in rows])
    out.flush()
    text = out.buffer.getvalue().decode()
    assert CONTROL.isdisjoint(text)
    assert len(rows) + 1 == text.count("\n")


def visible(text: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines())


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_tables_keep_to_the_window_and_colour_can_be_switched_off(columns: int, monkeypatch: pytest.MonkeyPatch):
    record([0.5, 0.8, {"score": 0.6, "verification_status": "failed"}])
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm-256color")
    for arguments in (("list",), ("show", "t", "--quiet"), ("diff", "t", "1", "2", "--stat", "--quiet")):
        coloured = call(*arguments, check=0, terminal=True).out
        table = [line for line in visible(coloured).splitlines() if not line.startswith("iteration")]
        assert max(map(cell_width, table)) <= columns, table
        with monkeypatch.context() as patch:
            patch.setenv("NO_COLOR", "1")
            plain = call(*arguments, check=0, terminal=True).out
        assert "\x1b" not in plain
        assert visible(coloured) == visible(plain)
    assert "\x1b[" not in call("show", "t", check=0).out
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b[" not in call("show", "t", check=0, terminal=True).out


def test_a_diff_is_coloured_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch):
    record([{"score": 0.5, "text": "old \x1b[5m\n"}, {"score": 0.8, "text": "new\n"}])
    monkeypatch.setenv("TERM", "xterm")
    coloured = call("diff", "t", "1", "2", check=0, terminal=True).out
    assert "\x1b[31m-old \\x1b[5m\x1b[0m" in coloured
    assert "\x1b[32m+new\x1b[0m" in coloured
    plain = call("diff", "t", "1", "2", check=0).out
    assert visible(coloured) == plain


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_lacks_a_sign_gets_a_plain_one_and_the_columns_stay(encoding: str):
    record([0.8, 0.5])
    for arguments in (("list",), ("show", "t"), ("report", "t"), ("select", "t"), ("diff", "t", "1", "2")):
        for terminal in (False, True):
            assert 0 == call(*arguments, encoding=encoding, terminal=terminal).code
    shown = call("show", "t", encoding=encoding).out
    assert "* best" in shown
    rich, plain = (next(line for line in text.splitlines() if "score" in line) for text in (call("show", "t").out, shown))
    assert rich.index("checks") == plain.index("checks")


def test_what_an_encoding_lacks_is_written_plainly_or_as_an_escape():
    assert "a * -> \\xe9" == writable("a ★ → é", "ascii")
    assert "a * -> é" == writable("a ★ → é", "latin-1")
    assert "a★\\udcff" == writable("a★\udcff", "utf-8")
    assert "★" == writable("★", None)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "—"),
        (0, "<1m"),
        (59.9, "<1m"),
        (60, "1m"),
        (3599, "59m"),
        (3600, "1h"),
        (86_400 * 12.5, "12d"),
    ],
)
def test_ages(seconds: float | None, text: str):
    assert text == age_text(seconds)


def test_seconds_since():
    from datetime import UTC, datetime

    now = datetime(2026, 1, 28, 10, 0, 30, tzinfo=UTC)
    times = ("2026-01-28T10:00:00.000Z", "2026-01-28T10:00:00", "2026-01-28T11:00:00+01:00", "2027-01-01T00:00:00Z", "soon", None)
    assert [30, 30, 30, 0, None, None] == [elapsed(time, now) for time in times]


def test_paths_are_shown_from_here(fresh_place, tmp_path):
    assert "a/b\\x1b" == shown_path(fresh_place / "a" / "b\x1b")
    assert str(tmp_path / "x") == shown_path(tmp_path / "x")
    assert str(fresh_place) == shown_path(fresh_place)


def test_a_command_to_copy_outside_of_any_command_names_no_root():
    record([0.5])
    loop = Path(".jumar/loops/t")
    assert "jumar apply --undo" == command_for("apply", loop, "--undo")
    assert "jumar apply t --undo" == command_for("apply", loop, "--undo", named=True)


@pytest.mark.usefixtures("fresh_place")
def test_what_else_breaks_a_line_is_counted_as_a_part_of_it() -> None:
    record([{"score": 0.5, "text": "a\n"}, {"score": 0.6, "text": "a\nb\x0c-c\r-d\u2028-e\n"}])
    (counted,) = json.loads(call("diff", "t", "1", "2", "--stat", "--json", check=0).out)["stat"]
    assert (counted["added_lines"], counted["removed_lines"]) == (1, 0)
