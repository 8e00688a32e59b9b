"""A loop with something of everything, and every way in which it may be damaged."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from store_kit import AT, end, new_store, put, score

from jumar.loop.store.loop_store import LoopStore

__all__ = ["DAMAGE", "READING", "edit", "rewrite", "sample"]

READING = "readings/0001-rescore-iteration-001.json"


def sample(place: Path) -> LoopStore:
    """Two iterations, an attempt each, two decisions, an undo copy, something set aside, a reading."""
    work = place / "work"
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


def edit(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_bytes()) | changes))


def rewrite(path: Path, data: bytes) -> None:
    """Change a stored file, as somebody does who wants to."""
    path.unlink()
    path.write_bytes(data)


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
        lambda d: os.rename(d / "iterations/iteration-002", d / "iterations/iteration-008"),
        "iterations/iteration-008/metrics.json",
        "holds iteration 2, its directory says 8",
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
