"""``BestOutputTracker``: seed 2's scenarios and contract, and what it refuses."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from commands import call

from jumar import BestOutputTracker
from jumar.errors import (
    ArtifactError,
    ConfigError,
    DuplicateIterationError,
    JumarError,
    NothingEvaluatedError,
    ScoreError,
    UsageError,
)

GOOD = {"validation": 0.7, "completeness": 0.8, "correctness": 0.75, "readability": 0.7, "efficiency": 0.65}


def flat(value: float) -> dict[str, float]:
    return dict.fromkeys(GOOD, value)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "output.md").write_text("text\n")
    return tmp_path


def record(tracker: BestOutputTracker, *values: float, status: str = "passed", first: int = 1) -> None:
    for number, value in enumerate(values, start=first):
        tracker.record_iteration(
            iteration_number=number,
            dimensions=flat(value),
            artifacts=["output.md"],
            verification_status=status,  # type: ignore[arg-type]
        )


def test_seed_2_basic_usage(here: Path) -> None:
    tracker = BestOutputTracker(
        "loop-001",
        storage_path=".aiwg/ralph/loop-001",
        selection={"mode": "highest_quality_verified", "threshold": 70, "require_verification": True},
    )
    made = tracker.record_iteration(
        iteration_number=1,
        dimensions=GOOD,
        artifacts=["output.md"],
        tokens_used=5000,
        token_cost_usd=0.05,
        execution_time_ms=30000,
        verification_status="passed",
        reflections=["Need to improve error handling section"],
    )

    assert 73.25 == made.quality_score
    assert made.quality_delta is None
    assert "text\n" == Path(made.artifacts[0]).read_text()
    assert made == tracker.get_best()
    selection = tracker.select_output()
    assert (1, 73.25, "Highest verified quality: 73.2%") == (
        selection.selected_iteration,
        selection.quality_score,
        selection.reason,
    )
    assert "# Output Selection Report" in tracker.generate_selection_report(selection)
    assert "text\n" == (here / ".aiwg/ralph/loop-001/final-output/output.md").read_text()


def test_scenario_1_quality_degradation(here: Path) -> None:
    tracker = BestOutputTracker("t")
    record(tracker, 0.72, 0.85, 0.75)

    selection = tracker.select_output()

    assert 2 == selection.selected_iteration
    assert selection.degradation_detected is True
    assert "Highest verified quality: 85%" == selection.reason
    assert tracker.detect_degradation().detected is True


def test_scenario_2_diminishing_returns(here: Path) -> None:
    tracker = BestOutputTracker("t")
    record(tracker, 0.70, 0.75, 0.77, 0.78)

    found = tracker.detect_diminishing_returns(2, 5)

    assert (True, 3) == (found.detected, found.iteration)


def test_scenario_3_no_verified_iteration(here: Path) -> None:
    tracker = BestOutputTracker("t")
    record(tracker, 0.8, 0.85, 0.82, status="failed")

    selection = tracker.select_output()

    assert "Highest quality (no verified iterations): 85%" == selection.reason
    assert 2 == selection.selected_iteration
    assert selection.fallback is not None
    assert selection.meets_threshold is False


def test_an_empty_tracker(here: Path) -> None:
    tracker = BestOutputTracker("t")

    assert tracker.get_best() is None
    assert [] == tracker.get_all_iterations()
    assert [] == tracker.get_quality_trajectory()
    assert 0 == tracker.get_summary().total_iterations
    assert 0 == tracker.get_summary().total_cost_usd
    assert 1 == len(tracker.export_csv().splitlines())
    with pytest.raises(NothingEvaluatedError):
        tracker.select_output()


def test_the_summary_adds_what_is_known_and_does_not_invent_the_rest(here: Path) -> None:
    tracker = BestOutputTracker("t")
    tracker.record_iteration(iteration_number=1, dimensions=flat(0.5), tokens_used=10, token_cost_usd=0.1, execution_time_ms=5)
    tracker.record_iteration(iteration_number=2, dimensions=flat(0.7), tokens_used=20, token_cost_usd=0.2, execution_time_ms=6)
    known = tracker.get_summary()
    tracker.record_iteration(iteration_number=3, dimensions=flat(0.6))
    unknown = tracker.get_summary()

    assert (2, 60.0, 70.0, 50.0, 30, 11) == (
        known.total_iterations,
        known.average_quality,
        known.best_quality,
        known.worst_quality,
        known.total_tokens,
        known.total_time_ms,
    )
    assert 0.3 == pytest.approx(known.total_cost_usd)
    assert (3, None, None) == (unknown.total_iterations, unknown.total_tokens, unknown.total_cost_usd)


def test_it_goes_on_from_disk_and_the_constructor_beats_it(here: Path) -> None:
    first = BestOutputTracker("t", selection={"threshold": 80}, quality_weights={"validation": 0.5})
    record(first, 0.75)

    second = BestOutputTracker("t")
    third = BestOutputTracker("t", selection={"threshold": 60})

    assert 80 == second.selection.threshold
    assert 0.5 == second.quality_weights["validation"]
    assert 0.25 == second.quality_weights["correctness"]
    assert 60 == third.selection.threshold
    assert [1] == [point.iteration for point in second.get_quality_trajectory()]
    assert second.select_output().meets_threshold is False
    assert third.select_output().meets_threshold is True


def test_two_trackers_see_each_others_records(here: Path) -> None:
    first, second = BestOutputTracker("t"), BestOutputTracker("t")
    record(first, 0.5)
    record(second, 0.6, first=2)
    record(first, 0.4, first=3)

    assert [1, 2, 3] == [record.iteration_number for record in second.get_all_iterations()]
    assert [None, 10.0, -20.0] == [record.quality_delta for record in first.get_all_iterations()]
    with pytest.raises(DuplicateIterationError):
        record(first, 0.9, first=2)


@pytest.mark.parametrize(
    "wrong",
    [
        {"validation": math.nan},
        {"validation": math.inf},
        {"validation": -0.01},
        {"validation": 1.01},
        {"validation": True},
        {"validation": "0.5"},
        {"validation": None},
        {"readabilty": 0.5},
    ],
)
def test_a_score_that_cannot_be_used_is_refused_and_nothing_recorded(here: Path, wrong: Mapping[str, Any]) -> None:
    tracker = BestOutputTracker("t")

    with pytest.raises(ScoreError) as refused:
        tracker.record_iteration(iteration_number=1, dimensions={**GOOD, **wrong}, artifacts=["output.md"])

    assert next(iter(wrong)) in str(refused.value)
    assert isinstance(refused.value, ValueError)
    assert [] == tracker.get_all_iterations()
    record(tracker, 0.5)


def test_a_missing_dimension_is_refused_unless_its_weight_is_zero(here: Path) -> None:
    without = {name: value for name, value in GOOD.items() if name != "efficiency"}

    with pytest.raises(ScoreError, match="efficiency"):
        BestOutputTracker("a").record_iteration(iteration_number=1, dimensions=without)
    made = BestOutputTracker("b", quality_weights={"efficiency": 0}).record_iteration(iteration_number=1, dimensions=without)
    assert made.quality_score is not None


@pytest.mark.parametrize("weights", [{"validation": -1}, {"validation": math.nan}, dict.fromkeys(GOOD, 0)])
def test_weights_that_cannot_be_used(here: Path, weights: Mapping[str, float]) -> None:
    with pytest.raises(ScoreError):
        BestOutputTracker("t", quality_weights=weights)
    assert not (here / ".jumar" / "loops" / "t").exists()


@pytest.mark.parametrize(
    "selection", [{"mode": "best"}, {"threshold": 101}, {"threshold": "high"}, {"treshold": 70}, {"require_verification": 1}]
)
def test_selection_options_that_cannot_be_used(here: Path, selection: Mapping[str, Any]) -> None:
    with pytest.raises(ConfigError):
        BestOutputTracker("t", selection=selection)


@pytest.mark.parametrize(
    "extra",
    [
        {"iteration_number": -1},
        {"iteration_number": 1.0},
        {"iteration_number": True},
        {"tokens_used": -1},
        {"token_cost_usd": math.nan},
        {"token_cost_usd": -0.1},
        {"execution_time_ms": math.inf},
        {"verification_status": "pased"},
        {"reflections": "one"},
        {"artifacts": "output.md"},
    ],
)
def test_arguments_that_cannot_be_used(here: Path, extra: Mapping[str, Any]) -> None:
    tracker = BestOutputTracker("t")

    with pytest.raises(UsageError):
        tracker.record_iteration(**{"iteration_number": 1, "dimensions": GOOD, **extra})

    assert [] == tracker.get_all_iterations()


@pytest.mark.parametrize("path", ["missing.md", "../outside.md", "/etc/hostname", "link/file", ""])
def test_artifacts_that_are_missing_or_lead_out(here: Path, path: str) -> None:
    outside = here.parent / "outside"
    outside.mkdir(exist_ok=True)
    (outside / "file").write_text("secret")
    (here / "link").symlink_to(outside)
    tracker = BestOutputTracker("t")

    with pytest.raises(ArtifactError):
        tracker.record_iteration(iteration_number=1, dimensions=GOOD, artifacts=["output.md", path])

    assert [] == tracker.get_all_iterations()
    record(tracker, 0.5)


def test_artifacts_keep_paths_modes_and_links(here: Path) -> None:
    for name, text in (("a/x.py", "a"), ("b/x.py", "b")):
        (here / name).parent.mkdir()
        (here / name).write_text(text)
    (here / "a/x.py").chmod(0o755)
    (here / "b/link").symlink_to("x.py")
    os.mkfifo(here / "b" / "pipe")
    tracker = BestOutputTracker("t")

    made = tracker.record_iteration(iteration_number=1, dimensions=GOOD, artifacts=["a", "b"])

    details = {detail.path: detail for detail in made.artifacts_detail}
    assert {"a/x.py", "b/x.py", "b/link", "b/pipe"} == set(details)
    assert 0o755 == details["a/x.py"].mode
    assert "x.py" == details["b/link"].target
    assert details["b/pipe"].skipped is not None
    snapshot = Path(made.snapshot_path)
    assert ("a", "b") == ((snapshot / "a/x.py").read_text(), (snapshot / "b/x.py").read_text())
    assert (snapshot / "b/link").is_symlink()


def test_an_absolute_path_below_the_root_is_the_same_as_its_relative_one(here: Path) -> None:
    tracker = BestOutputTracker("t")

    made = tracker.record_iteration(iteration_number=1, dimensions=GOOD, artifacts=[here / "output.md"])

    assert ["output.md"] == [detail.path for detail in made.artifacts_detail]


def test_override_needs_a_reason_and_stands(here: Path) -> None:
    tracker = BestOutputTracker("t")
    record(tracker, 0.8, 0.9, 0.7)
    tracker.select_output()

    with pytest.raises(UsageError):
        tracker.override(3, reason=" ")
    decision = tracker.override("final", reason="keeps the API stable")

    assert ("use_final", 3, 2) == (decision.decision, decision.best_iteration, decision.replaced)
    assert "keeps the API stable" in tracker.generate_selection_report()


def test_cleanup_is_off_by_default_and_keeps_what_matters(here: Path) -> None:
    kept = BestOutputTracker("a")
    record(kept, 0.5, 0.9, 0.4, 0.45, 0.3)
    kept.cleanup_snapshots(2)
    thrifty = BestOutputTracker("b", keep_all_iterations=False)
    record(thrifty, 0.5, 0.9, 0.4, 0.45, 0.3)
    thrifty.cleanup_snapshots(2)

    assert all(Path(record.artifacts[0]).exists() for record in kept.get_all_iterations())
    left = [record.iteration_number for record in thrifty.get_all_iterations() if Path(record.snapshot_path).exists()]
    assert 2 in left
    assert 4 not in left
    assert 5 == len(thrifty.get_all_iterations())


def test_the_tracking_view_is_the_seeds_format(here: Path) -> None:
    tracker = BestOutputTracker("loop-001", storage_path="store")
    record(tracker, 0.72, 0.85, first=1)
    tracker.save()

    view = json.loads((here / "store" / "best-output-tracking.json").read_text())

    assert {"loop_id", "config", "iterations", "best_iteration_number", "last_updated"} <= set(view)
    assert {"storage_path", "selection", "keep_all_iterations", "quality_weights"} <= set(view["config"])
    assert 2 == view["best_iteration_number"]
    first = view["iterations"][0]
    fields = "iteration_number timestamp quality_score quality_delta dimensions tokens_used token_cost_usd execution_time_ms"
    assert set(f"{fields} verification_status snapshot_path artifacts reflections".split()) <= set(first)
    assert (0, False) == (first["token_cost_usd"], first["token_cost_known"])
    assert all(Path(artifact).exists() for artifact in first["artifacts"])


def test_it_opens_what_the_original_tool_wrote(here: Path) -> None:
    snapshot = here / "store" / "iterations" / "iteration-001"
    snapshot.mkdir(parents=True)
    (snapshot / "sad.md").write_text("architecture")
    (here / "store" / "best-output-tracking.json").write_text(
        json.dumps(
            {
                "loop_id": "loop-001",
                "config": {"storage_path": "store", "selection": {"mode": "highest_quality", "threshold": 60}},
                "iterations": [
                    {
                        "iteration_number": 1,
                        "timestamp": "2026-01-28T10:00:00Z",
                        "quality_score": 72,
                        "quality_delta": None,
                        "dimensions": GOOD,
                        "tokens_used": 5000,
                        "token_cost_usd": 0.05,
                        "execution_time_ms": 30000,
                        "verification_status": "passed",
                        "snapshot_path": "store/iterations/iteration-001",
                        "artifacts": ["store/iterations/iteration-001/sad.md"],
                        "reflections": [],
                    }
                ],
                "best_iteration_number": 1,
                "last_updated": "2026-01-28T10:15:00Z",
            }
        )
    )
    tracker = BestOutputTracker("loop-001", storage_path="store")

    best = tracker.get_best()

    assert best is not None
    assert (72, int, 5000) == (best.quality_score, type(best.quality_score), best.tokens_used)
    assert "architecture" == Path(best.artifacts[0]).read_text()
    assert ("highest_quality", 60) == (tracker.selection.mode, tracker.selection.threshold)
    record(tracker, 0.9, first=2)
    assert 2 == tracker.select_output().selected_iteration


def test_closing_writes_the_views_once_more(here: Path) -> None:
    with BestOutputTracker("t") as tracker:
        record(tracker, 0.5)
        directory = tracker.store.paths.directory
    assert "loop_id" in json.loads((directory / "best-output-tracking.json").read_text())
    tracker.close()
    with pytest.raises(JumarError):
        tracker.get_best()


def _record_many(directory: str, numbers: list[int], results: Any) -> None:
    os.chdir(directory)
    tracker = BestOutputTracker("t")
    made = refused = 0
    for number in numbers:
        while True:
            try:
                tracker.record_iteration(iteration_number=number, dimensions=flat(0.5), artifacts=["output.md"])
                made += 1
            except DuplicateIterationError:
                refused += 1
            except JumarError as error:
                if error.exit_code == 13:  # the other one is writing
                    continue
                raise
            break
    results.put((made, refused))


def test_two_processes_recording_the_same_numbers(here: Path) -> None:
    BestOutputTracker("t")
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    numbers = list(range(1, 21))
    workers = [context.Process(target=_record_many, args=(str(here), numbers, results)) for _ in range(2)]
    for worker in workers:
        worker.start()
    counts = [results.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join(timeout=60)

    assert len(numbers) == sum(made for made, _ in counts)
    assert len(numbers) == sum(refused for _, refused in counts)
    assert numbers == [record.iteration_number for record in BestOutputTracker("t").get_all_iterations()]


def test_the_best_is_put_back_and_running_again_adds_to_it(here: Path) -> None:
    """What the README does, twice."""
    for run in (1, 2):
        tracker = BestOutputTracker("again")
        for number, quality in enumerate([0.6, 0.9, 0.7], start=len(tracker.get_all_iterations()) + 1):
            Path("output.md").write_text(f"draft {number}")
            scores = dict.fromkeys(tracker.quality_weights, quality)
            tracker.record_iteration(iteration_number=number, dimensions=scores, artifacts=["output.md"])
        assert 2 == tracker.apply_output().selected_iteration
        assert "draft 2" == Path("output.md").read_text()
        assert 3 * run == len(tracker.get_all_iterations())
    tracker.override(3, reason="shorter")
    tracker.apply_output()
    assert "draft 3" == Path("output.md").read_text()
    call("apply", "again", "--undo", check=0)
    assert "draft 2" == Path("output.md").read_text()
    shown = " ".join(call("show", "again", check=0).out.split())
    assert "score 70 at iteration 3" in shown


def test_what_nothing_checks_is_not_said_to_miss_the_required_score(here: Path) -> None:
    tracker = BestOutputTracker("plain")
    tracker.record_iteration(iteration_number=1, dimensions=dict.fromkeys(tracker.quality_weights, 0.9))
    tracker.select_output()
    shown = " ".join(call("show", "plain", check=0).out.split())
    assert "Why No iteration was verified; selected by score alone, which reaches the required score of 70." in shown
