from __future__ import annotations

import json
import os
import pydoc
import subprocess
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

from jumar.demo.blocks import parse, render
from jumar.demo.condense import condense
from jumar.demo.measure import CHECKS, SCORES, measure
from jumar.demo.plan import MOST_BYTES, DemoPlan, default_file, demo_plan
from jumar.demo.reading import decode
from jumar.demo.scores import Check, Score
from jumar.errors import UsageError


def test_the_plan_names_one_command_a_dimension_and_weighs_them_all():
    plan = demo_plan(default_file())
    assert [name for name, _ in plan.scorers] == list(plan.weights)
    assert set(plan.weights) == set(SCORES)
    assert {name for name, _ in plan.validators} == set(CHECKS)
    assert sum(plan.weights.values()) == pytest.approx(1.0)
    assert (plan.content, plan.notice) == (default_file().read_bytes(), None)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b" \n\n", "has no words"),
        (b"# \n---\n", "has no words"),
        (b"\x7fELF\0\0\0", "is not text"),
        (None, "could not read .*: No such file or directory"),
    ],
)
def test_what_cannot_be_condensed_is_refused_with_a_reason(data: bytes | None, message: str, tmp_path):
    if data is not None:
        (tmp_path / "file").write_bytes(data)
    with pytest.raises(UsageError, match=message):
        demo_plan(tmp_path / "file")


def test_directories_and_pipes_are_refused_without_opening_them(tmp_path):
    os.mkfifo(tmp_path / "pi\x1bpe")
    for path, shown in ((tmp_path, str(tmp_path)), (tmp_path / "pi\x1bpe", r"pi\\x1bpe")):
        with pytest.raises(UsageError, match=f"{shown} is not a regular file"):
            demo_plan(path)


@pytest.mark.parametrize(
    ("text", "encoding", "end"),
    [
        ("A paragraph here.\n\n" * 5000, "utf-8", ".\n\n"),
        ("A paragraph here.\r\n\r\n" * 5000, "utf-8", ".\r\n\r\n"),
        ("A line here.\n" * 9000, "utf-8", ".\n"),
        ("word " * 40_000, "utf-8", "word "),
        ("зима" * 40_000, "utf-8", ""),
        ("雪" * 50_001, "utf-8", "雪"),
        ("𠀀" * 50_001, "utf-16-le", "𠀀"),
        ("𠀀" * 50_001, "utf-16-be", "𠀀"),
    ],
)
def test_a_long_file_is_cut_where_it_hurts_least_and_says_so(text: str, encoding: str, end: str, tmp_path):
    mark = "\ufeff" if "16" in encoding else ""
    (tmp_path / "long.txt").write_bytes((mark + text).encode(encoding))
    plan = demo_plan(tmp_path / "long.txt")
    assert MOST_BYTES // 2 < len(plan.content) <= MOST_BYTES
    read = decode(plan.content)
    assert read.text == text.replace("\r\n", "\n")[: len(read.text)]
    assert plan.content.decode("utf-16" if mark else encoding).endswith(end)
    assert plan.notice == f"the file is long: only its first {len(plan.content):,} bytes are condensed"
    assert all(command[-2:] == ("--bytes", str(len(plan.content))) for _, command in plan.scorers + plan.validators)


def test_a_file_in_an_old_encoding_is_read_with_a_note(tmp_path):
    (tmp_path / "old.txt").write_bytes("Übermorgen schneit es.".encode("latin-1"))
    assert demo_plan(tmp_path / "old.txt").notice == "the file is not UTF-8: it is read as Windows-1252"
    (tmp_path / "odd.txt").write_bytes(b"\x81bermorgen")
    assert demo_plan(tmp_path / "odd.txt").notice == "the file is not UTF-8: it is read as Latin-1"


def _run(command: tuple[str, ...], place: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=place, env=os.environ | environment, capture_output=True, text=True, check=False, timeout=60
    )  # fmt: skip


def _quality(plan: DemoPlan, place: Path) -> tuple[float, bool]:
    scores = {}
    for name, command in plan.scorers:
        ran = _run(command, place)
        assert (ran.returncode, ran.stderr) == (0, "")
        scores[name] = json.loads(ran.stdout)["score"]
    verified = [_run(command, place).returncode for _, command in plan.validators]
    return sum(plan.weights[name] * score for name, score in scores.items()) * 100, verified == [0, 0, 0]


def test_the_commands_run_in_a_directory_that_holds_nothing_else(tmp_path):
    plan = demo_plan(default_file())
    before = default_file().read_bytes()
    document = tmp_path / plan.document
    document.write_bytes(plan.content)
    (tmp_path / "json.py").write_text("raise SystemExit('a file beside the document was imported')\n")
    usage = tmp_path / "usage.json"
    trajectory = [_quality(plan, tmp_path)]
    for _ in range(2):
        ran = _run(plan.generator, tmp_path, JUMAR_USAGE_FILE=str(usage))
        assert (ran.returncode, ran.stderr) == (0, "")
        trajectory.append(_quality(plan, tmp_path))
    assert trajectory[0][0] < trajectory[1][0]
    assert [verified for _, verified in trajectory] == [True, True, True]
    assert not usage.exists()
    assert default_file().read_bytes() == before
    assert sorted(entry.name for entry in tmp_path.iterdir() if entry.name != "here") == [plan.document, "json.py"]


def test_a_child_process_loads_little():
    modules = "jumar.demo.measure, jumar.demo.condense"
    program = f"import sys; before = set(sys.modules); import {modules}; print(*set(sys.modules) - before)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.split())
    assert "jumar.demo.worth" in loaded
    assert loaded.isdisjoint({"dataclasses", "inspect", "pydantic", "rich", "click", "jinja2", "subprocess", "numpy"})


def _trajectory(plan: DemoPlan) -> list[float]:
    """Return the qualities of the start and of every iteration of ``plan``, measured in this process; all checks must pass."""
    text = decode(plan.content).text
    reference = parse(text).blocks
    qualities: list[float] = []
    for _ in range(plan.iterations + 1):
        assert render(parse(text)) == text
        blocks = parse(text).blocks
        quality = 0.0
        for name, weight in plan.weights.items():
            found = measure(name, reference, blocks)
            assert isinstance(found, Score)
            quality += 100 * weight * found.score
        qualities.append(quality)
        for name in CHECKS:
            check = measure(name, reference, blocks)
            assert isinstance(check, Check)
            assert check.passed, check.reason
        after = condense(text).text
        if after == text:
            break
        text = after
    return qualities


def test_the_shipped_text_has_its_best_pass_neither_first_nor_last():
    qualities = _trajectory(demo_plan(default_file()))
    best = qualities.index(max(qualities))
    assert 0 < best < len(qualities) - 1
    assert max(qualities) - qualities[0] > 5
    assert max(qualities) - qualities[-1] > 5


MODULES = "argparse calendar csv difflib email.message heapq pathlib random statistics string textwrap zipfile"


def test_texts_that_nobody_wrote_for_it_peak_in_between_and_not_all_at_one_place(tmp_path, capsys):
    peaks: Counter[int] = Counter()
    between = 0
    modules = MODULES.split()
    for name in modules:
        file = tmp_path / f"{name}.txt"
        file.write_text(pydoc.plain(pydoc.render_doc(import_module(name))))
        qualities = _trajectory(demo_plan(file))
        best = qualities.index(max(qualities))
        peaks[best] += 1
        between += 0 < best < len(qualities) - 1
    with capsys.disabled():
        shown = dict(sorted(peaks.items()))
        print(f"\ndocumentation of {len(modules)} modules: {between} peak in between, at passes {shown}")
    assert between > len(modules) / 2
    assert len(peaks) > 1


def test_a_loop_that_recorded_the_programs_where_they_were_before_still_finds_them(tmp_path: Path):
    plan = demo_plan(default_file())
    (tmp_path / "document.md").write_bytes(plan.content)
    command = [word.replace("jumar.demo.", "jumar.app.demo.") for word in plan.generator]
    assert command != list(plan.generator)
    subprocess.run(command, cwd=tmp_path, check=True)
    assert (tmp_path / "document.md").read_bytes() != plan.content
