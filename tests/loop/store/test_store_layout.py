"""Names on disk."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from jumar.errors import StoreDamagedError, StoreWriteError, UsageError
from jumar.loop.store.layout import (
    IGNORED,
    LoopPaths,
    check_loop_id,
    iteration_name,
    iteration_number,
    list_loops,
    loops_directory,
    prepare_root,
    root_of,
    runs_directory,
)
from jumar.loop.store.loop_store import LoopStore
from jumar.model import IterationRecord


def test_iteration_names_go_both_ways() -> None:
    names = {0: "iteration-000", 7: "iteration-007", 999: "iteration-999", 1000: "iteration-1000", 123456: "iteration-123456"}
    assert {number: iteration_name(number) for number in names} == names
    assert {iteration_number(name) for name in names.values()} == set(names)
    strange = (
        "iteration-7",
        "iteration-0007",
        "iteration-",
        "iteration--01",
        "7",
        "x",
        "iteration-٠٠٧",
        ".tmp-7",
        "iteration-007.tmp",
    )
    assert [iteration_number(name) for name in strange] == [None] * len(strange)


@pytest.mark.parametrize("loop_id", ["a", "A.b_c-9", "x" * 100, "_x", "0"])
def test_allowed_loop_ids(loop_id: str) -> None:
    assert check_loop_id(loop_id) == loop_id


def test_a_root_is_prepared_once_and_keeps_what_is_in_it(fresh_place: Path) -> None:
    root = fresh_place / "deep" / "root"
    prepare_root(root)
    assert (root / ".gitignore").read_bytes() == IGNORED
    assert sorted(path.name for path in root.iterdir()) == [".gitignore", "locks", "loops"]
    (root / ".gitignore").write_bytes(b"mine")
    prepare_root(root)
    assert (root / ".gitignore").read_bytes() == b"mine"


def test_a_project_that_is_the_root_is_not_ignored_as_a_whole(fresh_place: Path) -> None:
    (fresh_place / "main.py").write_bytes(b"")
    store = LoopStore.create("loops/mine", "mine", {}, workdir=fresh_place, created_at="t")
    assert not (fresh_place / ".gitignore").exists()
    assert (fresh_place / "loops" / ".gitignore").read_bytes() == (fresh_place / "locks" / ".gitignore").read_bytes() == IGNORED
    assert list_loops(fresh_place) == ("mine",)
    record = store.add(IterationRecord(iteration_number=1, timestamp="t", quality_score=1), source=fresh_place, paths=["."])
    assert [detail.path for detail in record.artifacts_detail] == ["main.py"]


def test_a_root_that_was_cut_off_is_completed(fresh_place: Path) -> None:
    (fresh_place / "root" / "loops").mkdir(parents=True)
    (fresh_place / "root" / ".tmp-dead").write_bytes(b"")
    prepare_root(fresh_place / "root")
    assert (fresh_place / "root" / ".gitignore").read_bytes() == IGNORED


def test_a_root_that_cannot_be_created(fresh_place: Path) -> None:
    (fresh_place / "file").write_bytes(b"")
    with pytest.raises(StoreWriteError, match="could not create"):
        prepare_root(fresh_place / "file" / "root")


def test_a_gitignore_that_somebody_else_writes_meanwhile(fresh_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.link

    def faster(source: object, target: Path) -> None:
        target.write_bytes(b"theirs")
        real(source, target)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(os, "link", faster)
    prepare_root(fresh_place / "root")
    assert (fresh_place / "root" / ".gitignore").read_bytes() == b"theirs"


def test_loops_are_directories_with_an_identity(fresh_place: Path) -> None:
    assert list_loops(fresh_place) == ()
    prepare_root(fresh_place)
    for name in ("b", "a", ".tmp-1", "no-identity"):
        (loops_directory(fresh_place) / name).mkdir()
    for name in ("b", "a", ".tmp-1"):
        (loops_directory(fresh_place) / name / "loop.json").write_bytes(b"")
    (loops_directory(fresh_place) / "file").write_bytes(b"")
    assert list_loops(fresh_place) == ("a", "b")
    (fresh_place / "other").mkdir()
    (fresh_place / "other" / "loops").write_bytes(b"")
    assert list_loops(fresh_place / "other") == ()


@pytest.mark.parametrize("package", ["package.json", "packages/a/package.json", "a/package.json", "../package.json"])
def test_among_packages_of_npm_a_new_root_has_its_loops_where_runners_look_for_no_tests(fresh_place: Path, package: str) -> None:
    (fresh_place / ".git").mkdir()
    place, file = fresh_place / "x", fresh_place / "x" / package
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("{}")
    place.mkdir(exist_ok=True)
    root = place / ".jumar"
    assert loops_directory(root) == root / "node_modules" / "loops"
    assert runs_directory(root) == root / "node_modules" / "runs"
    store = LoopStore.create(loops_directory(root) / "t", "t", {}, workdir=place, created_at="t")
    file.unlink()
    assert loops_directory(root) == root / "node_modules" / "loops"
    assert list_loops(root) == ("t",)
    assert sorted(path.name for path in root.iterdir()) == [".gitignore", "locks", "node_modules"]
    assert store.paths.root == root
    assert store.paths.lock == root / "locks" / "t"
    assert store.paths.stop_files() == (root / "STOP", root / "node_modules" / "loops" / "t" / "STOP")
    place.rename(fresh_place / "y")
    assert LoopStore.open(fresh_place / "y" / ".jumar/node_modules/loops/t").workdir == fresh_place / "y"


@pytest.mark.parametrize(("ours", "other"), [("loops", "node_modules/loops"), ("node_modules/loops", "loops")])
@pytest.mark.parametrize("loop", [None, "{}", '{"nonce": "a", "begun_inside": "t"}', "[]"])
def test_where_loops_lie_in_two_places_they_are_where_this_user_began_one(
    fresh_place: Path, ours: str, other: str, loop: str | None
) -> None:
    LoopStore.create(fresh_place / ours / "t", "t", {}, workdir=None, created_at="t")
    (fresh_place / other / "x").mkdir(parents=True)
    if loop is not None:
        (fresh_place / other / "x/loop.json").write_text(loop)
    assert loops_directory(fresh_place) == fresh_place / ours
    shutil.copytree(fresh_place / ours / "t", fresh_place / other / "t")
    with pytest.raises(StoreDamagedError, match="one of the two was put there: move it elsewhere"):
        loops_directory(fresh_place)


@pytest.mark.parametrize("nonce", [{}, {"nonce": "n"}])
def test_runs_of_cases_are_not_hidden_by_a_directory_of_loops_either(fresh_place: Path, nonce: dict[str, str]) -> None:
    runs = fresh_place / "node_modules" / "runs"
    (runs / "r").mkdir(parents=True)
    (runs / "r" / "run.json").write_text(json.dumps(nonce))
    (fresh_place / "loops").mkdir()
    assert runs_directory(fresh_place) == runs


@pytest.mark.parametrize(
    "package", ["../../package.json", "a/b/c/package.json", "node_modules/a/package.json", ".a/package.json"]
)
def test_packages_further_away_say_nothing(fresh_place: Path, package: str) -> None:
    place = fresh_place / "w" / "x"
    (place / ".git").mkdir(parents=True)
    (place / package).parent.mkdir(parents=True, exist_ok=True)
    (place / package).write_text("{}")
    assert loops_directory(place / ".jumar") == place / ".jumar" / "loops"


def test_a_folder_that_may_not_be_entered_has_no_packages(fresh_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (fresh_place / "locked").mkdir()
    stat = os.stat

    def refused(path: Any, *arguments: Any, **options: Any) -> os.stat_result:  # root is refused nothing, hence not chmod
        if "locked/" in str(path):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return stat(path, *arguments, **options)

    monkeypatch.setattr(os, "stat", refused)
    assert loops_directory(fresh_place / ".jumar") == fresh_place / ".jumar" / "loops"


def test_a_root_keeps_its_loops_where_they_are_and_a_package_is_no_place_for_them(fresh_place: Path) -> None:
    prepare_root(fresh_place / ".jumar")
    (fresh_place / "package.json").write_text("{}")
    prepare_root(fresh_place / ".jumar")
    assert loops_directory(fresh_place / ".jumar") == fresh_place / ".jumar" / "loops"
    assert not (fresh_place / ".jumar" / "node_modules").exists()
    assert loops_directory(fresh_place) == fresh_place / "loops"  # npm ci empties node_modules
    LoopStore.create("new/loops/t", "t", {}, workdir=fresh_place, created_at="t")  # where the caller says
    assert list_loops(Path("new")) == ("t",)


def test_the_root_of_a_loop() -> None:
    roots = {"a/.jumar/loops/t": "a/.jumar", "a/.jumar/node_modules/loops/t": "a/.jumar", "loops/t": ".", "a/t": "a/t"}
    assert {path: str(root_of(Path(path))) for path in roots} == roots


def test_every_path_lies_in_the_loop_and_has_a_name_of_its_own(fresh_place: Path) -> None:
    paths = LoopPaths(fresh_place / "x")
    names = [name for name in dir(LoopPaths) if not name.startswith("_") and isinstance(getattr(LoopPaths, name), property)]
    found = [getattr(paths, name) for name in names if name != "subdirectories"]
    assert all(path.is_relative_to(paths.directory) for path in found)
    assert len(set(found)) == len(found)
    assert {path.name for path in paths.subdirectories} == {
        "attempts", "decisions", "iterations", "pending", "readings", "scratch", "set-aside", "undo",
    }  # fmt: skip
    assert paths.attempt_start(12).name == "000012.start.json"
    assert paths.attempt_end(12).name == "000012.end.json"
    assert paths.attempt_scratch(12).name == "000012"
    assert paths.pending_iteration(7) == paths.pending / "iteration-007"
    assert paths.undo_of(3) == paths.undo / "0003"


def test_a_loop_id_with_escapes_is_shown_harmless() -> None:
    with pytest.raises(UsageError, match=r"^'\\x1b\[31m' cannot be a loop id"):
        check_loop_id("\x1b[31m")


def test_a_link_in_a_circle_among_the_loops_is_no_loop(fresh_place: Path) -> None:
    put = fresh_place / "loops"
    put.mkdir()
    (put / "round").symlink_to("round")
    (put / "nowhere").symlink_to("gone")
    assert list_loops(fresh_place) == ()
