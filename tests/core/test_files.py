"""The moves that everything durable is made of."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from store_kit import memory_place, put, stored_tree

from jumar.core import copying, files, leftovers
from jumar.errors import ArtifactError, StoreWriteError


def refusing(number: int) -> Any:
    def call(*_: object, **__: object) -> Any:
        raise OSError(number, os.strerror(number))

    return call


def lying(real: Any, number: int = errno.EIO) -> Any:
    """The call happens, and says that it failed."""

    def call(*arguments: Any, **named: Any) -> Any:
        real(*arguments, **named)
        raise OSError(number, os.strerror(number))

    return call


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.ENOSPC, "the disk is full: free some space"),
        (errno.EDQUOT, "the disk quota is used up"),
        (errno.EROFS, "the file system is read-only"),
        (errno.EACCES, "permission denied: check the owner and mode"),
        (errno.EPERM, "not permitted"),
        (errno.EIO, "Input/output error: run the command again, then `jumar verify`"),
    ],
)
def test_a_refusal_names_the_file_and_the_way_out(number: int, hint: str) -> None:
    with pytest.raises(StoreWriteError, match=f"could not write /x/y: {hint}"), files.as_write_error("write", Path("/x/y")):
        raise OSError(number, os.strerror(number))


def test_a_refusal_without_a_number_is_one_too() -> None:
    with pytest.raises(StoreWriteError, match="could not write x"), files.as_write_error("write", Path("x")):
        raise OSError


def test_what_is_written_once_is_never_overwritten() -> None:
    files.write_once(Path("a"), b"first")
    with pytest.raises(FileExistsError):
        files.write_once(Path("a"), b"second")
    assert stored_tree(Path()) == {"a": b"first"}
    Path("elsewhere").mkdir()
    files.write_once(Path("b"), b"x", temporary_in=Path("elsewhere"))
    assert stored_tree(Path()) == {"a": b"first", "b": b"x"}


def test_a_link_whose_answer_was_lost_is_believed_by_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", lying(os.link))
    files.write_once(Path("a"), b"first")
    assert stored_tree(Path()) == {"a": b"first"}
    monkeypatch.setattr(os, "link", refusing(errno.EIO))
    with pytest.raises(OSError, match="Input/output"):
        files.write_once(Path("b"), b"x")
    monkeypatch.setattr(os, "link", lambda temporary, _: (os.unlink(temporary), refusing(errno.ENOENT)()))
    with pytest.raises(FileNotFoundError):
        files.write_once(Path("b"), b"x")
    assert stored_tree(Path()) == {"a": b"first"}


def test_a_temporary_that_cannot_be_written_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    put(Path(), {"a": b"old"})
    for name in ("write", "fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, refusing(errno.ENOSPC))
            for move in (files.write_once, files.replace_file):
                with pytest.raises(OSError, match="No space"):
                    move(Path("a"), b"new")
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", refusing(errno.EIO))
        with pytest.raises(OSError, match="Input/output"):
            files.replace_file(Path("a"), b"new")
    assert stored_tree(Path()) == {"a": b"old"}


def test_short_writes_are_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:3]))
    files.replace_file(Path("a"), b"0123456789", mode=0o600)
    assert Path("a").read_bytes() == b"0123456789"
    assert stat.S_IMODE(Path("a").stat().st_mode) == 0o600


def test_what_a_person_named_is_replaced_unless_it_is_no_file():
    files.write_named(Path("new"), b"one")
    Path("link").symlink_to("new")
    files.write_named(Path("new"), b"two")
    assert b"two" == Path("link").read_bytes()
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    files.write_named(Path("pipe"), b"three")
    assert b"three" == os.read(reader, 99)
    os.close(reader)
    assert Path("pipe").is_fifo()
    with pytest.raises(IsADirectoryError):
        files.write_named(Path(), b"")


def test_a_directory_is_renamed_only_to_a_new_name(monkeypatch: pytest.MonkeyPatch) -> None:
    put(Path(), {"one/x": b"1", "two/x": b"2", "deep/y": b""})
    with pytest.raises(FileExistsError):
        files.rename_new(Path("one"), Path("two"))
    files.rename_new(Path("one"), Path("deep/one"))
    assert stored_tree(Path()) == {"deep/one/x": b"1", "two/x": b"2", "deep/y": b""}
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", lying(os.rename))
        files.rename_new(Path("two"), Path("three"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", refusing(errno.EIO))
        with pytest.raises(OSError, match="Input/output"):
            files.rename_new(Path("three"), Path("four"))
    assert Path("three/x").read_bytes() == b"2"
    with pytest.raises(FileNotFoundError):
        files.rename_new(Path("none"), Path("four"))


def test_missing_parents_are_created() -> None:
    files.make_directory(Path("a/b/c"))
    files.make_directory(Path("a/b/c"))
    assert Path("a/b/c").is_dir()


def test_a_tree_is_synced_whichever_way(monkeypatch: pytest.MonkeyPatch) -> None:
    put(Path("tree"), {"a/b": b"", "c": b"", "link": "/nowhere"})
    os.mkfifo("tree/pipe")
    os.symlink("a", "tree/linked")
    synced: list[int] = []
    whole: list[Path] = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(os.fstat(fd).st_ino), real(fd)))
    monkeypatch.setattr(files, "_syncfs", lambda root: whole.append(root) or True)
    files.sync_tree(Path("tree"))
    files.sync_paths(Path("tree"), [Path("tree/a/b"), Path("tree/link")])
    expected = {Path("tree", name).stat().st_ino for name in (".", "a", "a/b", "c")}
    assert set(synced) == expected
    assert whole == []
    files.sync_tree(Path("tree"), entries=1000)
    put(Path("tree"), {f"many/{number}": b"" for number in range(30)})
    files.sync_tree(Path("tree"))
    files.sync_paths(Path("tree"), [Path(f"tree/many/{number}") for number in range(30)])
    assert whole == [Path("tree")] * 3
    monkeypatch.setattr(files, "_syncfs", lambda _: False)
    synced.clear()
    files.sync_tree(Path("tree"), entries=1000)
    assert len(synced) > 30


def test_syncfs_says_what_went_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    assert files._syncfs(Path()) in {True, False}
    with monkeypatch.context() as patch:
        patch.setattr("sys.platform", "darwin")
        files._syncfs_function.cache_clear()
        assert files._syncfs_function() is None
    files._syncfs_function.cache_clear()
    monkeypatch.setattr(files, "_syncfs_function", lambda: None)
    assert not files._syncfs(Path())
    monkeypatch.setattr(files, "_syncfs_function", lambda: lambda _: -1)
    monkeypatch.setattr("ctypes.get_errno", lambda: errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        files._syncfs(Path())


def test_hashes() -> None:
    put(Path(), {"a": b"x" * 3_000_000, "link": "a"})
    assert files.sha256_file(Path("a")) == files.sha256_bytes(b"x" * 3_000_000)
    with pytest.raises(OSError, match="Too many levels"):
        files.sha256_file(Path("link"))


def test_a_walk_yields_everything_and_follows_nothing() -> None:
    put(Path("t"), {"b/x": b"", "b/y/z": b"", "a": b"", "c": "b", "skip/x": b""})
    assert [path for path, _ in files.walk(Path("t"), prune=lambda path: path == "skip/")] == ["a", "c", "b/x", "b/y/z"]
    assert list(files.walk(Path("t/b/y"))) != []
    with pytest.raises(FileNotFoundError):
        list(files.walk(Path("nowhere")))


def test_inside_is_asked_of_the_resolved_parent() -> None:
    put(Path(), {"root/a": b"", "out": "/etc", "root/link": "/etc", "alias": "root"})
    inside = ("root/a", "root/sub/b", "alias/a", "root/link", "root/sub/../a")
    outside = ("root/link/passwd", "root/../x", "out/passwd", "root/..", "root")
    assert [path for path in inside if not files.is_inside(Path(path), Path("root"))] == []
    assert [path for path in outside if files.is_inside(Path(path), Path("root"))] == []


def test_a_tree_is_removed_whatever_its_modes(monkeypatch: pytest.MonkeyPatch) -> None:
    put(Path(), {"t/a/b": b"", "t/link": "/etc", "file": b"", "link": "t"})
    leftovers.remove_tree(Path("nowhere"))
    real, refused = os.unlink, set[str]()

    def refuse_once(path: Any, **named: Any) -> None:
        if str(path).endswith("b") and "b" not in refused:
            refused.add("b")
            raise PermissionError(errno.EACCES, "no", path)
        real(path, **named)

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", refuse_once)
        leftovers.remove_tree(Path("t"))
    assert refused == {"b"}
    assert Path("/etc").is_dir()
    for name in ("file", "link", "nowhere"):
        leftovers.remove_any(Path(name))
    put(Path(), {"t/a": b""})
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", refusing(errno.EIO))
        with pytest.raises(OSError, match="Input/output"):
            leftovers.remove_any(Path("t"))
    leftovers.remove_any(Path("t"))
    assert list(Path().iterdir()) == []


@pytest.mark.skipif(os.getuid() != 0, reason="a process of another user is needed, and only root may start one")
def test_read_only_directories_are_removed_and_shared_files_keep_their_mode() -> None:
    nobody = 65534
    with memory_place() as place:
        put(place, {"t/a/b/c": b"shared", "t/a/d": b""})
        os.link(place / "t/a/b/c", place / "kept")
        (place / "kept").chmod(0o444)
        for name in ("t/a/b", "t/a", "t"):
            (place / name).chmod(0o500)
        for path in (place, *place.rglob("*")):
            os.chown(path, nobody, nobody)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.setgid(nobody)
                os.setuid(nobody)
                leftovers.remove_tree(place / "t")
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert not (place / "t").exists()
        assert stat.S_IMODE((place / "kept").stat().st_mode) == 0o444


def test_a_tree_that_somebody_else_removes_meanwhile_is_gone_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    put(Path(), {"t/a": b"", "t/b": b""})
    real, removed = os.unlink, list[str]()

    def twice(path: Any, **named: Any) -> None:
        removed.append(str(path))
        real(path, **named)
        real(path, **named)

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", twice)
        leftovers.remove_tree(Path("t"))
    assert (len(removed), Path("t").exists()) == (2, False)


def test_a_file_is_copied_without_following_a_link() -> None:
    put(Path(), {"a": b"content", "link": "a"})
    copying.copy_file(Path("a"), Path("b"), 0o640)
    assert (Path("b").read_bytes(), stat.S_IMODE(Path("b").stat().st_mode)) == (b"content", 0o640)
    with pytest.raises(FileExistsError):
        copying.copy_file(Path("a"), Path("b"))
    with pytest.raises(OSError, match="Too many levels"):
        copying.copy_file(Path("link"), Path("c"))


@pytest.mark.parametrize("copy", [copying.copy_file, copying.copy_alike])
@pytest.mark.parametrize(
    "parts",
    [
        [],
        [(0, b"")],
        [(0, b"start"), (9_000_000, b"end")],
        [(5_000_000, b"in the middle"), (8_000_001, b"")],
        [(3_000_000, b"x" * 5_000), (3_500_000, bytes(20_000)), (7_000_000, b"\0")],
    ],
)
def test_a_hole_stays_a_hole(copy: Callable[[Path, Path], object], parts: list[tuple[int, bytes]]) -> None:
    source, target = Path("source"), Path("target")
    with source.open("wb") as file:
        for at, data in parts:
            file.seek(at)
            file.write(data)
            file.truncate()
    source.chmod(0o640)
    copy(source, target)
    assert source.read_bytes() == target.read_bytes()
    assert target.stat().st_blocks <= source.stat().st_blocks
    assert [0o644, 0o640][copy is copying.copy_alike] == stat.S_IMODE(target.stat().st_mode)


def test_a_file_of_zeros_that_has_no_holes_gets_none() -> None:
    Path("source").write_bytes(bytes(3_000_000))
    copying.copy_file(Path("source"), Path("target"))
    assert Path("target").stat().st_blocks * 512 >= 3_000_000


def test_free_space_is_that_of_the_nearest_parent() -> None:
    assert files.free_bytes(Path.cwd() / "a" / "b") > 0


def test_names_that_would_leave_are_refused() -> None:
    files.check_names(["a", "a/b", ".hidden", "..."])
    for name in ("", "/a", "a//b", "a/../b", "..", ".", "a/", "a\0"):
        with pytest.raises(ArtifactError, match="would leave its directory"):
            files.check_names([name])


def test_a_link_is_removed_wherever_it_leads(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("n" * 300)  # longer than a name may be: looking there is an error
    leftovers.remove_any(link)

    assert not link.is_symlink()
