"""What a loop is called that nobody named, and which one is gone on with: by what is recorded, not by the name."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from loops import jumar, jumar_json, write_loop
from store_kit import unmarked

from jumar.loop.store.layout import list_loops

AGENT = ("--", "sh", "-c", "echo $JUMAR_ITERATION >> calls.log")


def project(tmp_path: Path, name: str = "calc") -> Path:
    place = tmp_path / name
    place.mkdir()
    return place


def ran(place: Path, *arguments: str, check: str = "false") -> str:
    """Run a command line that its time limit ends, so that the same words go on; return the loop's name."""
    words = ("run", "--json", "--max-seconds", "0.0001", "--check", check, *arguments, *AGENT)
    return str(json.loads(jumar(place, *words).stdout)["loop_id"])


@pytest.mark.parametrize(
    ("directory", "name"),
    [
        ("calc", "calc-1"),
        ("My Project (2)", "My-Project-2-1"),
        ("калк", "loop-1"),
        (".hidden", "hidden-1"),
        ("x" * 200, "x" * 60 + "-1"),
    ],
)
def test_a_command_lines_loop_is_called_after_the_directory(tmp_path: Path, directory: str, name: str) -> None:
    assert name == ran(project(tmp_path, directory))


def test_each_new_one_has_the_next_number_and_the_same_words_go_on_with_the_same(tmp_path: Path) -> None:
    place = project(tmp_path)
    assert ["calc-1", "calc-2", "calc-3"] == [ran(place, "--new") for _ in range(3)]
    assert "calc-4" == ran(place, check="test -e x")
    for path in ("calc-9", "calc-20260128-100000-ab12"):  # one that was left out by hand, and a date is no number
        (place / ".jumar/loops" / path).mkdir()
    assert "calc-10" == ran(place, "--new")
    assert "calc-4" == ran(place, check="test -e x")
    assert "calc-11" == ran(place, check="test -e y")


def planted(place: Path, name: str, like: str) -> None:
    """Do as a program of a loop could: another loop like it that never ended, as if it came from another machine."""
    loop = place / ".jumar/loops" / name
    shutil.copytree(place / ".jumar/loops" / like, loop)
    data = json.loads((unmarked(loop) / "loop.json").read_text())
    (loop / "loop.json").write_text(json.dumps({**data, "loop_id": name, "created_at": "2099-01-01T00:00:00.000Z", "seal": None}))
    for part in ("attempts", "decisions"):
        shutil.rmtree(loop / part)


def test_a_loop_that_a_program_made_up_is_not_gone_on_with(tmp_path: Path) -> None:
    place = project(tmp_path)
    assert ran(place) == "calc-1"
    planted(place, "calc-9", "calc-1")
    assert ran(place) == "calc-1"
    shutil.rmtree(place / ".jumar/loops/calc-1")
    assert ran(place) == "calc-9", "where there is no other, it may have been copied"


def test_a_loop_that_a_program_made_up_beside_that_of_a_configuration_is_not_either(tmp_path: Path) -> None:
    write_loop(place := project(tmp_path), [0.6, 0.7])
    jumar(place, "run", "--no-input", check=0)
    planted(place, "t-2", "t")
    assert jumar_json(place, "run", "-n", "3")["loop_id"] == "t"


def test_after_the_tenth_the_newest_is_still_known(tmp_path: Path) -> None:
    place = project(tmp_path)
    for _ in range(10):
        ran(place, "--new")
    assert "calc-10" == jumar_json(place, "show")["loop_id"]
    assert "calc-10" == ran(place), "the newest of these words, not calc-9"


def test_an_old_long_name_is_gone_on_with(tmp_path: Path) -> None:
    place = project(tmp_path)
    for words in (["--id", "calc-20260128-100000-ab12"], []):
        assert "calc-20260128-100000-ab12" == ran(place, *words)
    assert ("calc-20260128-100000-ab12",) == list_loops(place / ".jumar")
    assert "calc-20260128-100000-ab12" == jumar_json(place, "show")["loop_id"]


def test_a_configuration_without_a_name_and_command_lines_share_a_root_and_not_their_loops(tmp_path: Path) -> None:
    place = project(tmp_path)
    config = write_loop(place, [0.6])
    config.write_text(config.read_text().replace('id = "t"\n', ""))
    assert "calc-1" == ran(place)
    assert "calc" == jumar_json(place, "run")["loop_id"]
    assert "calc-2" == jumar_json(place, "run", "--new")["loop_id"]
    assert "calc-3" == ran(place, "--new")
    assert "calc-2" == jumar_json(place, "run", "-n", "2")["loop_id"], "the newest of the configuration's, not of the root's"
    assert "calc-4" == jumar_json(place, "run", "--new")["loop_id"]
    shutil.rmtree(place / ".jumar/loops/calc")
    assert "calc-4" == jumar_json(place, "run", "-n", "3")["loop_id"]


def test_a_name_that_was_given_is_that_loop_whoever_made_it(tmp_path: Path) -> None:
    place = project(tmp_path)
    write_loop(place, [0.6], loop="").write_text((place / "jumar.toml").read_text().replace('"t"', '"calc"'))
    assert "calc-1" == ran(place)
    assert "calc-2" == ran(place, "--new")
    assert "calc" == jumar_json(place, "run")["loop_id"]
    assert "calc-1" == ran(place, "--id", "calc-1")
    assert "this loop has ended before" in jumar(place, "run", "--id", "calc-2", check=2).stdout, "its own words, not the file's"
    assert "the configuration differs" in jumar(place, "run", "jumar.toml", "--id", "calc-2", check=2).stderr
    assert "calc-3" == jumar_json(place, "run", "--new")["loop_id"]


CONFIG = """
[generator]
command = "echo $JUMAR_ITERATION > out.txt"
[[checks]]
name = "two"
command = "grep -q 2 out.txt"
"""


def configured(tmp_path: Path) -> Path:
    """A project whose loop is done after its second iteration."""
    place = project(tmp_path)
    (place / "out.txt").write_text("0\n")
    (place / "jumar.toml").write_text(CONFIG)
    assert ("calc", 2) == ended(place)
    return place


def ended(place: Path, *words: str, check: int = 0) -> tuple[str, int]:
    made = json.loads(jumar(place, "run", "--json", *words, check=check).stdout)
    return made["loop_id"], made["final_iteration"]


def test_a_loop_that_is_done_is_begun_anew_where_its_result_was_taken_away(tmp_path: Path) -> None:
    place = configured(tmp_path)
    told = "loop 'calc' reached its target, and the directory is not what it left any more: this is a new loop"
    assert ("calc", 2) == ended(place, check=2)

    (place / "out.txt").write_text("0\n")
    said = jumar(place, "run", check=0).stdout
    assert told in " ".join(said.split())
    assert "calc-2" in said
    assert re.search(r"^ +0 +0\.0 +0/1", said, re.MULTILINE), "the start is judged anew"
    assert "2\n" == (place / "out.txt").read_text()
    assert ("calc-2", 2) == ended(place, check=2), "it holds the result of this one now"


def test_it_is_resumed_where_more_is_asked_of_it_or_it_is_named(tmp_path: Path) -> None:
    place = configured(tmp_path)
    (place / "out.txt").write_text("0\n")
    assert ("calc", 2) == ended(place, "--id", "calc", check=2)
    assert ("calc", 2) == ended(place, "--resume", "require", check=2)
    assert ("calc", 4) == ended(place, "--keep-going", "-n", "4")


def test_a_limit_or_another_configuration_begins_nothing_anew(tmp_path: Path) -> None:
    place = configured(tmp_path)
    (place / "out.txt").write_text("0\n")
    config = (place / "jumar.toml").read_text()
    (place / "jumar.toml").write_text(config.replace("two", "other"))
    assert "the configuration differs" in jumar(place, "run", check=2).stderr
    (place / "jumar.toml").write_text(config.replace("grep -q 2", "grep -q 9"))
    assert ("calc-2", 1) == ended(place, "--new", "-n", "1", check=10)
    (place / "out.txt").write_text("0\n")
    assert ("calc-2", 1) == ended(place, "-n", "1", check=2), "a limit ended it, and is not to be had a second time"


def test_keep_going_makes_another_command(tmp_path: Path) -> None:
    place = project(tmp_path)
    (place / "out.txt").write_text("0\n")
    words = ("--check", "grep -q . out.txt", "--", "sh", "-c", "echo $JUMAR_ITERATION >> out.txt")
    assert ("calc-1", 2) == ended(place, "-n", "2", "--keep-going", *words)
    assert ("calc-2", 0) == ended(place, "-n", "3", *words), "not the loop that was to keep going, which has more to do"
    assert ("calc-1", 4) == ended(place, "-n", "4", "--keep-going", *words)


def test_four_at_once_get_four_loops(tmp_path: Path) -> None:
    place = project(tmp_path)
    words = [
        sys.executable,
        "-m",
        "jumar.cli.entry",
        "run",
        "--json",
        "--new",
        "--isolation",
        "copy",
        "-n",
        "1",
        "--check",
        "false",
    ]
    started = [subprocess.Popen([*words, *AGENT], cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
    found = [(*process.communicate(timeout=60), process.returncode) for process in started]
    assert [10] * 4 == [code for _, _, code in found], found
    assert ["calc-1", "calc-2", "calc-3", "calc-4"] == sorted(json.loads(out)["loop_id"] for out, _, _ in found)
    assert ("calc-1", "calc-2", "calc-3", "calc-4") == list_loops(place / ".jumar")
    assert json.loads(jumar(place, "verify", "--json", check=0).stdout)["ok"]
