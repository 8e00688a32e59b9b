"""Snapshots, in both layouts: what is kept, what is refused, what is believed."""

from __future__ import annotations

import errno
import mmap
import os
import socket
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from store_kit import put, stored_tree

from jumar.core import file_cache
from jumar.core.file_cache import times_tell
from jumar.core.files import sha256_bytes
from jumar.errors import ArtifactError, StoreWriteError
from jumar.loop.snapshots import snapshot
from jumar.loop.snapshots.manifest import Manifest
from jumar.loop.snapshots.objects import Objects
from jumar.loop.snapshots.restore import plan_restore, restore
from jumar.loop.snapshots.scan import OpenFolders, normalise, survey
from jumar.loop.snapshots.snapshot import StatCache, take_snapshot


@pytest.fixture
def work(fresh_place: Path) -> Path:
    directory = fresh_place / "work"
    put(directory, {"a.txt": b"one", "sub/b.txt": b"two", "sub/deep/c.txt": b"three"})
    return directory


@pytest.fixture(params=["plain", "by hash"], autouse=True)
def by_hash(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if request.param == "by hash":
        monkeypatch.setattr(snapshot, "PLAIN_FILES", -1)
    return request.param == "by hash"


def snap(source: Path, name: str, *paths: str, **options: Any) -> Manifest:
    """Take a snapshot, and lay it out below ``name`` where it does not lie there anyway."""
    target = Path(name)
    target.mkdir()
    objects = Objects(target.absolute().parent / "objects")
    with objects.adding() as adding:
        manifest = take_snapshot(source, paths, target, adding=adding, **options)
        adding.finish()
    if manifest.by_hash:
        assert list(target.iterdir()) == []
        restore(plan_restore(manifest, objects, target, ()))
    return manifest


def test_a_directory_stands_for_all_below_it(work: Path, by_hash: bool) -> None:
    manifest = snap(work, "s", "sub", "a.txt", "./a.txt", "sub//b.txt", "sub/", never=(work / "nowhere",))
    assert list(manifest.entries) == ["a.txt", "sub/b.txt", "sub/deep/c.txt"]
    assert stored_tree(Path("s")) == stored_tree(work)
    entry = manifest.entries["sub/b.txt"]
    assert (entry.kind, entry.content_hash, entry.size, entry.mode) == ("file", sha256_bytes(b"two"), 3, 0o644)
    assert stat.S_IMODE(Path("s/sub/b.txt").stat().st_mode) == (0o644 if by_hash else 0o444)


def test_nothing_at_all_is_an_empty_snapshot(work: Path) -> None:
    assert dict(snap(work, "s").entries) == {}
    (work / "empty" / "er").mkdir(parents=True)
    assert dict(snap(work, "t", "empty").entries) == {}
    assert list(Path("t").iterdir()) == []


def test_absolute_paths_below_the_root_are_its_own(work: Path, fresh_place: Path) -> None:
    os.symlink("work", "alias")
    absolute = [str(work / "a.txt"), str(fresh_place / "alias" / "sub" / "b.txt"), str(work)]
    assert normalise(Path("alias"), absolute) == ["a.txt", "sub/b.txt", ""]
    assert normalise(work, ["a/./b", ".hidden", "./x//y/", "..."]) == ["a/b", ".hidden", "x/y", "..."]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "is not a path"),
        ("a\0b", "is not a path"),
        ("..", "leaves its directory"),
        ("sub/../a.txt", "leaves its directory"),
        ("/etc/passwd", "lies outside of"),
        ("gone", "'gone' does not exist: nothing was recorded"),
        ("a.txt/x", "'a.txt' is not a directory"),
        ("nowhere/x", "there is no directory 'nowhere'"),
        ("out/passwd", "'out' is a symbolic link"),
        ("sub/inner/b.txt", "'sub/inner' is a symbolic link"),
        ("x\x1b[2J", "'x\\\\x1b\\[2J' does not exist"),
    ],
)
def test_a_path_that_leads_elsewhere_or_nowhere_is_refused_before_anything_is_written(
    work: Path, path: str, message: str
) -> None:
    put(work, {"out": "/etc", "sub/inner": "."})
    with pytest.raises(ArtifactError, match=message):
        snap(work, "s", "a.txt", path)
    assert list(Path("s").iterdir()) == []


def test_a_sibling_with_the_same_beginning_is_outside(work: Path) -> None:
    put(Path("work-other"), {"a.txt": b"x"})
    with pytest.raises(ArtifactError, match="lies outside of"):
        snap(work, "s", str(Path("work-other/a.txt").resolve()))


def test_links_are_kept_as_links_and_never_followed(work: Path) -> None:
    put(work, {"in": "a.txt", "out": "/etc", "broken": "no/such", "loop": "loop", "strange": b"".decode() or "x\udcff\n"})
    manifest = snap(work, "s", ".")
    assert stored_tree(Path("s")) == stored_tree(work)
    link = manifest.entries["out"]
    assert (link.kind, link.target, link.content_hash, link.size) == ("symlink", "/etc", sha256_bytes(b"/etc"), 4)
    assert manifest.entries["strange"].content_hash == sha256_bytes(b"x\xff\n")
    assert not any(path.startswith("out/") for path in manifest.entries)
    assert dict(snap(work, "t", "out/").entries) == {"out": link}


def test_what_is_no_file_is_recorded_and_never_opened(work: Path) -> None:
    os.mkfifo(work / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(work / "socket"))
        manifest = snap(work, "s", "pipe", "socket", "a.txt")
    assert {
        path: (entry.kind, entry.skipped, entry.content_hash) for path, entry in manifest.entries.items() if entry.skipped
    } == {
        "pipe": ("special", "FIFO", None),
        "socket": ("special", "socket", None),
    }
    assert stored_tree(Path("s")) == {"a.txt": b"one"}


def test_devices_are_recorded(fresh_place: Path) -> None:
    manifest = snap(Path("/dev"), str(fresh_place / "s"), "null")
    assert manifest.entries["null"].skipped == "device"


def test_every_name_that_the_file_system_allows(work: Path) -> None:
    names = [b"-rf", b"new\nline", b"\x1b[31mred", b"caf\xe9", "naïve ☃".encode(), b" ", b"x" * 255, b"*", b"a\\b", b"'\"", b"~"]
    for name in names:
        Path(os.fsdecode(os.fsencode(work) + b"/" + name)).write_bytes(name)
    manifest = snap(work, "s", *(os.fsdecode(name) for name in names))
    assert stored_tree(Path("s")) == {os.fsdecode(name): name for name in names}
    assert set(manifest.entries) == {os.fsdecode(name) for name in names}
    again = type(manifest.whole()[1]).from_json(_decoded(manifest.whole()[1].encode()))
    assert {item.path: item for item in again.changed} == dict(manifest.entries)


def _decoded(data: bytes) -> Any:
    from jumar.core.codec import decode

    return decode(data, "manifest.json")


def test_real_modes_are_in_the_manifest(work: Path, by_hash: bool) -> None:
    for name, mode in (("a.txt", 0o755), ("sub/b.txt", 0o600), ("sub/deep/c.txt", 0o4751)):
        (work / name).chmod(mode)
    manifest = snap(work, "s", ".")
    assert [entry.mode for entry in manifest.entries.values()] == [0o755, 0o600, 0o4751]
    modes = {stat.S_IMODE(path.stat().st_mode) for path in Path("s").rglob("*.txt")}
    assert modes == ({0o755, 0o600, 0o4751} if by_hash else {0o444})


def test_a_file_that_changes_while_it_is_read_is_read_again(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, reads = os.read, 0

    def busy(fd: int, count: int) -> bytes:
        nonlocal reads
        reads += 1
        if reads == 1:
            with (work / "a.txt").open("ab") as file:
                file.write(b" and more")
        return real(fd, count)

    monkeypatch.setattr(os, "read", busy)
    manifest = snap(work, "s", "a.txt")
    assert Path("s/a.txt").read_bytes() == b"one and more"
    assert manifest.entries["a.txt"].content_hash == sha256_bytes(b"one and more")


def test_a_file_that_never_stands_still_is_refused(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, reads = os.read, 0

    def busy(fd: int, count: int) -> bytes:
        nonlocal reads
        reads += 1
        with (work / "a.txt").open("ab") as file:
            file.write(b".")
        return real(fd, 2)

    monkeypatch.setattr(os, "read", busy)
    with pytest.raises(ArtifactError, match=r"'a.txt' keeps changing while it is read: end what writes it"):
        snap(work, "s", "a.txt")
    assert list(Path("s").iterdir()) == []


def swap(work: Path, how: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Change the tree between the survey and the reading."""
    real = survey

    def surveyed(*arguments: Any, **named: Any) -> Any:
        found = real(*arguments, **named)
        how()
        return found

    monkeypatch.setattr("jumar.loop.snapshots.snapshot.survey", surveyed)


def test_what_is_exchanged_between_look_and_read_is_refused(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> None:
        (work / "a.txt").unlink()

    def link() -> None:
        (work / "a.txt").unlink()
        (work / "a.txt").symlink_to("/etc/passwd")

    def pipe() -> None:
        (work / "a.txt").unlink()
        os.mkfifo(work / "a.txt")

    def parent() -> None:
        (work / "sub").rename(work / "elsewhere")
        (work / "sub").symlink_to("elsewhere")

    cases = (
        (gone, "vanished while it was read"),
        (link, "cannot be read"),
        (pipe, "was replaced"),
        (parent, "is a symbolic link"),
    )
    for number, (how, message) in enumerate(cases):
        put(work, {"a.txt": b"one"})
        with monkeypatch.context() as patch:
            swap(work, how, patch)
            with pytest.raises(ArtifactError, match=message):
                snap(work, f"s{number}", "sub/b.txt" if how is parent else "a.txt")


def test_a_link_that_became_a_file_is_refused(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(work, {"link": "a.txt"})
    swap(work, lambda: put(work, {"link": b"file"}), monkeypatch)
    with pytest.raises(ArtifactError, match="changed while it was read"):
        snap(work, "s", "link")


def test_what_cannot_be_read_is_named(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(number: int) -> Callable[..., Any]:
        def call(*_: object, **__: object) -> None:
            raise OSError(number, os.strerror(number))

        return call

    real_open = os.open

    def refusing_files(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if path == "a.txt":
            raise PermissionError(errno.EACCES, "no")
        return real_open(path, flags, *rest, **named)

    for function, replacement, message in (
        ("read", refuse(errno.EIO), "'a.txt' cannot be read: Input/output error"),
        ("stat", refuse(errno.EACCES), "'a.txt' cannot be read: Permission denied"),
        ("open", refusing_files, "'a.txt' cannot be read: Permission denied"),
    ):
        Path(f"s-{function}").mkdir()
        with monkeypatch.context() as patch:
            patch.setattr(os, function, replacement)
            with pytest.raises(ArtifactError, match=message):
                take_snapshot(work, ["a.txt"], Path(f"s-{function}"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "listdir", refuse(errno.EACCES))
        with pytest.raises(ArtifactError, match="the directory 'sub' cannot be read"):
            survey(work, ["sub"])
    with pytest.raises(ArtifactError, match="cannot be read: No such file"):
        survey(work / "none", ["a"])
    with OpenFolders(work) as folders, monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse(errno.EMFILE))
        with pytest.raises(ArtifactError, match="nested too deeply"):
            folders.open("sub")
        patch.setattr(os, "open", refuse(errno.EACCES))
        with pytest.raises(ArtifactError, match="the directory 'sub' cannot be read"):
            folders.open("sub")
        patch.setattr(os, "open", refuse(errno.ENOTDIR))
        patch.setattr(os, "stat", refuse(errno.ENOENT))
        with pytest.raises(ArtifactError, match="'sub' is not a directory"):
            folders.open("sub")


def test_a_disk_that_refuses_is_an_error_of_the_store(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StoreWriteError, match="the disk is full: free some space"):
        snap(work, "s", "a.txt")


def test_directories_are_opened_in_any_order(work: Path) -> None:
    put(work, {"a/x": b"", "a-b/x": b"", "a/b/c/x": b""})
    with OpenFolders(work) as folders:
        for path in ("a", "a-b", "a/b/c", "a/b", "", "sub/deep", "a/b/c"):
            assert os.fstat(folders.open(path)).st_ino == (work / path).stat().st_ino


def old(path: Path, seconds: float) -> None:
    moment = time.time() - seconds
    os.utime(path, (moment, moment))


def test_a_young_file_is_never_believed_unchanged(work: Path) -> None:
    """Two writes within a time stamp's resolution look the same; the second must not be missed."""
    cache = StatCache()
    first = snap(work, "one", "a.txt", cache=cache)
    status = (work / "a.txt").stat()
    assert cache.get("a.txt", status) is None
    (work / "a.txt").write_bytes(b"eno")
    os.utime(work / "a.txt", ns=(status.st_atime_ns, status.st_mtime_ns))
    second = snap(work, "two", "a.txt", cache=cache, previous=first)
    assert Path("two/a.txt").read_bytes() == b"eno"
    assert second.entries["a.txt"].content_hash == sha256_bytes(b"eno")


def test_a_settled_file_is_not_read_again(work: Path, by_hash: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = StatCache()
    first = snap(work, "one", "a.txt", cache=cache)
    status = (work / "a.txt").stat()
    monkeypatch.setitem(file_cache._TELLS, status.st_dev, True)  # wherever tests run
    now = status.st_ctime_ns + 2_000_000_000
    cache.put("a.txt", status, now - 1, first.entries["a.txt"])
    assert cache.get("a.txt", status) is None
    cache.put("a.txt", status, now, first.entries["a.txt"])
    assert cache.get("a.txt", status) == first.entries["a.txt"]
    second = snap(work, "two", "a.txt", cache=cache, previous=first)
    assert second.entries["a.txt"] is first.entries["a.txt"]
    if by_hash:
        with monkeypatch.context() as patch:
            patch.setattr(os, "read", lambda *_: pytest.fail("was read"))
            snap(work, "three", "a.txt", cache=cache)
    for change in (lambda: (work / "a.txt").chmod(0o600), lambda: old(work / "a.txt", 10), lambda: put(work, {"a.txt": b"one"})):
        cache.put("a.txt", (work / "a.txt").stat(), time.time_ns() + 2_000_000_000, first.entries["a.txt"])
        assert cache.get("a.txt", (work / "a.txt").stat()) is not None
        change()
        assert cache.get("a.txt", (work / "a.txt").stat()) is None


def test_where_a_write_leaves_no_trace_in_the_times_every_file_is_read_again(work: Path) -> None:
    if times_tell(work):
        pytest.skip("this is no file system in memory")
    cache, path = StatCache(), work / "a.txt"
    first = snap(work, "one", "a.txt", cache=cache)
    status = path.stat()
    cache.put("a.txt", status, time.time_ns() + 2_000_000_000, first.entries["a.txt"])
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 3) as mapped:
        assert b"one" == mapped[:]
        mapped[:] = b"two"
    assert status.st_ctime_ns == path.stat().st_ctime_ns

    snap(work, "two", "a.txt", cache=cache, previous=first)
    assert ["one", "two"] == [Path(name, "a.txt").read_text() for name in ("one", "two")]
