"""What doctor says of machines that lack something."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest

from jumar.app import machine
from jumar.app.machine import Row, disk_row, git_row, python_row, root_rows, terminal_row


def refusing(number: int):
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return refuse


def rows(root: Path) -> dict[str, Row]:
    return {row.name: row for row in root_rows(root)}


def test_python():
    assert ["red", "green", "green"] == [python_row(version).state for version in ((3, 10, 14), (3, 11, 0), (4, 0, 0))]
    assert "install Python 3.11" in python_row((3, 10, 14)).fix


def test_a_usual_file_system_is_green_and_left_as_it_was(fresh_place: Path):
    found = rows(fresh_place / "deep" / ".jumar")
    assert dict.fromkeys(("root", "hard links", "locks", "renames"), "green") == {name: row.state for name, row in found.items()}
    assert [] == list(fresh_place.iterdir())


@pytest.mark.parametrize(
    ("name", "target", "number", "said"),
    [
        ("hard links", "os.link", errno.EPERM, "Operation not permitted"),
        ("hard links", "os.link", errno.EOPNOTSUPP, "not supported"),
        ("locks", "fcntl.flock", errno.ENOLCK, "No locks available"),
        ("renames", "os.rename", errno.EXDEV, "cross-device"),
    ],
)
def test_what_a_file_system_refuses_is_red(
    name: str, target: str, number: int, said: str, fresh_place: Path, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as patch:
        patch.setattr(target, refusing(number))
        found = rows(fresh_place)
    assert [name] == [row.name for row in found.values() if row.state == "red"]
    assert said in found[name].detail
    assert "--root" in found[name].fix
    assert [] == list(fresh_place.iterdir())


def test_locks_that_do_not_exclude_are_red(fresh_place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("fcntl.flock", lambda *_: None)
    assert "a second time" in rows(fresh_place)["locks"].detail


def test_links_that_are_copies_are_red(fresh_place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("os.link", lambda one, other: Path(other).write_bytes(Path(one).read_bytes()))
    assert "a link is a copy" in rows(fresh_place)["hard links"].detail


def test_disk_space(fresh_place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(machine, "free_bytes", lambda _: 1_000_000_000)
    sizes = (None, 0, 99_000_000, 101_000_000, 500_000_000, 501_000_000)
    assert ["green", "green", "green", "yellow", "yellow", "red"] == [disk_row(fresh_place, size).state for size in sizes]
    monkeypatch.setattr(machine, "free_bytes", lambda _: 99_999_999)
    row = disk_row(fresh_place)
    assert ("red", True) == (row.state, "--root" in row.fix)


def test_git_that_is_missing_or_broken_is_yellow(monkeypatch: pytest.MonkeyPatch):
    assert "green" == git_row().state
    with monkeypatch.context() as patch:
        patch.setattr("shutil.which", lambda _: None)
        assert ("yellow", True) == (git_row().state, "--branch" in git_row().detail)
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "run", refusing(errno.ENOEXEC))
        assert "yellow" == git_row().state


def test_terminals():
    assert ["green", "green", "yellow", "yellow"] == [terminal_row(name).state for name in ("UTF-8", "utf8", "ascii", None)]
