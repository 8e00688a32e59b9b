"""Lines that stay and a status that is drawn again below them: what stands on the screen is what a slow terminal says."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from screens import screen_of

from jumar.cli.application import run_application
from jumar.cli.terminal.display import Progress, agent_name, heading, last_words, row_lines
from jumar.cli.terminal.screen import LinesDisplay
from jumar.core.text import cell_width, fit, in_ascii, wrapped
from jumar.loop.events.events import (
    AttemptEnded,
    AttemptStarted,
    IterationRecorded,
    LoopStarted,
    PhaseStarted,
    StopDecided,
    Waiting,
)
from jumar.loop.store.layout import LoopPaths
from jumar.model import CheckResult, IterationRecord, StopRules, SuiteCounts
from jumar.model.attempts import Spend
from jumar.model.budget.pricing import Budget
from jumar.processes.captured_output import SHOWN_AT_ONCE

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=60)


class Terminal(io.TextIOWrapper):
    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__(io.BytesIO(), encoding=encoding, newline="")

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        raise OSError  # so that COLUMNS says how wide it is

    @property
    def written(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode(self.encoding)  # type: ignore[attr-defined]


class Doing(LinesDisplay):
    doing: Sequence[str] = ()

    def status(self, width: int) -> Sequence[str]:
        return self.doing if width else ()


@given(
    steps=st.lists(
        st.one_of(st.lists(TEXT.filter(str.strip), max_size=3), TEXT.map(lambda text: text.rstrip() or "x")), max_size=12
    ),
    columns=st.integers(20, 90),
)
def test_lines_stay_in_their_order_and_the_status_stands_below(steps: list[list[str] | str], columns: int) -> None:
    terminal = Terminal()
    said: list[str] = []
    with mock.patch.dict(os.environ, {"COLUMNS": str(columns), "NO_COLOR": "1", "TERM": "xterm"}):
        display = Doing(terminal, live=True)
        for step in steps:
            if isinstance(step, list):
                display.doing = step
            else:
                display.say(step)
                said += wrapped(step, columns)
            display._draw()  # as the ticker does
            status = [fit(line, columns - 1).rstrip() for line in display.doing]
            shown = screen_of(terminal.written)
            assert [*(line.rstrip() for line in said), *status, *([] if status else [""])] == shown
        display.stop()
    assert [*(line.rstrip() for line in said), ""] == screen_of(terminal.written)


def test_nothing_is_drawn_again_while_nothing_changes_and_no_line_reaches_the_edge() -> None:
    terminal = Terminal()
    with mock.patch.dict(os.environ, {"COLUMNS": "30"}):
        display = Doing(terminal, live=True)
        display.doing = ["a" * 50, "ok"]
        for _ in range(9):
            display._draw()
    assert 1 == terminal.written.count("a" * 28)
    assert 29 == max(len(line) for line in screen_of(terminal.written))


def test_what_others_write_to_stderr_meanwhile_stands_above_the_status(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "60")
    with Doing(terminal, live=True) as display:
        assert terminal.encoding == sys.stderr.encoding
        assert sys.stderr.isatty()
        display.doing = ["working"]
        display._draw()
        sys.stderr.write("\nhalf a ")
        sys.stderr.write("line\nand more\n")
        assert ["half a line", "and more", "working"] == screen_of(terminal.written)
    assert sys.stderr is terminal


def test_a_stream_that_is_no_terminal_gets_whole_lines_and_no_status() -> None:
    stream = io.StringIO()
    with Doing(stream) as display:
        display.doing = ["working"]
        display.say("x" * 300, "warn")
        display.end(lambda width: [str(width)])
    assert ["x" * 300, "100"] == stream.getvalue().splitlines()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_without_our_signs_gets_plain_ones(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    terminal = Terminal(encoding)
    display = Doing(terminal, live=True)
    display.doing = ["iteration 1 · agent"]
    display.say("3/12 → 11/12 ★")
    assert ["3/12 -> 11/12 *", "iteration 1 | agent"] == screen_of(terminal.written)


@given(TEXT, st.integers(1, 80), st.integers(0, 20))
def test_wrapped_text_keeps_its_words_and_the_width(text: str, width: int, indent: int) -> None:
    lines = wrapped(text, width, indent)
    assert text.split() == " ".join(lines).split()
    for line in lines[1:]:
        assert line.startswith(" " * indent)
    for line in lines:
        assert cell_width(line) <= width or len(line[indent:].split(" ")) == 1 or cell_width(line[:indent]) < indent + 1
    assert cell_width(fit(text, width)) <= width
    assert fit(text, cell_width(text)) == text
    assert in_ascii(text) == text or not text.isascii()


CELLS = ("12", "91.7", "+16.7", "11/12", "$0.14", "52s", "★ best · fixed test_mul, test_div and twelve others of the file")


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 120])
def test_a_row_keeps_to_the_width_and_its_note_stands_in_its_column(width: int) -> None:
    lines = row_lines(CELLS, width)
    assert width >= max(map(cell_width, lines))
    assert CELLS[-1].split() == " ".join(lines).split()[-len(CELLS[-1].split()) :]
    begins = {len(line) - len(line.lstrip()) for line in lines[1:]}
    assert 1 >= len(begins)
    if width >= 80:
        assert begins <= {lines[0].index("★")}
        assert all(cell in lines[0] for cell in CELLS[:6])
    assert 1 == len(row_lines(CELLS, None))


@pytest.mark.parametrize("width", [60, 80, None])
def test_a_cell_that_is_too_wide_keeps_a_blank_on_both_sides(width: int | None) -> None:
    lines = row_lines((*CELLS[:3], "99990/100000", *CELLS[4:]), width)
    assert ["12", "91.7", "+16.7", "99990/100000", "$0.14", "52s"] == lines[0].split()[:6]
    assert CELLS[-1].split() == " ".join(lines).split()[6:]


def test_checks_that_count_tests_are_called_tests() -> None:
    plain = IterationRecord(iteration_number=0, timestamp="", quality_score=1.0, checks=(CheckResult(name="a", passed=True),))
    counts = SuiteCounts(passed=1, failed=1, missing=0, total=2)
    counted = IterationRecord(
        iteration_number=1, timestamp="", quality_score=1.0, checks=(CheckResult(name="a", passed=False, tests=counts),)
    )
    assert "checks" in heading((plain,))
    assert "tests" in heading((plain, counted))


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["claude", "-p", "{prompt}"], "claude"),
        (["/usr/bin/python3", "agent.py"], "agent.py"),
        ("FOO=1 python -u tools/agent.py --fast", "agent.py"),
        ([sys.executable, "-P", "-m", "jumar.demo.condense", "x.md"], "condense"),
        ("cat PROMPT.md | claude -p --verbose", "claude"),
        ("cd x && make it", ""),
        (["sh", "-c", "echo"], ""),
        ("echo 'half", ""),
        (["python"], "python"),
        (["a\x1b" + "b" * 50], "a\\x1b" + "b" * 24 + "…"),
        (None, ""),
    ],
)
def test_an_agent_is_called_by_what_a_person_knows_it_as(command: list[str] | str | None, name: str) -> None:
    assert name == agent_name(command)


# ------------------------------------------------------------------------------------------------------ what is being done


class Now:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def record(number: int) -> IterationRecord:
    return IterationRecord(iteration_number=number, timestamp="", quality_score=1.0)


def test_the_status_follows_the_run(tmp_path: Path) -> None:
    now = Now()
    progress = Progress(now)
    progress.begin(LoopPaths(tmp_path))
    log = LoopPaths(tmp_path).attempt_scratch(7) / "generator.log"
    log.parent.mkdir(parents=True)
    assert [] == progress.lines(80)
    budget = Budget(max_cost_usd=2.0, max_seconds=3600.0)
    spent = Spend(known_cost_usd=0.41, cost_usd=0.41, seconds=60.0)
    rules = StopRules(max_iterations=5)
    progress.hear(LoopStarted(loop_id="t", resumed=True, rules=rules, recorded=4, weights={}, budget=budget, spend=spent))
    progress.hear(PhaseStarted(iteration=0, phase="verify"))
    assert ["  the start · checks 0s · $0.41 of $2.00 · 1m 00s of 1h 00m"] == progress.lines(80)
    progress.hear(IterationRecorded(record=record(0), best=0, spend=spent))
    assert [] == progress.lines(80)
    progress.hear(AttemptStarted(attempt=7, iteration=4))
    progress.hear(PhaseStarted(iteration=4, phase="generate"))
    now.seconds = 72.9
    log.write_bytes(b"first\n\x1b[1;32mReading\x1b[0m calc\x07.py\r\n\n")
    expected = ["  iteration 4 of 5 · agent 1m 13s · $0.41 of $2.00 · 2m 13s of 1h 00m", r"  > Reading calc\x07.py"]
    assert expected == progress.lines(80)
    assert 40 >= max(cell_width(line) for line in progress.lines(40))
    progress.hear(AttemptEnded(attempt=7, iteration=4, outcome="rate_limited"))
    progress.hear(Waiting(why="rate_limited", seconds=30.0, detail="x" * 200))
    now.seconds += 5
    (waiting,) = progress.lines(120)
    assert waiting.startswith("  waiting up to 30s (rate limited: xxx")
    assert waiting.endswith("…) · 5s")
    progress.hear(PhaseStarted(iteration=4, phase="score"))
    assert "scoring 0s" in progress.lines(80)[0]
    progress.hear(StopDecided(reason="target"))
    assert [] == progress.lines(80)


def test_candidates_side_by_side_are_one_line_and_the_last_words_are_the_newest(tmp_path: Path) -> None:
    now = Now()
    progress = Progress(now)
    progress.begin(LoopPaths(tmp_path))
    progress.hear(LoopStarted(loop_id="t", resumed=False, rules=StopRules(max_iterations=9), recorded=1, weights={}))
    for attempt, iteration in ((1, 4), (2, 5), (3, 6)):
        progress.hear(AttemptStarted(attempt=attempt, iteration=iteration, candidate=iteration - 3))
        progress.hear(PhaseStarted(iteration=iteration, candidate=iteration - 3, phase="generate"))
        log = LoopPaths(tmp_path).attempt_scratch(attempt) / "generator.log"
        log.parent.mkdir(parents=True)
        log.write_text(f"I am {attempt}\n")
        os.utime(log, (attempt % 3, attempt % 3))
        now.seconds += 1
    assert ["  iterations 4-6 of 9 · 3× agent 3s", "  > I am 2"] == progress.lines(80)
    progress.hear(PhaseStarted(iteration=5, candidate=2, phase="verify"))
    assert ["  iterations 4-6 of 9 · 2× agent 3s · checks 0s", "  > I am 1"] == progress.lines(80)


def test_a_log_that_has_newer_lines_than_it_shows_says_nothing(tmp_path: Path) -> None:
    log = tmp_path / "generator.log"
    log.write_bytes(b"x\n" * (SHOWN_AT_ONCE // 2 - 1))
    assert "x" == last_words([log, tmp_path / "missing"])
    log.write_bytes(b"x\n" * (SHOWN_AT_ONCE // 2))
    assert not last_words([log])


def test_a_note_is_wrapped_below_itself_also_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    LinesDisplay(stream).note("word " * 17 + "`jumar run --keep-going` " + "word " * 20)
    first, *more = stream.getvalue().splitlines()
    assert first.startswith("note      word word")
    assert "          `jumar run --keep-going`" in more[0], "a command is never broken"
    assert [10] == sorted({len(line) - len(line.lstrip()) for line in more})
    assert max(map(len, (first, *more))) <= 100


def test_an_error_is_wrapped_below_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == run_application(["show", "-".join(["no"] * 5), "--root", "nowhere " * 20])
    first, *more = capsys.readouterr().err.splitlines()
    assert first.startswith("jumar: no loop called")
    assert more
    assert all(line.startswith(" " * 7) for line in more)
    assert max(map(len, (first, *more))) <= 100
