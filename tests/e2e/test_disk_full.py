"""A disk that fills up in the night: the loop stops with the best intact, and goes on when there is room."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from loops import calls, jumar, jumar_json, write_loop


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 8 MB for the store; where that is not allowed there is nothing to test."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small file system needs root")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=False)


def test_a_full_disk_stops_the_loop_before_a_pass_is_paid_for_and_room_lets_it_go_on(tmp_path: Path, small_disk: Path) -> None:
    work = tmp_path / "work"
    write_loop(work, [0.6, 0.7, 0.8])
    root = ["--root", str(small_disk)]
    stuffing = small_disk / "stuffing"

    agent = (work / "agent.py").read_text()
    (work / "agent.py").write_text(agent + f"\nif n == 2: open({str(stuffing)!r}, 'wb').write(bytes(4_500_000))\n")
    full = jumar_json(work, "run", *root, check=11)

    assert full["stop_reason"] == "disk_full"
    assert full["final_iteration"] == 2
    assert full["spend"]["iterations"] == 2, "nothing was paid for that could not be kept"
    assert jumar(work, "verify", "t", *root).returncode == 0

    stuffing.unlink()
    more = jumar_json(work, "run", *root)
    assert more["stop_reason"] == "max_iterations"
    assert more["selected_iteration"] == 3
    assert (work / "score.txt").read_text() == "0.8"


def test_the_end_of_a_pass_that_filled_the_disk_is_on_record(tmp_path: Path, small_disk: Path) -> None:
    work = tmp_path / "work"
    write_loop(work, [0.6, 0.7])
    stuffing = small_disk / "stuffing"
    fill = (
        f"\nif n == 1:\n    f = open({str(stuffing)!r}, 'wb', buffering=0)\n"
        "    try:\n        while f.write(bytes(4096)): pass\n    except OSError: pass\n"
    )
    (work / "agent.py").write_text((work / "agent.py").read_text() + fill)

    full = jumar_json(work, "run", "--root", str(small_disk), check=11)
    assert full["stop_reason"] == "disk_full"
    assert full["final_iteration"] == 1
    with contextlib.suppress(FileNotFoundError):
        stuffing.unlink()

    more = jumar_json(work, "run", "--root", str(small_disk))
    assert more["failures"] == {}, "the iteration had ended, was paid for and is scored, not lost"
    assert more["selected_iteration"] == 2


def test_a_snapshot_that_does_not_fit_ends_the_loop_and_is_taken_when_there_is_room(tmp_path: Path, small_disk: Path) -> None:
    work = tmp_path / "work"
    config = write_loop(work, [0.6, 0.9, 0.7])
    config.write_text(config.read_text().replace('"text.md"]', '"text.md", "big.bin"]'))
    stuffing = small_disk / "stuffing"
    big = f"open('big.bin', 'wb').write(b'b' * 2_500_000); open({str(stuffing)!r}, 'wb').write(bytes(6_500_000))"
    (work / "agent.py").write_text((work / "agent.py").read_text() + f"\nif n == 2: {big}\n")

    full = jumar_json(work, "run", "--root", str(small_disk), check=11)
    assert full["stop_reason"] == "disk_full"
    assert (full["final_iteration"], full["selected_iteration"]) == (1, 1)
    assert full["spend"]["iterations"] == 2
    assert (small_disk / "loops" / "t" / "decisions" / "0001-select.json").is_file(), "written with the room that was kept back"
    assert jumar(work, "verify", "t", "--root", str(small_disk)).returncode == 0
    assert jumar_json(work, "run", "--root", str(small_disk), check=11)["spend"]["iterations"] == 2, "still no room, nothing paid"

    stuffing.unlink()
    more = jumar_json(work, "run", "--root", str(small_disk), check=11)
    assert more["stop_reason"] == "disk_full", "another iteration would need twice as much"
    assert (more["final_iteration"], more["selected_iteration"]) == (2, 2)
    assert calls(work) == [1, 2], "not generated again"
    assert more["failures"] == {}


def test_a_check_that_fails_for_want_of_room_is_not_held_against_the_candidate(tmp_path: Path, small_disk: Path) -> None:
    work = tmp_path / "work"
    stuffing = small_disk / "stuffing"
    fill = f"test ! -e once || {{ rm once; dd if=/dev/zero of={stuffing} bs=64k; false; }}"
    write_loop(work, [0.6], check=fill)
    (work / "agent.py").write_text((work / "agent.py").read_text() + "\nopen('once', 'w').close()\n")

    full = jumar_json(work, "run", "--root", str(small_disk), check=11)
    assert (full["stop_reason"], full["final_iteration"]) == ("disk_full", 0)
    stuffing.unlink()
    more = jumar_json(work, "run", "--root", str(small_disk))
    assert (more["selected_iteration"], more["verified"]) == (1, True)
    assert calls(work) == [1]


def test_a_start_that_does_not_fit_is_refused_before_anything_is_created(tmp_path: Path, small_disk: Path) -> None:
    work = tmp_path / "work"
    write_loop(work, [0.6])
    (work / "text.md").write_bytes(os.urandom(9_000_000))
    os.sync()
    said = jumar(work, "run", "--root", str(small_disk / "store"), check=2).stderr
    assert "9.0 MB would be kept" in said
    assert list(small_disk.iterdir()) == []
    assert calls(work) == []
    assert "disk space" in jumar(work, "doctor", "--no-run", "--root", str(small_disk / "store")).stdout
    jumar_json(work, "run", "--root", str(small_disk / "store"), "--exclude", "text.md")
