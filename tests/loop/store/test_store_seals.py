"""What was changed after it was written, and what is gone although something speaks of it, is found by ``verify``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from store_kit import unmarked

from jumar import BestOutputTracker
from jumar.errors import ConflictError
from jumar.loop.decisions.apply import apply
from jumar.loop.decisions.plan import plan_apply
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.verify import verify
from jumar.model import AttemptEnd

FLAT: dict[str, float] = dict.fromkeys(("validation", "completeness", "correctness", "readability", "efficiency"), 0.6)
AT = "2026-01-01T00:00:00Z"


@pytest.fixture
def loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out.md").write_text("text")
    tracker = BestOutputTracker("t")
    for number in (1, 2, 3):
        tracker.record_iteration(iteration_number=number, dimensions=FLAT, artifacts=["out.md"], verification_status="passed")
    tracker.select_output()
    return tracker.store.paths.directory


def problems(loop: Path) -> list[str]:
    return [problem.path for problem in verify(LoopStore.open(loop)).problems]


@pytest.mark.parametrize(
    ("file", "field", "value"),
    [
        ("iterations/iteration-002/metrics.json", "quality_score", 96.0),
        ("iterations/iteration-002/metrics.json", "verification_status", "failed"),
        ("iterations/iteration-002/metrics.json", "quality_delta", 30),
        ("decisions/0001-select.json", "best_iteration", 3),
        ("loop.json", "created_at", "2020-01-01T00:00:00Z"),
    ],
)
def test_a_changed_field_is_found(loop: Path, file: str, field: str, value: object) -> None:
    data = json.loads((loop / file).read_text())
    (loop / file).chmod(0o644)
    (loop / file).write_text(json.dumps({**data, field: value}))

    assert [file] == problems(unmarked(loop) if file == "loop.json" else loop)


def test_the_layout_of_a_file_does_not_matter_to_its_seal(loop: Path) -> None:
    file = loop / "decisions/0001-select.json"
    file.write_text(json.dumps(json.loads(file.read_text()), sort_keys=True))

    assert ["decisions/0001-select.json"] == problems(loop), "its mark is of the bytes"
    assert [] == problems(unmarked(loop))


def test_an_iteration_that_a_decision_names_and_that_is_gone_is_found(loop: Path) -> None:
    shutil.rmtree(loop / "iterations/iteration-001")
    shutil.rmtree(loop / "iterations/iteration-003")

    assert ["iterations/iteration-001", "iterations/iteration-003"] == problems(loop)


def test_the_tree_is_left_alone_while_it_alone_holds_a_paid_pass(loop: Path, tmp_path: Path) -> None:
    store = LoopStore.open(loop)
    attempt = store.begin_attempt(4, 3, "nonce", AT).start.number
    store.end_attempt(attempt, AttemptEnd(outcome="ok", seconds=1.0, ended_at=AT))
    (tmp_path / "out.md").write_text("paid for")

    with pytest.raises(ConflictError, match="iteration 4"):
        apply(store, plan_apply(store, 1, tmp_path, ArtifactRules(include=("out.md",))), by="me", at=AT)

    assert "paid for" == (tmp_path / "out.md").read_text()
