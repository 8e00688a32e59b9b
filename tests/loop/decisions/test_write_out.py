"""An iteration's files, listed and written to a directory, wherever the store keeps them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from commands import call, call_json
from decide_kit import File, Link, new_loop, read_tree, record
from store_kit import memory_place

from jumar.loop.decisions.cleanup import cleanup
from jumar.loop.decisions.plan import snapshot_of
from jumar.loop.decisions.write_out import write_out
from jumar.loop.snapshots import snapshot
from jumar.loop.snapshots.content import Content
from jumar.loop.snapshots.manifest import Manifest
from jumar.loop.store.loop_store import LoopStore

UNDECODABLE = os.fsdecode(b"caf\xe9.txt")
TREE = {
    "a.txt": File(b"better", 0o600),
    "src/run.sh": File(b"#!/bin/sh\n", 0o750),
    "src/\x1b[31mred": File(b""),
    UNDECODABLE: File(b"x" * 70_000),
    "notes": Link("src/run.sh"),
}


@pytest.fixture(params=[200, 2], ids=["plain", "by hash"])
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> LoopStore:
    """A loop here with three iterations, the second of them the best and the third of them that of TREE without a score."""
    monkeypatch.setattr(snapshot, "PLAIN_FILES", request.param)
    store = new_loop(Path.cwd() / "work")
    record(store, 0, {"a.txt": File(b"start")}, score=50)
    record(store, 1, TREE, score=80)
    record(store, 2, {**TREE, "more.txt": File(b"more")}, score=None)
    return store


def files(*arguments: object, check: int = 0) -> str:
    called = call("files", *arguments, "--root", "work/.jumar", check=check)
    return called.out if check == 0 else called.err


def altered(store: LoopStore, old: bytes) -> None:
    for path in store.paths.root.rglob("*"):
        if path.is_file() and not path.is_symlink() and old in path.read_bytes():
            path.chmod(0o644)
            path.write_bytes(path.read_bytes().replace(old, old[::-1]))


@pytest.mark.usefixtures("store")
def test_the_files_of_the_selected_iteration_are_listed() -> None:
    assert files().splitlines() == [
        "-rw-------       6  a.txt",
        "-rw-r--r--  70,000  caf\\xe9.txt",
        "lrwxrwxrwx      10  notes → src/run.sh",
        "-rw-r--r--       0  src/\\x1b[31mred",
        "-rwxr-x---      10  src/run.sh",
        "files     5 files, 70.0 kB in iteration 1 of polish",
    ]
    assert "more.txt" in files("polish", 2)
    assert files(0, "-q") == "-rw-r--r--  5  a.txt\n"
    document = call_json("files", "2", "--root", "work/.jumar")
    assert (document["loop_id"], document["iteration"]) == ("polish", 2)
    assert {each["path"]: (each["mode"], each["size"]) for each in document["files"]}["more.txt"] == ("0644", 4)


@pytest.mark.usefixtures("store")
def test_they_are_written_with_their_modes_to_a_directory_that_is_new_or_empty() -> None:
    assert files("polish", 1, "-o", "new/look") == "wrote 5 files, 70.0 kB of iteration 1 to new/look\n"
    assert read_tree(Path("new/look")) == TREE
    Path("empty").mkdir()
    written = call_json("files", "-o", "empty", "--root", "work/.jumar")
    assert written == {"loop_id": "polish", "iteration": 1, "output": f"{Path.cwd()}/empty", "files": 5, "bytes": 70_026}
    assert read_tree(Path("empty")) == TREE
    assert "is not empty (a.txt, " in files("-o", "empty", check=2)
    (Path("empty") / "a.txt").write_text("mine")
    call("verify", "--root", "work/.jumar", check=0)  # what is written shares nothing with the store


def test_what_cannot_be_written_leaves_nothing_behind(store: LoopStore) -> None:
    assert "lies in " in files("-o", "work/.jumar/loops/polish/look", check=2)
    assert "there is no iteration 7 " in files(7, "-o", "look", check=2)
    altered(store, b"#!/bin/sh\n")
    Path("empty").mkdir()
    for target in ("look", "empty"):
        assert "has another content than was recorded" in files("-o", target, check=14)
    assert not Path("look").exists()
    assert list(Path("empty").iterdir()) == []


def test_links_that_lead_out_and_files_of_git_are_refused(store: LoopStore, monkeypatch: pytest.MonkeyPatch) -> None:
    record(store, 3, {**TREE, "out": Link("../other"), "in": Link("src")})
    assert "1 of the snapshot's symbolic links lead out of" in files(3, "-o", "look", check=2)
    assert not Path("look").exists()

    def planted(store: LoopStore, iteration: int) -> tuple[Manifest, Content]:
        manifest, content = snapshot_of(store, iteration)
        path = ".git/config"
        return replace(manifest, entries={path: replace(manifest.entries["a.txt"], path=path)}), content

    monkeypatch.setattr("jumar.loop.decisions.write_out.snapshot_of", planted)
    assert "belongs to git" in files(1, "-o", "look", check=2)
    assert not Path("look").exists()


def test_a_snapshot_that_was_cleaned_up_is_told(store: LoopStore) -> None:
    record(store, 3, TREE, score=60)
    record(store, 4, TREE, score=60)
    number = cleanup(store, keep=0, by="ada", at="2026-01-25T10:00:00Z").removed[0]
    for further in ((), ("-o", "look")):
        assert f"the snapshot of iteration {number} was cleaned up" in files(number, *further, check=2)
    assert not Path("look").exists()


def test_an_interruption_leaves_no_file(store: LoopStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("jumar.core.files.sync_paths", interrupted)
    with memory_place() as place:
        (place / "look").mkdir()
        with pytest.raises(KeyboardInterrupt):
            write_out(store, 1, place / "look")
        assert list((place / "look").iterdir()) == []
