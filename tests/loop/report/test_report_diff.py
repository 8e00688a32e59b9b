"""What changed between two iterations, against real snapshots."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from jumar import BestOutputTracker, NotFoundError
from jumar.loop.report.diff import DiffLimits, diff_snapshots, render_diff
from jumar.loop.store.loop_store import LoopStore


@pytest.fixture
def tracker() -> BestOutputTracker:
    os.mkdir("tree")
    return BestOutputTracker("loop-001")


def snapshot(tracker: BestOutputTracker, number: int, score: float = 0.8) -> LoopStore:
    names = ("validation", "completeness", "correctness", "readability", "efficiency")
    tracker.record_iteration(iteration_number=number, dimensions=dict.fromkeys(names, score), artifacts=["tree"])
    return tracker.store


def write(name: str, text: str | bytes, mode: int = 0o644) -> None:
    path = Path("tree", name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(mode)


def test_added_removed_changed_and_unchanged(tracker: BestOutputTracker):
    write("same.txt", "same\n")
    write("old.txt", "old\n")
    write("both.txt", "one\ntwo\nthree\n")
    snapshot(tracker, 1, 0.72)
    os.remove("tree/old.txt")
    write("new/deep.txt", "new\n")
    write("both.txt", "one\n2\nthree\n")
    diff = diff_snapshots(snapshot(tracker, 2, 0.85), 1, 2)
    assert [change.path for change in diff.added] == ["tree/new/deep.txt"]
    assert [change.path for change in diff.removed] == ["tree/old.txt"]
    assert [(change.path, change.what) for change in diff.changed] == [("tree/both.txt", ("content",))]
    assert diff.unchanged == 1
    assert diff.score_delta == 13
    assert diff.changed[0].text == "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
    assert diff.added[0].text == "@@ -0,0 +1 @@\n+new\n"
    assert diff.dimensions["validation"] == (0.72, 0.85)


def test_the_rendering(tracker: BestOutputTracker):
    write("a.txt", "one\n")
    write("run.sh", "echo\n", 0o644)
    snapshot(tracker, 1, 0.72)
    write("a.txt", "two")
    write("run.sh", "echo\n", 0o755)
    write("b.txt", "b\n")
    assert render_diff(diff_snapshots(snapshot(tracker, 2, 0.85), 1, 2)) == (
        "compared  iteration 1 → 2, score 72 → 85 (+13)\n"
        "          validation    0.72 → 0.85  +0.13\n"
        "          completeness  0.72 → 0.85  +0.13\n"
        "          correctness   0.72 → 0.85  +0.13\n"
        "          readability   0.72 → 0.85  +0.13\n"
        "          efficiency    0.72 → 0.85  +0.13\n"
        "files     1 added, 0 removed, 2 changed, 0 unchanged\n"
        "\n"
        "A tree/b.txt\n"
        "M tree/a.txt\n"
        "M tree/run.sh  (mode 0644 → 0755)\n"
        "\n"
        "--- /dev/null\n"
        "+++ 2/tree/b.txt\n"
        "@@ -0,0 +1 @@\n"
        "+b\n"
        "\n"
        "--- 1/tree/a.txt\n"
        "+++ 2/tree/a.txt\n"
        "@@ -1 +1 @@\n"
        "-one\n"
        "+two\n"
        "\\ No newline at end of file\n"
    )


def test_equal_snapshots(tracker: BestOutputTracker):
    write("a.txt", "one\n")
    snapshot(tracker, 1)
    diff = diff_snapshots(snapshot(tracker, 2), 1, 2)
    assert diff.is_empty
    assert render_diff(diff) == "compared  iteration 1 → 2, score 80 → 80 (0)\nfiles     no difference in 1 path\n"


@pytest.mark.skipif(shutil.which("patch") is None, reason="patch is not installed")
def test_the_text_is_a_patch_that_applies(tracker: BestOutputTracker):
    write("a.txt", "".join(f"line {number}\n" for number in range(60)))
    write("gone.txt", "x\ny\n")
    store = snapshot(tracker, 1)
    write("a.txt", "".join(f"line {number}\n" for number in range(60) if number % 17) + "end without a line feed")
    os.remove("tree/gone.txt")
    write("new.txt", "n")
    text = render_diff(diff_snapshots(snapshot(tracker, 2), 1, 2))
    shutil.copytree(store.artifacts(1), "apply")
    for path in Path("apply").rglob("*"):
        path.chmod(0o755)
    done = subprocess.run(["patch", "-p1", "-d", "apply", "-E"], input=text, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    after = {path.relative_to("apply"): path.read_text() for path in Path("apply").rglob("*") if path.is_file()}
    root = store.artifacts(2)
    assert after == {path.relative_to(root): path.read_text() for path in root.rglob("*") if path.is_file()}


def test_binary_undecodable_large_and_long_files_are_only_named(tracker: BestOutputTracker):
    for name in ("binary", "latin", "large", "long"):
        write(name, "x\n")
    snapshot(tracker, 1)
    write("binary", b"\x00\x01\x02")
    write("latin", b"caf\xe9\n")
    write("large", "x" * 3000)
    write("long", "x\n" * 200)
    diff = diff_snapshots(snapshot(tracker, 2), 1, 2, limits=DiffLimits(file_bytes=2000, file_lines=100))
    assert {change.path: change.note for change in diff.changed} == {
        "tree/binary": "binary (3 B)",
        "tree/latin": "not UTF-8 (5 B)",
        "tree/large": "too large to show (3.0 kB)",
        "tree/long": "too long to compare (200 lines)",
    }
    assert all(change.text is None for change in diff.changed)


def test_the_whole_diff_is_bounded(tracker: BestOutputTracker):
    for number in range(10):
        write(f"{number}.txt", "x\n")
    snapshot(tracker, 1)
    for number in range(10):
        write(f"{number}.txt", "y\n" * 5)
    diff = diff_snapshots(snapshot(tracker, 2), 1, 2, limits=DiffLimits(total_lines=20))
    assert [change.note for change in diff.changed] == [""] * 3 + ["not shown: the diff is too long"] * 7
    diff = diff_snapshots(tracker.store, 1, 2, limits=DiffLimits(total_letters=100))
    assert sum(change.text is not None for change in diff.changed) == 4


def test_links_are_compared_by_their_target_and_never_followed(tracker: BestOutputTracker):
    Path("secret").write_text("secret\n")
    os.symlink("../secret", "tree/link")
    write("was-file", "x\n")
    snapshot(tracker, 1)
    os.remove("tree/link")
    os.symlink("elsewhere", "tree/link")
    os.remove("tree/was-file")
    os.symlink("link", "tree/was-file")
    diff = diff_snapshots(snapshot(tracker, 2), 1, 2)
    assert [(change.path, change.what) for change in diff.changed] == [("tree/link", ("content",)), ("tree/was-file", ("kind",))]
    text = render_diff(diff)
    assert "-link to ../secret" in text
    assert "+link to elsewhere" in text
    assert "secret\n+" not in text
    assert "M tree/was-file  (file → symlink)" in text


def test_a_fifo_is_noted_and_never_opened(tracker: BestOutputTracker):
    write("a", "x\n")
    snapshot(tracker, 1)
    os.mkfifo("tree/pipe")
    diff = diff_snapshots(snapshot(tracker, 2), 1, 2)
    assert diff.added[0].path == "tree/pipe"
    assert diff.added[0].note.startswith("not stored: ")


def test_hostile_names_and_contents_do_not_reach_the_terminal(tracker: BestOutputTracker):
    name = "\x1b]0;owned\x07\n--- a"
    write(name, "plain\n")
    os.makedirs(os.fsencode("tree") + b"/\xff\xfe")
    with open(b"tree/\xff\xfe/x", "wb") as file:
        file.write(b"\x1b[2Jcleared\r\n\x9b31m".replace(b"\x9b", "\x9b".encode()))
    store = snapshot(tracker, 1)
    write(name, "\x1b[8mhidden\n")
    diff = diff_snapshots(snapshot(tracker, 2), 1, 2)
    text = render_diff(diff)
    assert re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]", text) is None
    assert r"M tree/\x1b]0;owned\x07\n--- a" in text.splitlines()
    assert r"+\x1b[8mhidden" in text.splitlines()
    whole = json.loads(json.dumps(diff_snapshots(store, 2, 1).to_json()))
    assert whole["changed"][0]["path"] == f"tree/{name}"


def test_a_removed_snapshot_is_compared_by_its_manifest(tracker: BestOutputTracker):
    write("a", "x\n")
    store = snapshot(tracker, 1)
    write("a", "y\n")
    snapshot(tracker, 2)
    shutil.rmtree(store.artifacts(1))
    diff = diff_snapshots(store, 1, 2)
    assert diff.changed[0].what == ("content",)
    assert diff.changed[0].note == "the snapshot was removed by a cleanup"


def test_without_text(tracker: BestOutputTracker):
    write("a", "x\n")
    snapshot(tracker, 1)
    write("a", "y\n")
    (change,) = diff_snapshots(snapshot(tracker, 2), 1, 2, text=False).changed
    assert (change.text, change.note) == (None, "")


def test_an_unknown_iteration(tracker: BestOutputTracker):
    snapshot(tracker, 1)
    with pytest.raises(NotFoundError, match="no iteration 9"):
        diff_snapshots(tracker.store, 1, 9)
