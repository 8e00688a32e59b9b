"""A loop that is damaged is set right by the command line, and goes on."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from damage import DAMAGE, edit, rewrite
from loops import jumar, jumar_json
from store_kit import unmarked

AGENT = """
import os, pathlib
number = int(os.environ["JUMAR_ITERATION"])
pathlib.Path("a.txt").write_text(f"{[5, 6, 9, 7, 8, 9][number]}\\n")
"""
ACTS = {case[0]: case[1] for case in DAMAGE if case[0] not in {"newer", "two claims", "set aside", "reading"}}
SAMPLE = ("snapshot", "cut off", "manifest", "renamed", "iteration a decision names", "attempt gone", "decision cut", "undo")
EVERY = os.environ.get("JUMAR_SWEEP") == "full"
CASES = [(case, ours) for case in ACTS for ours in (True, False) if EVERY or (case in SAMPLE and ours == (len(case) % 2 == 0))]

BUILT: list[Path] = []


@pytest.fixture
def place(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose loop ended after three iterations; the second is the best, and was restored."""
    if not BUILT:
        made = tmp_path_factory.mktemp("ended") / "project"
        (made / "sub").mkdir(parents=True)
        (made / "sub/b.txt").write_text("two")
        (made / "link").symlink_to("a.txt")
        (made / "a.txt").write_text("5\n")
        (made.parent / "agent.py").write_text(AGENT)
        (made / "jumar.toml").write_text(
            '[loop]\nid = "t"\nobjective = "o"\nmax_iterations = 3\nrecheck = "off"\n'
            '[generator]\ncommand = "python3 ../agent.py"\n'
            '[[checks]]\nname = "there"\ncommand = "test -s a.txt"\n'
            '[[scorers]]\ndimension = "quality"\ncommand = "sed s/^/0./ a.txt"\n'
        )
        jumar(made, "run", "--no-input", check=0)
        BUILT.append(made)
    shutil.copy(BUILT[0].parent / "agent.py", tmp_path)
    return Path(shutil.copytree(BUILT[0], tmp_path / "project", symlinks=True))


@pytest.mark.sweep
@pytest.mark.parametrize(("case", "ours"), CASES)
def test_after_a_repair_the_loop_goes_on(place: Path, case: str, *, ours: bool) -> None:
    loop = place / ".jumar/loops/t"
    if not ours:
        unmarked(loop)
    ACTS[case](loop)
    jumar_json(place, "repair", "t", "-y")
    if loop.exists():
        jumar(place, "verify", "t", check=0)
    jumar(place, "run", "--no-input", "-n", "5", check=0)
    jumar(place, "verify", "t", check=0)
    assert (place / "a.txt").read_text() == "9\n"
    for command in ("status", "report", "show", "select"):
        jumar(place, command, "t", check=0)


@pytest.mark.parametrize(
    "where", ["", "logs", "set-aside/0001", "recheck/aside", "iterations/iteration-001/artifacts", "undo/0009"]
)
def test_however_deep_directories_lie_the_loop_goes_on_and_can_be_repaired_and_removed(place: Path, where: str) -> None:
    loop, here = place / ".jumar/loops/t", Path.cwd()
    (loop / where / "deep").mkdir(parents=True)
    os.chdir(loop / where / "deep")
    try:
        for _ in range(1_500):
            os.mkdir("d")
            os.chdir("d")
    finally:
        os.chdir(here)
    jumar(place, "run", "--no-input", "-n", "4", check=0)
    jumar(place, "repair", "t", "-y", check=0)
    jumar(place, "verify", "t", check=0)
    jumar(place, "rm", "t", "-y", check=0)
    assert not loop.exists()


def test_it_says_what_it_would_do_and_does_it_with_y(place: Path) -> None:
    loop = place / ".jumar/loops/t"
    assert jumar(place, "repair", check=0).stdout == "t: whole; nothing to repair\n"
    ACTS["stray"](loop)
    rewrite(loop / "iterations/iteration-002/artifacts/a.txt", b"8\n")
    planned = jumar(place, "repair", check=14)
    assert planned.stdout.startswith(
        "iterations/iteration-002/artifacts/a.txt: has another content than was recorded\n    is moved"
    )
    assert "note      nothing was changed; jumar repair -y does it, and what it uncovers" in planned.stdout
    assert (loop / "iterations/notes.txt").exists()
    done = jumar_json(place, "repair", "-y")
    assert (done["loop_id"], done["ok"], done["done"], done["problems"]) == ("t", True, True, [])
    assert [item["path"] for item in done["repairs"]] == ["iterations/iteration-002/artifacts/a.txt", "iterations/notes.txt"]
    assert "| repair |" in jumar(place, "report").stdout
    assert "iteration 3" in jumar(place, "select").stdout  # of the second only the record is left


def test_what_ends_with_14_names_the_repair(place: Path) -> None:
    loop = place / ".jumar/loops/t"
    (loop / "iterations/iteration-001/metrics.json").unlink()
    ended = jumar(place, "run", "-n", "5", check=14)
    assert "`jumar repair t` says what can be done" in ended.stderr
    elsewhere = jumar(place.parent, "report", "--root", "project/.jumar", check=14)
    assert "`jumar repair project/.jumar/loops/t`" in elsewhere.stderr


def test_a_loop_that_cannot_be_read_is_moved_away_whole_and_the_next_run_begins_anew(place: Path) -> None:
    loop = place / ".jumar/loops/t"
    edit(loop / "loop.json", loop_id="other")  # its mark does not fit any more
    (place / ".jumar/work/t").mkdir(parents=True)
    assert "repair t" in jumar(place, "run", check=14).stderr
    assert "nothing was changed; jumar repair t -y does it" in jumar(place, "repair", "t", check=14).stdout
    said = jumar(place, "repair", "t", "-y", check=0).stdout
    assert "the whole loop lies in .jumar/quarantine/0001-t now; jumar run starts anew" in said
    assert not (place / ".jumar/work/t").exists()
    jumar(place, "run", "--no-input", check=0)
    assert (place / ".jumar/quarantine/0001-t/iterations/iteration-003/metrics.json").exists()
    assert (loop / "iterations/iteration-003/metrics.json").exists()


def test_a_loop_of_a_newer_jumar_is_left_alone(place: Path) -> None:
    loop = unmarked(place / ".jumar/loops/t")
    edit(loop / "loop.json", format=7)
    refused = jumar(place, "repair", "t", "-y", check=14)
    assert "Upgrade jumar" in refused.stderr
    assert "jumar repair" not in refused.stderr


def test_what_an_apply_replaced_cannot_be_brought_back_once_it_is_set_aside(place: Path) -> None:
    ACTS["undo"](place / ".jumar/loops/t")
    jumar(place, "repair", "-y", check=0)
    refused = jumar(place, "apply", "--undo", check=2)
    assert "what the apply of iteration 2 replaced was damaged and is set aside: it cannot be undone" in refused.stderr


@pytest.mark.parametrize("gone", [(0,), (3,), (0, 3), (0, 1, 2, 3)])
def test_without_iterations_the_loop_goes_on_after_a_repair_and_pays_on(place: Path, gone: tuple[int, ...]) -> None:
    loop = place / ".jumar/loops/t"
    for number in gone:
        shutil.rmtree(loop / f"iterations/iteration-{number:03d}")
    if len(gone) == 4:
        refused = jumar(place, "run", "--no-input", "-n", "5", check=2)
        assert "After `jumar repair t -y` this loop goes on without it" in " ".join(refused.stderr.split())
    before = len(list((loop / "attempts").glob("*.start.json")))
    jumar(place, "repair", "t", "-y", check=0)
    jumar(place, "run", "--no-input", "-n", "5", check=0)
    jumar(place, "verify", "t", check=0)
    assert (place / "a.txt").read_text() == "9\n"
    assert len(list((loop / "attempts").glob("*.start.json"))) > before


@pytest.mark.parametrize("name", ["attempts/0000900.start.json", "attempts/000900.start.json", "decisions/0900-select.json"])
def test_a_number_that_nobody_reached_makes_nothing_missing(place: Path, name: str) -> None:
    loop = place / ".jumar/loops/t"
    attempts = sorted(path.name for path in (loop / "attempts").iterdir())
    (loop / name).write_text("{}")
    assert len(jumar_json(place, "verify", "t", check=14)["loops"][0]["problems"]) < 3
    jumar(place, "repair", "t", "-y", check=0)
    assert attempts == sorted(path.name for path in (loop / "attempts").iterdir())
    jumar(place, "verify", "t", check=0)


def test_after_a_cleanup_the_loop_goes_on_from_a_snapshot_that_is_left(place: Path) -> None:
    jumar(place, "cleanup", "--keep", "0", check=0)  # deletes the first: 60, better than the start
    for number in (2, 3):
        shutil.rmtree(place / f".jumar/loops/t/iterations/iteration-00{number}/artifacts/sub")
    jumar(place, "repair", "-y", check=0)
    assert jumar_json(place, "select")["selected_iteration"] == 0
    refused = jumar(place, "apply", check=2).stderr
    assert "the snapshot of iteration 2 was damaged, and a repair set it aside" in " ".join(refused.split())
    assert "`jumar select t --use N` selects another" in " ".join(refused.split())
    jumar(place, "run", "--no-input", "-n", "4", check=0)
    jumar(place, "apply", check=0)
    assert (place / "a.txt").read_text() == "8\n"


def test_a_start_that_was_set_aside_is_not_said_to_be_back(place: Path) -> None:
    shutil.rmtree(place / ".jumar/loops/t/iterations/iteration-000/artifacts/sub")
    jumar(place, "repair", "-y", check=0)
    jumar(place, "apply", "--undo", check=0)  # what iteration 3 left
    refused = " ".join(jumar(place, "apply", "--undo", check=2).stderr.split())
    assert "the snapshot of the start was damaged, and a repair set it aside: there is no way back to it" in refused


def test_a_resume_stores_again_what_only_the_working_directory_has(place: Path) -> None:
    (place / "a.txt").write_text("5\n")
    (place / "many").mkdir()
    for number in range(250):
        (place / f"many/{number}.txt").write_text(f"{number}\n")
    jumar(place, "run", "--new", "--id", "large", "--no-input", check=0)
    for pack in (place / ".jumar/objects").glob("*.pack"):
        pack.unlink()
    resumed = jumar(place, "run", "--id", "large", "--no-input", "-n", "4", check=0).stdout
    told = "the contents of 252 files of iteration 2 were missing in objects/; they are stored again, from the working directory"
    assert told in " ".join(resumed.split())
    jumar(place, "verify", "large", check=0)  # the other contents of a.txt are those of many/5.txt and so on
