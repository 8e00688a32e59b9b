"""A disk that refuses to read the working directory says nothing about what the generator made: the iteration is kept later."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from commands import call

from jumar.core import files
from jumar.core.leftovers import is_of_the_machine
from jumar.errors import ArtifactError, ConflictError, UsageError
from jumar.loop.engine import run_context
from jumar.loop.snapshots.manifest import Manifest
from jumar.loop.snapshots.snapshot import take_snapshot
from jumar.loop.workspace.clearing import why_of_the_tree
from jumar.loop.workspace.guard import Finding, Guard

CONFIGURATION = """
[loop]
id = "t"
max_iterations = 2
isolation = "none"
[artifacts]
include = ["*.md"]
[generator]
command = "echo $JUMAR_ITERATION >> calls.log; echo $JUMAR_ITERATION > text.md"
[[scorers]]
dimension = "quality"
command = "echo 0.$(cat text.md)"
"""


def refused(number: int, kind: type[Exception]) -> Exception:
    error = kind("'a' cannot be read")
    error.__cause__ = OSError(number, os.strerror(number))
    return error


@pytest.mark.parametrize("kind", [ArtifactError, ConflictError])
def test_what_the_machine_refuses_is_not_the_trees_fault(kind: type[Exception]) -> None:
    assert "'a' cannot be read" == why_of_the_tree(kind("'a' cannot be read"))
    assert "'a' cannot be read" == why_of_the_tree(refused(errno.EACCES, kind))
    for number in (errno.EIO, errno.ENFILE, errno.ENOMEM, errno.ESTALE, errno.EROFS, errno.ENOSPC):
        error = refused(number, kind)
        assert None is why_of_the_tree(error)
        assert is_of_the_machine(error)
        wrapped = UsageError("not applied")
        wrapped.__cause__ = error
        assert is_of_the_machine(wrapped)


def test_as_many_open_directories_as_there_can_be_are_the_trees_fault() -> None:
    assert "'a' cannot be read" == why_of_the_tree(refused(errno.EMFILE, ArtifactError))


def test_an_iteration_whose_tree_could_not_be_read_once_is_kept_by_the_next_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.md").write_text("0\n")
    (tmp_path / "jumar.toml").write_text(CONFIGURATION)
    take, refusals = run_context.take, list[Path]()

    def scandir(path: str) -> object:
        refusals.append(Path(path))
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    def take_refused(*given: Any, **named: Any) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            if not refusals and (tmp_path / "calls.log").exists():
                patch.setattr(os, "scandir", scandir)
            return take(*given, **named)

    monkeypatch.setattr(run_context, "take", take_refused)
    ended = call("run", "--json", check=2)
    assert [tmp_path] == refusals
    assert "Input/output error" in ended.err
    done = call("run", "--json", check=0).document
    assert (2, 2) == (done["selected_iteration"], done["spend"]["iterations"])
    assert {} == done["failures"]
    assert ["1", "2"] == (tmp_path / "calls.log").read_text().split()


@pytest.mark.parametrize("name", ["prompt.md", "jumar.toml", "metrics.json", "000001.end.json"])
def test_what_the_machine_refuses_to_read_is_not_held_against_the_generator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.md").write_text("0\n")
    (tmp_path / "jumar.toml").write_text(CONFIGURATION)
    whole, refusals = files.read_bytes, list[str]()
    after_generate = Guard.after_generate

    def read(path: str) -> bytes:
        if os.path.basename(path) == name:
            refusals.append(path)
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return whole(path)

    def refuse(guard: Guard, number: int) -> tuple[Finding, ...]:
        for record in tmp_path.glob(f".jumar/loops/t/**/{name}"):
            os.utime(record)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(files, "read_bytes", read)
            return after_generate(guard, number)

    monkeypatch.setattr(Guard, "after_generate", refuse)
    done = call("run", "--json", check=0).document
    assert refusals
    assert (2, 2) == (done["selected_iteration"], done["spend"]["iterations"])
    for record in call("show", "--json", check=0).document["iterations"]:
        assert "was " not in json.dumps(record), record


def test_a_working_directory_that_could_not_be_opened_for_the_best_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.md").write_text("0\n")
    (tmp_path / "jumar.toml").write_text(CONFIGURATION.replace("echo 0.$(cat text.md)", "echo 0.$((9 - $(cat text.md)))"))
    refusals = list[int]()

    def take(*given: Any, **more: Any) -> Manifest:
        if not refusals:
            refusals.append(1)
            raise refused(errno.EIO, ArtifactError)
        return take_snapshot(*given, **more)

    monkeypatch.setattr("jumar.loop.decisions.moves.take_snapshot", take)
    assert "'a' cannot be read" in call("run", "--json", check=1).err
    assert "2\n" == (tmp_path / "text.md").read_text()
    assert 0 == call("run", "--json", check=0).document["selected_iteration"]
    assert "0\n" == (tmp_path / "text.md").read_text()
