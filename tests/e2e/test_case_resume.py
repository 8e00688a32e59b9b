"""Runs of cases, failed and killed at every system call that changes the disk, then resumed: the end is always the same.

After each fault: no acknowledged iteration is lost, the run's directory is absent or whole, ``verify`` is clean, and ``--resume``
comes to the same best, with the same bytes carried, as a run that nobody disturbed. By default every rename is killed and a
sample of the other places is tried; ``JUMAR_SWEEP=full`` tries all of them.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from commands import call
from faults import KINDS, Ended, Fault, Runner, can_trace, chosen
from loops import jumar
from pipelines import RUN, before_steps, calls, facts, write_pipeline

from jumar.cases.run_store import RunReader
from jumar.cases.verify import verify_run
from jumar.core.marks import marked

SAMPLE = 10
SCORES = {1: [(6, 6, 6), (8, 7, 6), (3, 4, 2)], 2: [(5, 5, 5), (5, 5, 5), (5, 4, 5)]}
NAMES = ("accuracy", "overall", "chain")
OPTIONS = ("cases", "run", "--json", "--dry-run")

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed; the fault sweep needs it")


def is_rename(place: Fault) -> bool:
    return place.call.startswith("rename")


def pending_of(directory: Path, case: int, number: int) -> Path:
    return RunReader(directory / RUN).case(case).paths.pending_iteration(number)


def prepare_nothing(_runner: Runner, directory: Path) -> None:
    """Two cases of three iterations, with every role of the seed."""
    write_pipeline(directory, SCORES, steps=(), extra='[dry_run]\nscores = "scores.json"\n')
    rows = {str(case): [dict(zip(NAMES, row, strict=True)) for row in rows] for case, rows in SCORES.items()}
    (directory / "scores.json").write_text(json.dumps(rows))


def prepare_killed(runner: Runner, directory: Path) -> None:
    """The same, killed in the middle of the second iteration of case 2, with a step that began and did not end."""
    prepare_nothing(runner, directory)
    marked(b"{}", "")  # the key is there, and its making no call of the trial
    with workplace(directory, directory.with_name("trial")) as trial:
        places = runner.trace(trial, *OPTIONS)
    committed = next(
        at for at, place in enumerate(places) if place.target.endswith("case_02/pending/iter_0001") and is_rename(place)
    )
    links = [place for place in places[committed:] if place.call.startswith("link")]
    judge_ends = links[5]  # two a step, and the judge is the third
    ended = runner.run(directory, *OPTIONS, fault=replace(judge_ends, kind="kill"))
    assert -9 == ended.code
    lost = [start.step for start, end in RunReader(directory / RUN).case(2).steps(pending_of(directory, 2, 2)) if end is None]
    assert ["judge"] == lost


PREPARED: dict[str, tuple[Callable[[Runner, Path], None], tuple[str, ...]]] = {
    "run": (prepare_nothing, OPTIONS),
    "resume": (prepare_killed, (*OPTIONS, "--resume")),
}


@contextmanager
def workplace(template: Path, directory: Path) -> Iterator[Path]:
    shutil.copytree(template, directory, symlinks=True)
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


def acknowledged(ended: Ended) -> set[tuple[int, int]]:
    """Return the iterations that the command said it had recorded, by case."""
    found: set[tuple[int, int]] = set()
    case = 0
    for line in ended.err.splitlines():
        heading = re.match(r"case (\d+) ·", line)
        row = re.match(r" +(\d+)  +\S", line)
        if heading:
            case = int(heading[1])
        elif row:
            found.add((case, int(row[1])))
    return found


def recorded(run: Path) -> set[tuple[int, int]]:
    if not run.exists():
        return set()
    reader = RunReader(run)
    return {(number, record.number) for number in reader.case_ids for record in reader.case(number).iterations()}


def assert_whole(run: Path) -> None:
    """The run is absent, or everything that is there is what was written."""
    if run.exists():
        assert () == verify_run(run).problems


@pytest.mark.sweep
@pytest.mark.timeout(20_000)
@needs_strace
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PREPARED)
def test_a_fault_at_every_place(tmp_path: Path, name: str, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    if not can_trace():
        pytest.skip("this machine does not let strace attach (ptrace is not permitted)")
    prepare, argv = PREPARED[name]
    template, directory = tmp_path / "template", tmp_path / "place"
    template.mkdir()
    run = directory / RUN
    fired = killed = resumed = 0
    with Runner(tmp_path) as runner:
        prepare(runner, template)
        with workplace(template, directory):
            places = runner.trace(directory, *argv)
            undisturbed = facts(run)
        with workplace(template, directory):
            before = recorded(run)
            said = acknowledged(runner.run(directory, *argv))
            assert recorded(run) == before | said, "the command does not say what it records, or not in these words"
        assert [2, 1] == [case["end"]["best_iter"] for case in undisturbed["cases"].values()]
        commits = [place for place in places if is_rename(place) and kind == "kill"]
        others = [place for place in places if place not in commits]
        faults = [*(replace(place, kind=kind) for place in commits), *chosen(others, kind, SAMPLE)]
        for fault in faults:
            with workplace(template, directory):
                ended = runner.run(directory, *argv, fault=fault)
                fired += ended.fired
                killed += ended.code == -9
                try:
                    assert "Traceback" not in ended.err
                    assert_whole(run)
                    assert acknowledged(ended) <= recorded(run)
                    again = ("--resume",) if run.exists() else ()
                    resumed += bool(again)
                    done = runner.run(directory, *OPTIONS, *again)
                    assert 0 == done.code, done
                    assert undisturbed == facts(run)
                    assert_whole(run)
                    assert not list(run.rglob(".tmp-*"))
                except BaseException:
                    print(f"after {fault}\nexit {ended.code}\n{ended.out}\n{ended.err}")
                    raise
    with capsys.disabled():
        counts = f"{len(places)} places, {len(faults)} tried, {fired} fired, {killed} kills survived, {resumed} resumed"
        print(f"\ncases {name}: {kind}: {counts}")
    assert fired >= 0.9 * len(faults), "the faults do not reach the command"


# ----------------------------------------------------------------------------------------- a real pipeline, interrupted

REAL = {1: [(6, 6, 6), (8, 7, 6)], 2: [(5, 5, 5), (4, 5, 5)]}
HANG = '[ "$JUMAR_CASE_NUM.$JUMAR_ITERATION $1" = "{at}" ] || exit 0; echo $$ > hanging; while [ -e hang ]; do sleep 0.02; done'


def undisturbed(directory: Path) -> tuple[dict[str, Any], list[str]]:
    write_pipeline(directory, REAL)
    jumar(directory, "cases", "run", "--json", check=0)
    return facts(directory / RUN), calls(directory)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], list[str]]:
    """What a run that nobody disturbs comes to, and the steps that it paid for."""
    return undisturbed(tmp_path_factory.mktemp("whole"))


@contextmanager
def hanging(directory: Path, at: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A run whose step ``at`` has begun and waits until the file ``hang`` is gone."""
    write_pipeline(directory, REAL)
    before_steps(directory, HANG.format(at=at))
    (directory / "hang").touch()
    command = [sys.executable, "-m", "jumar.cli.entry", "cases", "run", "--json", *options]
    process = subprocess.Popen(
        command, cwd=directory, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        try:
            until(lambda: (directory / "hanging").exists() and (directory / "hanging").read_text().endswith("\n"))
            yield process
        finally:
            process.kill()
            (directory / "hang").unlink(missing_ok=True)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "this took too long"
        time.sleep(0.01)


def outcomes(directory: Path, case: int, number: int) -> list[tuple[str, str]]:
    return [(step.step, step.outcome) for step in RunReader(directory / RUN).case(case).iterations()[number - 1].steps]


STEPS = ["augment", "agent", "judge", "feedback"]


@pytest.mark.parametrize("step", ["augment", "agent", "judge"])
def test_a_run_that_is_killed_in_the_middle_of_a_step_pays_for_that_step_again_and_for_no_other(
    tmp_path: Path, whole: tuple[dict[str, Any], list[str]], step: str
) -> None:
    expected, paid = whole
    place = tmp_path / "killed"
    with hanging(place, f"2.1 {step}") as process:
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=30)
        stray = psutil.Process(int((place / "hanging").read_text()))
        assert stray.is_running(), "what the step started outlives jumar"
        assert_whole(place / RUN)
        jumar(place, "cases", "verify", check=0)

        before_steps(place, "exit 0")
        jumar(place, "cases", "run", "--json", "--resume", check=0)

        psutil.wait_procs([stray], timeout=10)
        assert not stray.is_running(), "and is ended before the step runs again"
    assert expected == facts(place / RUN)
    assert sorted([*paid, f"2.1 {step}"]) == sorted(calls(place))
    at = STEPS.index(step)
    assert [*((name, "ok") for name in STEPS[:at]), (step, "lost"), *((name, "ok") for name in STEPS[at:])] == outcomes(
        place, 2, 1
    )
    assert_whole(place / RUN)


def test_the_seconds_of_a_step_that_was_killed_count(tmp_path: Path) -> None:
    place, limit = tmp_path / "killed", ("--max-seconds", "1")
    with hanging(place, "1.2 agent", *limit) as process:
        until(lambda: float((pending_of(place, 1, 2) / "logs" / "heartbeat").read_text()) >= 1)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=30)
        jumar(place, "cases", "verify", check=0)
        jumar(place, "cases", "run", "--json", "--resume", *limit, check=1)  # nothing is left for case 2
    assert ("1.1 agent", "1.2 agent") == tuple(one for one in calls(place) if "agent" in one), "it is not paid for again"
    (_, second), end = RunReader(place / RUN).case(1).iterations(), RunReader(place / RUN).case(2).end()
    assert ("step_timeout", "step agent: not run again: the seconds of the run are used up") == (second.status, second.reason)
    assert "lost" == second.steps[-1].outcome
    assert (second.steps[-1].seconds or 0.0) >= 1.0
    assert end is not None
    assert ("max_seconds", 0) == (end.stopped_by, end.iterations)
    assert_whole(place / RUN)


@pytest.mark.parametrize(
    ("signals", "code", "again"),
    [((signal.SIGINT,), 130, 0), ((signal.SIGINT, signal.SIGINT), 130, 1), ((signal.SIGTERM,), 143, 1)],
)
def test_a_run_that_is_stopped_by_a_signal_goes_on_to_the_same_end(
    tmp_path: Path, whole: tuple[dict[str, Any], list[str]], signals: tuple[int, ...], code: int, again: int
) -> None:
    expected, paid = whole
    place = tmp_path / "stopped"
    with hanging(place, "1.2 agent") as process:
        for number in signals:
            process.send_signal(number)
            time.sleep(0.2)
        if not again:
            (place / "hang").unlink()
        out, err = process.communicate(timeout=60)
        assert code == process.returncode, err
        assert {"interrupted", "terminated"} & {json.loads(out)["stopped_by"]}
        assert {(1, 1)} == recorded(place / RUN)
        assert_whole(place / RUN)
        before_steps(place, "exit 0")
        jumar(place, "cases", "run", "--json", "--resume", check=0)
    assert expected == facts(place / RUN)
    assert sorted([*paid, *["1.2 agent"] * again]) == sorted(calls(place))
    wanted = [("augment", "ok"), *[("agent", "interrupted")] * again, *((name, "ok") for name in STEPS[1:])]
    assert wanted == outcomes(place, 1, 2)


def test_an_ended_run_is_resumed_to_the_same_bytes(tmp_path: Path) -> None:
    expected, paid = undisturbed(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in sorted((tmp_path / RUN).rglob("*"))}
    jumar(tmp_path, "cases", "run", "--json", "--resume", "--run-id", "t", check=0)
    assert before == {path: path.stat().st_mtime_ns for path in sorted((tmp_path / RUN).rglob("*"))}
    assert (expected, paid) == (facts(tmp_path / RUN), calls(tmp_path))


def test_a_case_whose_best_is_written_is_decided_even_when_a_resume_allows_more(tmp_path: Path) -> None:
    write_pipeline(tmp_path, {1: [(5, 5, 5), (6, 6, 6), (9, 9, 9)]})
    jumar(tmp_path, "cases", "run", "--json", "--max-iters", "2", check=0)
    before = facts(tmp_path / RUN)
    (tmp_path / RUN / "case_01" / "case.json").unlink()  # as if killed between the two
    jumar(tmp_path, "cases", "run", "--json", "--resume", check=0)
    assert before == facts(tmp_path / RUN)


def test_an_iteration_whose_step_failed_is_no_damage(tmp_path: Path) -> None:
    write_pipeline(tmp_path, {1: [(5, 5, 5), (6, 6, 6)]})
    before_steps(tmp_path, 'case "$JUMAR_ITERATION $1" in "1 judge") exit 3;; esac')
    jumar(tmp_path, "cases", "run", "--json", check=0)
    assert ["step_failed", "ok"] == [record.status for record in RunReader(tmp_path / RUN).case(1).iterations()]
    assert_whole(tmp_path / RUN)


@pytest.mark.parametrize("name", ["judge_result_", "augmentation_diff_"])
def test_a_disk_that_refuses_to_read_what_a_step_wrote_ends_the_run_and_the_iteration_is_made_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_pipeline(tmp_path, SCORES, steps=(), extra="[dry_run]\n")
    call(*OPTIONS, check=0)
    expected = facts(tmp_path / RUN)
    shutil.rmtree(tmp_path / RUN)

    opened, refused = os.open, list[Path]()

    def refusing(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        parts = Path(os.fsdecode(path)).parts
        reads = not flags & (os.O_WRONLY | os.O_RDWR)
        if reads and not refused and "pending" in parts and "iter_0002" in parts and parts[-1].startswith(name):
            refused.append(Path(*parts))
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        return opened(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", refusing)
    ended = call(*OPTIONS, check=1)
    assert refused
    assert "StoreWriteError" == ended.document["error"]["kind"]
    assert "could not read what the steps wrote in" in ended.err
    assert "Input/output error: run the command again" in ended.err
    assert {(1, 1)} == recorded(tmp_path / RUN)
    assert_whole(tmp_path / RUN)

    call(*OPTIONS, "--resume", check=0)
    assert expected == facts(tmp_path / RUN)
    assert_whole(tmp_path / RUN)
