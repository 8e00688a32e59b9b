"""Verify finds what was changed behind the store's back, says what to do, and calls nothing else damage."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from store_kit import AT, end, new_store, put, record, score

from jumar import files
from jumar.store.loop_reader import LoopReader
from jumar.store.loop_store import LoopStore
from jumar.store.reading import cleaned_iterations
from jumar.store.verify import VerifyReport, verify

READING = "readings/0001-rescore-iteration-001.json"


@pytest.fixture
def store(fresh_place: Path) -> LoopStore:
    """Two iterations, an attempt each, two decisions, an undo copy, something set aside, a reading."""
    work = fresh_place / "work"
    put(work, {"a.txt": b"one", "sub/b.txt": b"two", "link": "a.txt"})
    store = new_store("x", work)
    for number in (1, 2):
        store.begin_attempt(number, number - 1, f"n{number}", AT)
        store.end_attempt(number, end())
        pending = store.stage(number, source=work, paths=["."], nonce=f"n{number}", attempt=number, stage={}, logs=None)
        store.commit(pending, score(number))
        put(work, {"a.txt": b"changed"})
    store.add_decision("select", best_iteration=1)
    store.add_decision("apply", best_iteration=1)
    kept = store.set_aside(work, ["a.txt"])
    shutil.copytree(kept, store.paths.undo / "0002")
    store.add_reading("rescore", 1, at="then", attempt=None, score=50.0)
    return store


def found(store: LoopStore) -> list[tuple[str, str]]:
    return [(problem.path, problem.what) for problem in verify(store).problems]


def edit(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_bytes()) | changes))


def rewrite(path: Path, data: bytes) -> None:
    """Change a stored file, as somebody does who wants to."""
    path.unlink()
    path.write_bytes(data)


def test_a_sound_loop_has_no_problem(store: LoopStore) -> None:
    report = verify(store)
    assert report == VerifyReport(problems=(), files=5, bytes=3 + 3 + 7 + 7 + 7, iterations=2, notes=())
    assert report.to_json() == {"ok": True, "iterations": 2, "files": 5, "bytes": 27, "problems": [], "notes": [], "planted": []}


DAMAGE: list[tuple[str, Callable[[Path], object], str, str]] = [
    ("identity", lambda d: (d / "loop.json").write_bytes(b"{"), "loop.json", "not readable as JSON"),
    ("newer", lambda d: edit(d / "loop.json", format=7), "loop.json", "written by a newer jumar"),
    (
        "content",
        lambda d: rewrite(d / "iterations/iteration-001/artifacts/a.txt", b"eno"),
        "iterations/iteration-001/artifacts/a.txt",
        "has another content than was recorded",
    ),
    (
        "size",
        lambda d: rewrite(d / "iterations/iteration-001/artifacts/a.txt", b""),
        "iterations/iteration-001/artifacts/a.txt",
        "has 0 bytes, recorded were 3",
    ),
    (
        "kind",
        lambda d: (
            rewrite(d / "iterations/iteration-002/artifacts/a.txt", b""),
            put(d, {"iterations/iteration-002/artifacts/a.txt": "x"}),
        ),
        "iterations/iteration-002/artifacts/a.txt",
        "should be a regular file",
    ),
    (
        "target",
        lambda d: put(d, {"iterations/iteration-002/artifacts/link": "/etc\x1b"}),
        "iterations/iteration-002/artifacts/link",
        "leads to '/etc\\x1b', recorded was 'a.txt'",
    ),
    (
        "no link",
        lambda d: put(d, {"iterations/iteration-002/artifacts/link": b""}),
        "iterations/iteration-002/artifacts/link",
        "should be a symbolic link",
    ),
    (
        "missing",
        lambda d: (d / "iterations/iteration-001/artifacts/a.txt").unlink(),
        "iterations/iteration-001/artifacts/a.txt",
        "is missing",
    ),
    (
        "unknown",
        lambda d: put(d, {"iterations/iteration-001/artifacts/new\n.txt": b""}),
        "iterations/iteration-001/artifacts/new\\n.txt",
        "is not in the manifest",
    ),
    (
        "snapshot",
        lambda d: shutil.rmtree(d / "iterations/iteration-001/artifacts"),
        "iterations/iteration-001/artifacts",
        "the snapshot is missing, and no cleanup was decided",
    ),
    (
        "metrics",
        lambda d: (d / "iterations/iteration-001/metrics.json").unlink(),
        "iterations/iteration-001/metrics.json",
        "is missing",
    ),
    (
        "cut off",
        lambda d: (d / "iterations/iteration-001/metrics.json").write_bytes(b'{"format": 1, "it'),
        "iterations/iteration-001/metrics.json",
        "not readable as JSON",
    ),
    (
        "score",
        lambda d: edit(d / "iterations/iteration-001/metrics.json", quality_score=101),
        "iterations/iteration-001/metrics.json",
        "has a quality_score of 101, outside of 0 to 100",
    ),
    (
        "listed",
        lambda d: edit(d / "iterations/iteration-001/metrics.json", artifacts_detail=[]),
        "iterations/iteration-001/metrics.json",
        "does not list the artifacts that manifest.json lists",
    ),
    (
        "renamed",
        lambda d: os.rename(d / "iterations/iteration-002", d / "iterations/iteration-003"),
        "iterations/iteration-003/metrics.json",
        "holds iteration 2, its directory says 3",
    ),
    (
        "manifest",
        lambda d: edit(d / "iterations/iteration-001/manifest.json", entries=[{"path": 3}]),
        "iterations/iteration-001/manifest.json",
        "field 'path' should be a string",
    ),
    (
        "base",
        lambda d: edit(d / "iterations/iteration-001/manifest.json", base=9, changed=[], removed=[]),
        "iterations/iteration-001/manifest.json",
        "iteration-009/manifest.json is missing",
    ),
    (
        "circle",
        lambda d: edit(d / "iterations/iteration-001/manifest.json", base=1, changed=[], removed=[]),
        "iterations/iteration-001/manifest.json",
        "refers to bases without end",
    ),
    (
        "exchanged",
        lambda d: edit(d / "iterations/iteration-001/stage.json", nonce="other"),
        "iterations/iteration-001/stage.json",
        "has another nonce than metrics.json",
    ),
    ("stray", lambda d: put(d, {"iterations/notes.txt": b""}), "iterations/notes.txt", "is not an iteration's name"),
    (
        "stray inside",
        lambda d: put(d, {"iterations/iteration-001/notes.txt": b""}),
        "iterations/iteration-001/notes.txt",
        "is nothing that an iteration holds",
    ),
    ("start", lambda d: (d / "attempts/000001.start.json").unlink(), "attempts/000001.end.json", "is the end of an attempt"),
    (
        "start cut",
        lambda d: (d / "attempts/000001.start.json").write_bytes(b""),
        "attempts/000001.start.json",
        "the file is empty",
    ),
    ("attempt name", lambda d: put(d, {"attempts/1.start.json": b""}), "attempts/1.start.json", "is not an attempt's name"),
    (
        "attempt number",
        lambda d: edit(d / "attempts/000001.start.json", number=2),
        "attempts/000001.start.json",
        "holds attempt 2; was it renamed by hand?",
    ),
    (
        "two claims",
        lambda d: edit(d / "attempts/000002.start.json", iteration=1),
        "attempts/000002.start.json",
        "is for iteration 1, which attempt 1 completed",
    ),
    (
        "no attempt",
        lambda d: edit(d / "iterations/iteration-001/metrics.json", attempt=9),
        "iterations/iteration-001/metrics.json",
        "names attempt 9, of which there is nothing",
    ),
    (
        "attempt gone",
        lambda d: [(d / f"attempts/000001.{part}.json").unlink() for part in ("start", "end")],
        "attempts/000001.start.json",
        "attempts are numbered without gaps",
    ),
    (
        "sealed",
        lambda d: edit(d / "iterations/iteration-001/metrics.json", quality_score=71),
        "iterations/iteration-001/metrics.json",
        "was changed after it was written",
    ),
    (
        "unsealed",
        lambda d: edit(d / "attempts/000002.end.json", seal=None),
        "attempts/000002.end.json",
        "has no seal",
    ),
    (
        "iteration a decision names",
        lambda d: shutil.rmtree(d / "iterations/iteration-001"),
        "iterations/iteration-001",
        "is missing: decision 1 names it",
    ),
    ("decision", lambda d: (d / "decisions/0001-select.json").unlink(), "decisions/0001-*.json", "are numbered without gaps"),
    (
        "decision cut",
        lambda d: (d / "decisions/0001-select.json").write_bytes(b"[]"),
        "decisions/0001-select.json",
        "expected a JSON",
    ),
    ("decision name", lambda d: put(d, {"decisions/x.json": b""}), "decisions/x.json", "is not a decision's name"),
    (
        "decision kind",
        lambda d: os.rename(d / "decisions/0001-select.json", d / "decisions/0001-apply.json"),
        "decisions/0001-apply.json",
        "holds a decision of the kind select",
    ),
    (
        "decision twice",
        lambda d: shutil.copy(d / "decisions/0001-select.json", d / "decisions/0001-undo.json"),
        "decisions/0001-undo.json",
        "has the same number as 0001-select.json",
    ),
    ("undo", lambda d: rewrite(d / "undo/0002/artifacts/a.txt", b"CHANGED"), "undo/0002/artifacts/a.txt", "another content"),
    ("undo manifest", lambda d: (d / "undo/0002/manifest.json").unlink(), "undo/0002/manifest.json", "is missing"),
    ("set aside", lambda d: shutil.rmtree(d / "set-aside/0001/artifacts"), "set-aside/0001/artifacts", "is missing"),
    ("reading", lambda d: (d / READING).write_bytes(b"{"), READING, "not readable as JSON"),
    ("pending name", lambda d: put(d, {"pending/x": b""}), "pending/x", "is not an iteration's name"),
    (
        "pending damaged",
        lambda d: put(d, {"pending/iteration-003/stage.json": b"{}"}),
        "pending/iteration-003",
        "field 'format' should be a whole number",
    ),
    (
        "pending renamed",
        lambda d: (
            shutil.copytree(d / "iterations/iteration-002", d / "pending/iteration-009", symlinks=True),
            (d / "pending/iteration-009/metrics.json").unlink(),
        ),
        "pending/iteration-009",
        "holds iteration 2; was it renamed by hand?",
    ),
]


@pytest.mark.parametrize(("damage", "path", "what"), [pytest.param(*case[1:], id=case[0]) for case in DAMAGE])
def test_every_kind_of_damage_is_found(store: LoopStore, damage: Callable[[Path], object], path: str, what: str) -> None:
    store.views()
    store.manifest(1)
    damage(store.paths.directory)
    problems = {(problem.path, problem.what) for problem in verify(store).problems}
    assert any(where == path and what in said for where, said in problems), problems
    assert all(problem.fix for problem in verify(store).problems)


def test_an_iteration_that_was_paid_for_or_gone_on_from_is_missed(fresh_place: Path) -> None:
    work = fresh_place / "work"
    put(work, {"a.txt": b"one"})
    store = new_store("x", work)
    for number in (1, 2):
        store.begin_attempt(number, number - 1 or None, f"n{number}", AT)
        store.end_attempt(number, end())
        pending = store.stage(number, source=work, paths=["."], nonce=f"n{number}", attempt=number, stage={}, logs=None)
        store.commit(pending, score(number, parent=number - 1 or None))
    shutil.rmtree(store.paths.iteration(1))
    assert found(store) == [("iterations/iteration-001", "is missing: iteration 2 goes on from it")]
    record(store, 3, (), work, parent=None)
    shutil.rmtree(store.paths.iteration(2))
    assert ("iterations/iteration-001", "is missing: attempt 1 ended and was paid for") in found(store)


def test_one_change_is_one_problem(store: LoopStore) -> None:
    rewrite(store.artifacts(2) / "a.txt", b"CHANGED")
    assert found(store) == [("iterations/iteration-002/artifacts/a.txt", "has another content than was recorded")]


def test_what_cannot_be_read_is_a_problem_and_no_crash(store: LoopStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> str:
        raise OSError(5, os.strerror(5))

    monkeypatch.setattr("jumar.files.sha256_file", refuse)
    assert all(problem.what == "cannot be read: Input/output error" for problem in verify(store).problems)
    assert len(verify(store).problems) > 3


def test_leftovers_are_notes(store: LoopStore) -> None:
    directory = store.paths.directory
    put(
        directory,
        {".tmp-1/x": b"", "attempts/.tmp-2": b"", "iterations/iteration-001/.trash-0003/x": b"", "best-tracker.json": b"?"},
    )
    put(store.artifacts(1).parent / "logs", {"anything.log": b""})
    store.begin_attempt(3, 2, "n", AT)
    store.stage(3, source=directory.parent / "work", paths=["a.txt"], nonce="n", attempt=3, stage={}, logs=None)
    report = verify(store)
    assert report.problems == ()
    assert sorted(note.split(":")[0] for note in report.notes) == [
        ".tmp-1",
        "attempts/.tmp-2",
        "attempts/000003.start.json",
        "iterations/iteration-001/.trash-0003",
        "pending/iteration-003",
    ]


def test_a_cleanup_explains_a_missing_snapshot(store: LoopStore) -> None:
    store.add_decision("cleanup", data={"iterations": [1]})
    shutil.rmtree(store.artifacts(1))
    assert found(store) == []
    shutil.rmtree(store.artifacts(2))
    assert found(store) == [("iterations/iteration-002/artifacts", "the snapshot is missing, and no cleanup was decided")]


def test_a_second_attempt_is_fine_after_a_lost_one(store: LoopStore) -> None:
    store.begin_attempt(3, 2, "n3", AT)
    store.end_attempt(3, end(outcome="lost", seconds=None))
    store.begin_attempt(3, 2, "n3b", AT)
    store.end_attempt(4, end())
    assert found(store) == []


def test_a_pending_copy_of_a_recorded_iteration_is_a_problem(store: LoopStore) -> None:
    shutil.copytree(store.paths.iteration(2), store.paths.pending / "iteration-002", symlinks=True)
    assert found(store) == [("pending/iteration-002", "iteration 2 is recorded already")]


def test_a_cleanup_that_happens_meanwhile_is_no_damage(store: LoopStore, monkeypatch: pytest.MonkeyPatch) -> None:
    real = cleaned_iterations
    calls = 0

    def deciding(decisions: Any) -> frozenset[int]:
        nonlocal calls
        calls += 1
        seen = real(decisions)
        if calls == 1:
            store.add_decision("cleanup", data={"iterations": [1]})
            shutil.rmtree(store.artifacts(1))
        return seen

    monkeypatch.setattr("jumar.store.verify.cleaned_iterations", deciding)
    assert found(store) == []


def test_a_commit_that_happens_meanwhile_is_no_damage(store: LoopStore, monkeypatch: pytest.MonkeyPatch) -> None:
    put(Path("work"), {"a.txt": b"third"})
    store.stage(3, source=Path("work").resolve(), paths=["a.txt"], nonce="n3", attempt=None, stage={}, logs=None)
    real = LoopReader.pending_of

    def committing(self: LoopReader, number: int) -> Any:
        monkeypatch.setattr(LoopReader, "pending_of", real)
        store.commit(store.pending_of(number), score(3))
        return real(self, number)

    monkeypatch.setattr(LoopReader, "pending_of", committing)
    assert found(store) == []
    assert store.iteration_numbers() == (1, 2, 3)


@pytest.mark.parametrize("way", ["vanishes before", "vanishes while it is read"])
def test_a_pending_snapshot_that_is_renamed_while_it_is_read_is_no_damage(
    store: LoopStore, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(Path("work"), {"a.txt": b"third", "sub/b.txt": b"third too"})
    pending = store.stage(3, source=Path("work").resolve(), paths=["."], nonce="n3", attempt=None, stage={}, logs=None)
    real = files.walk

    def walking(root: Path, **options: Any) -> Any:
        listing = real(root, **options)
        if root == pending.artifacts:
            if way == "vanishes while it is read":
                yield next(listing)
            store.commit(pending, score(3))
        yield from listing

    monkeypatch.setattr(files, "walk", walking)
    assert found(store) == []


def test_records_that_nobody_scored_are_fine(store: LoopStore) -> None:
    record(store, 7, (), Path("work").resolve(), quality=None, status="scorer_broken")
    assert found(store) == []
