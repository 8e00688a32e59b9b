"""A disk that refuses to read the working directory says nothing about what the generator made: the iteration is kept later."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from commands import call

from jumar.errors import ArtifactError, ConflictError
from jumar.loop.engine.take_snapshot import Taking
from jumar.loop.store.loop_store import Pending
from jumar.loop.workspace.clearing import why_of_the_tree

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
    for number in (errno.EIO, errno.ENFILE, errno.ENOMEM, errno.ESTALE):
        assert None is why_of_the_tree(refused(number, kind))


def test_an_iteration_whose_tree_could_not_be_read_once_is_kept_by_the_next_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.md").write_text("0\n")
    (tmp_path / "jumar.toml").write_text(CONFIGURATION)
    take, refusals = Taking.take, list[Path]()

    def scandir(path: str) -> object:
        refusals.append(Path(path))
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    def take_refused(taking: Taking, stage: Mapping[str, Any]) -> Pending:
        with pytest.MonkeyPatch.context() as patch:
            if not refusals and (tmp_path / "calls.log").exists():
                patch.setattr(os, "scandir", scandir)
            return take(taking, stage)

    monkeypatch.setattr(Taking, "take", take_refused)
    ended = call("run", "--json", check=2)
    assert [tmp_path] == refusals
    assert "Input/output error" in ended.err
    done = call("run", "--json", check=0).document
    assert (2, 2) == (done["selected_iteration"], done["spend"]["iterations"])
    assert {} == done["failures"]
    assert ["1", "2"] == (tmp_path / "calls.log").read_text().split()
