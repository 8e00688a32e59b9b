from __future__ import annotations

import json
import os
import pydoc
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from jumar.app.config.config import JumarConfig
from jumar.demo.condense import condense, shorten
from jumar.demo.measure import CHECKS, FORMER, SCORES, measure
from jumar.demo.plan import DOCUMENT, MOST, ORIGINAL, default_file, demo_config, read_demo_text, set_up_demo
from jumar.demo.text import decode, parse, render, terms_of
from jumar.errors import ConfigError, UsageError

WEIGHTS = {"coverage": 0.4, "length": 0.3, "readability": 0.1, "structure": 0.1, "novelty": 0.1}


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
def test_what_cannot_be_condensed_is_refused_with_a_reason(data: bytes | None, message: str, tmp_path: Path):
    if data is not None:
        (tmp_path / "file").write_bytes(data)
    with pytest.raises(UsageError, match=message):
        read_demo_text(tmp_path / "file")


def test_directories_and_pipes_are_refused_without_opening_them(tmp_path: Path):
    os.mkfifo(tmp_path / "pi\x1bpe")
    for path, shown in ((tmp_path, str(tmp_path)), (tmp_path / "pi\x1bpe", r"pi\\x1bpe")):
        with pytest.raises(UsageError, match=f"{shown} is not a regular file"):
            read_demo_text(path)


def test_a_folder_that_cannot_be_written_is_an_error_of_the_configuration(tmp_path: Path):
    (tmp_path / "out").write_text("a file is in the way")
    with pytest.raises(ConfigError, match="cannot set up the demo in"):
        set_up_demo(tmp_path / "out", "words")


@pytest.mark.parametrize(
    ("text", "encoding", "end"),
    [
        ("A paragraph here.\n\n" * 5000, "utf-8", ".\n\n"),
        ("A paragraph here.\r\n\r\n" * 5000, "utf-8", ".\n\n"),
        ("A line here.\n" * 9000, "utf-8", ".\n"),
        ("word " * 40_000, "utf-8", "word "),
        ("雪" * 90_001, "utf-8", "雪"),
        ("𠀀" * 90_001, "utf-16", "𠀀"),
    ],
)
def test_a_long_file_is_cut_where_it_hurts_least_and_says_so(text: str, encoding: str, end: str, tmp_path: Path):
    (tmp_path / "long.txt").write_bytes(text.encode(encoding))
    read, notice = read_demo_text(tmp_path / "long.txt")
    assert MOST // 2 < len(read) <= MOST
    assert read == text.replace("\r\n", "\n")[: len(read)]
    assert read.endswith(end)
    assert notice == f"the file is long: only its first {len(read):,} characters are condensed"


def test_a_file_in_an_old_encoding_is_read_with_a_note(tmp_path: Path):
    for data, name in (("Übermorgen schneit es.".encode("latin-1"), "Windows-1252"), (b"\x81bermorgen", "Latin-1")):
        (tmp_path / "old.txt").write_bytes(data)
        assert read_demo_text(tmp_path / "old.txt").notice == f"the file is not UTF-8: it is read as {name}"
    assert decode(b"\xef\xbb\xbfsnow\r\nfalls") == ("snow\nfalls", "utf-8-sig")


@pytest.mark.parametrize(
    ("wordy", "short"),
    [
        ("In order to win, run.", "To win, run."),
        ("It is important to note that the logger waits.", "The logger waits."),
        ("The station is basically a box, due to the fact that it is cheap.", "The station is a box, because it is cheap."),
        ('Type `in order to` and say "prior to".', 'Type `in order to` and say "prior to".'),
        ("Il faut marcher, bien sûr.", "Il faut marcher, bien sûr."),
    ],
)
def test_wordy_english_is_said_shorter_and_code_and_quotations_are_left(wordy: str, short: str):
    assert shorten(wordy) == short
    assert shorten(short) == short


def test_blocks_are_told_apart_by_their_own_lines():
    text = (
        "Title\n=====\n\n# A *b*\nProse. More e.g. here.\n- one\n\n  its own\n- two\n\n```sh\n# x\n\n```\n| a | b |\n|---|---|\n"
    )
    assert [(block.kind, block.sentences) for block in parse(text)] == [
        ("heading", ("Title",)),
        ("heading", ("A *b*",)),
        ("text", ("Prose.", "More e.g. here.")),
        ("item", ("- one\n\n  its own",)),
        ("item", ("- two",)),
        ("whole", ("```sh\n# x\n\n```",)),
        ("whole", ("| a | b |\n|---|---|",)),
        ("whole", ("",)),
    ]
    assert render(parse(text)) == text
    assert terms_of("The rivers' gauge's 14 雪山") == ["river", "gauge", "14", "雪", "山"]


def test_condensing_closes_up_lists_and_drops_what_announces_nothing_and_links_to_what_is_gone():
    filler = "We hope that you, once again, feel free to be well.\n\n" * 6
    steps = "## Steps\n\n1. Thank you once again.\n2. Read 14 gauges at Harl Mill.\n3. Charge 9 batteries.\n4. Call 4471.\n"
    text = f"# Guide\n\n{filler}{steps}"
    for _ in range(9):
        text = condense(text)
    assert "1. Read 14 gauges at Harl Mill.\n2. Charge 9 batteries." in text
    lists = "Read 1 gauge at Harl Mill. Do this:\n\n```\nfeel free\n```\n\n"
    original = text = (
        f"# Guide\n\nSee 14 gauges of [the rest](#rest).\n\n{lists}## Rest\n\nThank you.\n\n## End\n\nCharge 9 batteries.\n"
    )
    for _ in range(9):
        text = condense(text)
        assert [measure(name, original, text)[0] for name in CHECKS] == [1.0, 1.0, 1.0]
    assert text == "# Guide\n\nSee 14 gauges of the rest.\n\nRead 1 gauge at Harl Mill.\n\n## End\n\nCharge 9 batteries.\n"


def test_the_checks_name_what_is_broken():
    original = (
        "# Guide\n\nSee [more](#more) and [this](https://a.example).\n\n## More\n\nSteps:\n\n1. one\n2. two\n\n```\nx\n```\n"
    )
    assert measure("title", original, "Nothing of it.\n") == (0.0, "the title is gone: Guide")
    assert measure("links", original, "[more](#more).\n") == (0.0, "a link leads to a section that is gone: #more")
    assert measure("links", original, "[this](https://b)\n") == (0.0, "a link was damaged: https://b")
    broken = measure("markup", original, "# Guide\n\nSteps:\n\n## More\n\n2. two\n\n```\nx\n")
    assert broken == (0.0, "nothing follows after: Steps:; a code fence is not closed; a list begins at 2")


def test_the_scores_give_the_facts_that_they_are_made_of():
    original = "# Gauges\n\n" + " ".join(f"Gauge {number} rose." for number in range(20)) + "\n"
    assert measure("coverage", original, original) == (1.0, "22 of 22 key terms left")
    score, reason = measure("coverage", original, "# Gauges\n\nGauge 0 rose.\n")
    assert 0 < score < 1
    assert reason == "3 of 22 key terms left; the weightiest gone: 1, 10, 11, 12, 13"
    assert measure("novelty", "", "River gauge battery. River gauge battery.\n") == (0.5, "2 of 4 pairs of terms repeated")


def _qualities(file: Path) -> list[float]:
    """Return the qualities of the start and of eight iterations, measured in this process; all checks must pass."""
    original = text = read_demo_text(file).text
    qualities: list[float] = []
    for _ in range(9):
        qualities.append(100 * sum(weight * measure(name, original, text)[0] for name, weight in WEIGHTS.items()))
        assert [measure(name, original, text)[0] for name in CHECKS] == [1.0, 1.0, 1.0]
        if text == (after := condense(text)):
            break
        text = after
    return qualities


def test_the_shipped_text_has_its_best_iteration_neither_first_nor_last():
    qualities = _qualities(default_file())
    assert 0 < qualities.index(max(qualities)) < len(qualities) - 1
    assert max(qualities) - qualities[0] > 5
    assert max(qualities) - qualities[-1] > 5


MODULES = ["argparse", "calendar", "csv", "difflib", "email.message", "heapq", "pathlib", "random", "statistics", "zipfile"]


def test_texts_that_nobody_wrote_for_it_peak_in_between_and_not_all_at_one_place(tmp_path: Path):
    peaks: list[int] = []
    for name in MODULES:
        (tmp_path / "text").write_text(pydoc.plain(pydoc.render_doc(import_module(name))))
        qualities = _qualities(tmp_path / "text")
        best = qualities.index(max(qualities))
        peaks += [best] if 0 < best < len(qualities) - 1 else []
    assert len(peaks) > len(MODULES) / 2
    assert len(set(peaks)) > 1


def test_built_in_scorers_are_left_out_where_a_text_gives_them_nothing_to_measure(tmp_path: Path):
    def dimensions(text: str) -> set[str]:
        return {scorer.dimension or "" for scorer in demo_config(tmp_path, text).scorers}

    assert dimensions("# A title\n\nWords.\n") == set(WEIGHTS)
    assert dimensions("Words.\n") == {"coverage", "length", "novelty", "readability"}
    assert dimensions("```\ncode only\n```\n") == {"coverage", "length", "novelty"}


def _run(command: list[str], place: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=place, env=os.environ | environment, capture_output=True, text=True, check=False, timeout=60
    )  # fmt: skip


def _commands(config: JumarConfig) -> list[list[str]]:
    commands = [scorer.command for scorer in config.scorers] + [check.command for check in config.validators]
    return [command for command in commands if isinstance(command, list)]


def test_the_commands_run_in_a_directory_where_another_file_stands_in_the_way(tmp_path: Path):
    text = read_demo_text(default_file()).text
    set_up_demo(tmp_path, text)
    (tmp_path / "json.py").write_text("raise SystemExit('a file beside the document was imported')\n")
    config = demo_config(tmp_path, text)
    generator = config.generator.command if config.generator else None
    assert isinstance(generator, list)
    usage = tmp_path / "usage.json"
    ran = _run(generator, tmp_path, JUMAR_USAGE_FILE=str(usage))
    assert (ran.returncode, ran.stderr, usage.exists()) == (0, "", False)
    assert (tmp_path / ORIGINAL).read_text() == text != (tmp_path / DOCUMENT).read_text()
    for command in _commands(config):
        ran = _run(command, tmp_path)
        assert (ran.returncode, ran.stderr) == (0, "")
        assert ran.stdout
    (tmp_path / DOCUMENT).write_text("Three. Small. Words.")
    assert _run(generator, tmp_path, JUMAR_USAGE_FILE=str(usage)).stdout == "nothing left to take away\n"
    assert json.loads(usage.read_text()) == {"completed": True}
    (tmp_path / DOCUMENT).unlink()
    assert [_run(command, tmp_path).returncode for command in (generator, _commands(config)[0], generator[:-1])] == [1, 2, 2]


def test_a_demo_that_an_older_jumar_recorded_still_finds_its_programs(tmp_path: Path):
    (tmp_path / DOCUMENT).write_bytes(default_file().read_bytes())
    python = [sys.executable, "-P", "-m"]
    assert _run([*python, "jumar.app.demo.condense", DOCUMENT], tmp_path).returncode == 0
    for name in (*SCORES, *FORMER, *CHECKS):
        recorded = [*python, "jumar.app.demo.measure", name, DOCUMENT, "--reference", str(default_file()), "--bytes", "64000"]
        ran = _run(recorded, tmp_path)
        assert (ran.returncode, ran.stderr) == (0, "")
        assert name in CHECKS or 0 < json.loads(ran.stdout)["score"] <= 1


def test_a_child_process_loads_little(plain_environment: dict[str, str]):
    program = "import sys; import jumar.demo.measure, jumar.demo.condense; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=plain_environment)
    loaded = set(ran.stdout.split())
    assert "jumar.demo.text" in loaded
    assert loaded.isdisjoint({"dataclasses", "inspect", "pydantic", "rich", "click", "jinja2", "subprocess", "numpy"})
