"""Reading what a candidate made without being led astray."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable

import pytest

from jumar.core.files import UnreadableFileError
from jumar.errors import ConfigError, StoreWriteError
from jumar.processes import written_files as workfiles
from jumar.processes.usage import read_usage_file
from jumar.processes.written_files import check_relative, find_files, identity, log_name, read_regular, read_text


def names(tmp_path, pattern, **options) -> list[str]:
    return [str(path.relative_to(tmp_path)) for path in find_files(tmp_path, pattern, **options)]


def tree(tmp_path, *paths):
    for path in paths:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(path)


def test_a_path_and_globs(tmp_path):
    tree(
        tmp_path, "b.md", "a.md", "docs/c.md", "docs/deep/d.md", "docs/e.txt", ".git/f.md", ".jumar/loops/x/g.md", "docs/.h/i.md"
    )
    assert ["b.md"] == names(tmp_path, "b.md")
    assert [] == names(tmp_path, "none.md")
    assert [] == names(tmp_path, "docs")
    assert ["a.md", "b.md"] == names(tmp_path, "*.md")
    assert ["a.md", "b.md", "docs/c.md", "docs/deep/d.md"] == names(tmp_path, "**/*.md")
    assert [".git/f.md"] == names(tmp_path, ".git/*.md")
    assert ["b.md", "docs/c.md"] == names(tmp_path, "**/*.md", among={"b.md", "docs/c.md", "docs/e.txt"})
    assert ["docs/e.txt"] == names(tmp_path, "docs/e.txt", among={"b.md"}), "a path that is named needs no other permission"


def test_a_link_may_lead_to_another_file_of_the_tree_but_not_out_of_it(tmp_path):
    work = tmp_path / "work"
    tree(work, "in.md", "docs/real.md")
    (tmp_path / "secret").write_text("key")
    (work / "alias.md").symlink_to("docs/real.md")
    (work / "out.md").symlink_to(tmp_path / "secret")
    (work / "up").symlink_to(tmp_path)
    (work / "dead.md").symlink_to("nowhere")
    (work / "circle.md").symlink_to("circle.md")
    assert ["alias.md"] == names(work, "alias.md")
    assert "docs/real.md" == read_text(work, ("alias.md",))
    assert None is read_text(work, ("dead.md",))
    for pattern in ("out.md", "up/secret", "up/*", "circle.md"):
        with pytest.raises(UnreadableFileError, match="leads out of the working directory"):
            find_files(work, pattern)


def test_texts_are_joined_in_order_each_once(tmp_path):
    tree(tmp_path, "b.md", "a.md")
    (tmp_path / "c.md").write_bytes(b"\xef\xbb\xbfline\r\n\xff")
    assert "a.md\n\nb.md\n\nline\n\ufffd" == read_text(tmp_path, ("*.md", "a.md"))
    assert None is read_text(tmp_path, ("none", "*.txt"))


def test_special_and_large_files_are_refused(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(UnreadableFileError, match="'fifo' cannot be read: it is not a regular file"):
        read_text(tmp_path, ("fifo",))
    tree(tmp_path, "a", "b")
    monkeypatch.setattr(workfiles, "FILE_LIMIT", 1)
    with pytest.raises(UnreadableFileError, match="'b' cannot be read: it is larger"):
        read_text(tmp_path, ("a", "b"))
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "none")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UnreadableFileError, match="too many levels of symbolic links"):
        read_regular(tmp_path / "loop")


def test_too_many_files_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(workfiles, "FILES_LIMIT", 2)
    tree(tmp_path, "a", "b", "c")
    with pytest.raises(UnreadableFileError, match=re.escape("'*' matches 3 files; at most 2 are read")):
        find_files(tmp_path, "*")


@pytest.mark.parametrize("path", ["", " ", "/etc/passwd", "../x", "a/../../b", "a\0b", "**x/y", "a/b**"])
def test_a_configured_path_stays_below_the_work_directory(path):
    with pytest.raises(ConfigError, match="x: "):
        check_relative(path, where="x")


def test_a_configured_path_is_kept_as_it_is():
    assert "docs/**/*.md" == check_relative("docs/**/*.md", where="x")


def test_a_file_is_known_to_be_written_again(tmp_path):
    path = tmp_path / "report"
    assert None is identity(path)
    path.write_text("one")
    first = identity(path)
    assert first is not None
    assert (True, False) == (first.written_since(None), first.written_since(first))

    def changed(write: Callable[[], object]) -> bool:
        os.utime(path, ns=(1, 1))
        before = identity(path)
        write()
        now = identity(path)
        return now is not None and now.written_since(before)

    assert not changed(path.touch)
    assert not changed(lambda: path.chmod(0o600))
    assert changed(lambda: path.write_text("one"))
    assert changed(lambda: path.write_text("two"))
    path.write_bytes(b"\0" * (workfiles.FILE_LIMIT + 1))
    large = identity(path)
    assert large is not None
    assert large.digest is None


def test_log_names_are_file_names_and_differ():
    assert "check-tests.log" == log_name("check", "tests")
    odd = ["a/b", "a b", "a\nb", "../a", "x" * 300, "x" * 299, "é", "\udcff", ""]
    made = [log_name("check", name) for name in odd]
    assert len(odd) == len(set(made))
    assert [] == [name for name in made if not re.fullmatch(r"check-[A-Za-z0-9._-]{0,80}\.log", name)]


def test_what_the_machine_refuses_to_read_is_nothing_that_a_candidate_did(tmp_path, monkeypatch):
    tree(tmp_path, "a.md")

    def refuse(*_given: object, **_more: object):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(StoreWriteError, match="Input/output error: run the command again"):
        read_regular(tmp_path / "a.md")
    with pytest.raises(StoreWriteError, match="Input/output error"):
        read_text(tmp_path, ("a.md",))
    assert ["usage file: "] == [note[:12] for note in read_usage_file(tmp_path / "a.md").notes], "its cost is not known"
    monkeypatch.setattr(os.path, "realpath", refuse)
    with pytest.raises(StoreWriteError, match="Input/output error"):
        find_files(tmp_path, "a.md")
    monkeypatch.undo()
    monkeypatch.setattr(type(tmp_path), "stat", refuse)
    with pytest.raises(StoreWriteError, match="Input/output error"):
        identity(tmp_path / "a.md")


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_a_link_to_a_file_that_refuses_every_reader_is_the_candidates_doing(tmp_path):
    (tmp_path / "usage.json").symlink_to("/proc/self/mem")
    with pytest.raises(UnreadableFileError, match="cannot be read: input/output error"):
        read_regular(tmp_path / "usage.json")
