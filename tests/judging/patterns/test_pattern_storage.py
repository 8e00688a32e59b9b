"""Patterns on disk: cut off at every byte, killed at every call, refused by the disk; and every version of them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pytest
from dying import Killed, Way, changing_calls, dying, not_waiting

from jumar.core.lock import writing
from jumar.errors import LockedError, NotFoundError, PatternLoadError, PatternSaveError, StoreDamagedError
from jumar.judging.patterns import PatternSet, PatternStore, PatternV2, load_patterns_safely, save_patterns_safely
from jumar.judging.patterns.storage import (
    OtherFormatError,
    PatternBackupWarning,
    PatternReplacedWarning,
    load_pattern_set,
    update_calibration_history,
)

WHEN = datetime(2026, 1, 16, 12, tzinfo=UTC)
FILE = Path("patterns.json")
BACKUP = Path("patterns.json.backup")


def pattern(number: int, **fields: Any) -> PatternV2:
    known: dict[str, Any] = {"type": "good", "description": f"d{number}", "keywords": [], "source": "t", "discovered_at": WHEN}
    return PatternV2(id=f"p_{number:03d}", **{**known, **fields})


def a_set(*numbers: int, **sections: Any) -> PatternSet:
    return PatternSet(version="2.0", patterns=[pattern(number) for number in numbers], **sections)


def ids(found: list[PatternV2]) -> list[str]:
    return [one.id for one in found]


def test_what_was_saved_is_loaded():
    wanted = a_set(1, 2, iteration_learned=3, scoring_weights={"title": 0.5}, something_else={"kept": [1]})
    save_patterns_safely(wanted, FILE)
    assert wanted == load_pattern_set(FILE)
    assert wanted.patterns == load_patterns_safely(str(FILE))
    assert not BACKUP.exists()
    assert {"patterns.json", "patterns.json.lock", "patterns.json.versions"} == {found.name for found in Path.cwd().iterdir()}


def test_a_list_keeps_the_other_sections_of_the_file():
    save_patterns_safely(a_set(1, scoring_weights={"title": 0.5}, more="m"), FILE)
    save_patterns_safely([pattern(2)], FILE)
    assert a_set(2, scoring_weights={"title": 0.5}, more="m") == load_pattern_set(FILE)
    assert a_set(1, scoring_weights={"title": 0.5}, more="m") == load_pattern_set(BACKUP)


def test_a_list_makes_a_new_file():
    save_patterns_safely([pattern(1)], FILE)
    assert a_set(1) == load_pattern_set(FILE)


def test_a_list_over_a_file_that_cannot_be_read_is_refused():
    FILE.write_text("{")
    with pytest.raises(PatternSaveError, match="would lose what else the file holds"):
        save_patterns_safely([pattern(1)], FILE)
    assert "{" == FILE.read_text()


def test_a_value_out_of_bounds_is_not_saved():
    save_patterns_safely(a_set(1), FILE)
    wrong = pattern(2)
    wrong.weight = 3.0
    with pytest.raises(PatternSaveError, match=r"not saved, .* as it was: .*p_002.*weight is 3.0"):
        save_patterns_safely([wrong], FILE)
    wrong.weight = float("nan")
    with pytest.raises(PatternSaveError, match="not saved"):
        save_patterns_safely([wrong], FILE)
    assert ["p_001"] == ids(load_patterns_safely(FILE))


def test_a_mapping_is_a_whole_set():
    document = a_set(1, scoring_weights={"title": 0.5}).model_dump(mode="json")
    save_patterns_safely(a_set(2, more="m"), FILE)
    save_patterns_safely(document, FILE)
    assert a_set(1, scoring_weights={"title": 0.5}) == load_pattern_set(FILE)
    PatternStore(FILE).save({**document, "patterns": []}, "none")
    assert [] == load_patterns_safely(FILE)
    with pytest.raises(
        PatternSaveError, match=r"not saved, .*patterns.json is as it was: what is to be saved: 'patterns' is missing"
    ):
        save_patterns_safely({"version": "2.0"}, FILE)


def test_a_damaged_file_never_becomes_the_backup():
    for number in (1, 2):
        save_patterns_safely(a_set(number), FILE)
    FILE.write_bytes(FILE.read_bytes()[:-20])
    with pytest.warns(PatternReplacedWarning, match="is kept as .*unreadable"):
        save_patterns_safely(a_set(3), FILE)
    assert ["p_001"] == ids(load_patterns_safely(BACKUP))
    assert ["p_003"] == ids(load_patterns_safely(FILE))


def test_a_link_stays_a_link_and_the_mode_stays():
    Path("real").mkdir()
    FILE.symlink_to("real/p.json")
    save_patterns_safely(a_set(1), FILE)
    Path("real/p.json").chmod(0o600)
    save_patterns_safely(a_set(2), FILE)
    assert FILE.is_symlink()
    assert (0o600, 0o600) == tuple(Path(f"real/p.json{end}").stat().st_mode & 0o777 for end in ("", ".backup"))


def test_a_file_that_is_cut_off_anywhere_is_read_from_its_backup(caplog: pytest.LogCaptureFixture):
    for number in (1, 2):
        save_patterns_safely(a_set(number), FILE)
    whole = FILE.read_bytes()
    for length in range(len(whole) - 1):  # the last byte is a line feed
        FILE.write_bytes(whole[:length])
        with (
            caplog.at_level(logging.WARNING, "jumar.patterns"),
            pytest.warns(PatternBackupWarning, match=r"read .*backup instead"),
        ):
            assert ["p_001"] == ids(load_patterns_safely(FILE))
    assert len(whole) - 1 == len(caplog.records)
    assert "patterns_backup_read" == caplog.records[0].__dict__["event"]


def test_a_file_that_is_cut_off_anywhere_without_a_backup_is_an_error():
    save_patterns_safely(a_set(1), FILE)
    whole = FILE.read_bytes()
    for length in range(len(whole) - 1):
        FILE.write_bytes(whole[:length])
        with pytest.raises(PatternLoadError, match=r"patterns.json, line \d+: not JSON"):
            load_patterns_safely(FILE)


def test_both_damaged_is_one_error_that_names_both():
    FILE.write_text("{")
    BACKUP.write_bytes(b"\xff")
    with pytest.raises(
        PatternLoadError, match=r"^patterns.json, line 1: .* its backup is no better: patterns.json.backup, line 1"
    ):
        load_patterns_safely(FILE)


def test_a_missing_file_is_an_error_even_with_a_backup():
    with pytest.raises(PatternLoadError, match=r"^there is no patterns file patterns.json$"):
        load_patterns_safely(FILE)
    save_patterns_safely(a_set(1), BACKUP)
    with pytest.raises(PatternLoadError, match=r"its backup patterns.json.backup is there"):
        load_patterns_safely(FILE)


@pytest.mark.parametrize("version", ["1.0", "3.0"])
def test_another_format_is_not_damage(version: str):
    save_patterns_safely(a_set(1), BACKUP)
    FILE.write_text(json.dumps({"version": version, "patterns": []}))
    with pytest.raises(PatternLoadError, match=r"format|newer"):
        load_patterns_safely(FILE)


def test_a_directory_is_an_error():
    FILE.mkdir()
    with pytest.raises(PatternLoadError, match="no regular file"):
        load_patterns_safely(FILE)
    with pytest.raises(PatternSaveError, match="no regular file"):
        save_patterns_safely(a_set(1), FILE)


@pytest.mark.parametrize("way", get_args(Way))
def test_whatever_happens_while_saving_the_file_is_the_old_or_the_new_one(way: Way):
    def prepare() -> None:
        for found in Path.cwd().iterdir():
            shutil.rmtree(found) if found.is_dir() else found.unlink()
        save_patterns_safely(a_set(1), FILE)
        save_patterns_safely(a_set(2), FILE)

    with not_waiting():
        prepare()
        calls = changing_calls(lambda: save_patterns_safely(a_set(3), FILE))
        assert calls > 8
        for at in range(1, calls + 1):
            prepare()
            ended = "well"
            with dying(at, way):
                try:
                    save_patterns_safely(a_set(3), FILE)
                except Killed:
                    ended = "killed"
                except PatternSaveError:
                    ended = "refused"
            found = ids(load_patterns_safely(FILE))
            assert found == ["p_003"] if ended == "well" else found in (["p_002"], ["p_003"])
            assert ids(load_patterns_safely(BACKUP)) in (["p_001"], ["p_002"])
            save_patterns_safely(a_set(4), FILE)
            assert ["p_004"] == ids(load_patterns_safely(FILE))
            assert not Path("patterns.json.tmp").exists()


def test_only_one_writes_at_a_time():
    with (
        writing(FILE),
        pytest.raises(LockedError, match=r"patterns.json is being written by another process"),
        writing(FILE, patience=0.0),
    ):
        pass
    begun = threading.Event()

    def save() -> None:
        begun.set()
        save_patterns_safely(a_set(2), FILE)

    with writing(FILE):
        other = threading.Thread(target=save)
        other.start()
        begun.wait()
        assert not FILE.exists()
    other.join()
    assert ["p_002"] == ids(load_patterns_safely(FILE))


def test_a_folder_that_is_not_there():
    with pytest.raises(PatternSaveError, match=r"nowhere/patterns.json was not written: No such file"):
        save_patterns_safely(a_set(1), "nowhere/patterns.json")


def test_the_history_keeps_the_first_and_the_last_49():
    history: list[dict[str, Any]] = []
    for number in range(120):
        before = list(history)
        found = update_calibration_history(history, {"iteration": number})
        assert before == history
        history = found
    assert [0, *range(71, 120)] == [one["iteration"] for one in history]


def test_a_model_in_the_history_is_a_record():
    assert [{"a": 1}, pattern(1).model_dump(mode="json")] == update_calibration_history([{"a": 1}], pattern(1))


# ------------------------------------------------------------------------------------------------------------ versions


def test_every_save_is_a_version():
    store = PatternStore(FILE, now=lambda: WHEN)
    hashes = [store.save(a_set(*range(1, number + 1)), f"save {number}") for number in (1, 2, 3)]
    assert [(n, hashes[n - 1], n, "2026-01-16T12:00:00Z", f"save {n}") for n in (1, 2, 3)] == [
        (one.number, one.hash, one.patterns, one.at, one.message) for one in store.log()
    ]
    assert a_set(1, 2, 3) == store.load()
    assert a_set(1, 2) == store.get(hashes[1]) == store.get(hashes[1][:8].upper())


def test_the_same_content_has_the_same_hash():
    store = PatternStore(FILE)
    assert store.save(a_set(1), "a") == store.save(a_set(1), "b")
    assert ["a", "b"] == [one.message for one in store.log()]
    assert 1 == len(list((store.directory / "objects").iterdir()))


def test_rolling_back_is_a_new_save_and_loses_nothing():
    store = PatternStore(FILE)
    first, second = store.save(a_set(1), "one"), store.save(a_set(2), "two")
    assert first == store.rollback(first[:6])
    assert a_set(1) == store.load()
    assert [first, second, first] == [one.hash for one in store.log()]
    assert f"rolled back to {first[:12]}" == store.log()[-1].message
    assert a_set(2) == store.get(second)


def test_what_another_program_saved_is_recorded_first():
    write_as_another_program(a_set(1))
    store = PatternStore(FILE)
    store.save(a_set(2), "mine")
    write_as_another_program(a_set(3))
    store.rollback(store.log()[0].hash)
    assert [(1, "found in the file"), (1, "mine"), (1, "found in the file, saved by another program")] == [
        (one.patterns, one.message) for one in store.log()[:3]
    ]
    assert a_set(3) == store.get(store.log()[2].hash)
    assert a_set(1) == store.load()


def test_a_save_that_somebody_puts_back_is_no_other_programs():
    store = PatternStore(FILE)
    store.save(a_set(1), "one")
    first = FILE.read_bytes()
    store.save(a_set(2), "two")
    FILE.write_bytes(first)
    store.save(a_set(3), "three")
    assert "found in the file, which is save 1 put back" == store.log()[2].message
    assert store.log()[0].hash == store.log()[2].hash


def test_a_command_says_once_that_it_read_the_backup():
    save_patterns_safely(a_set(1), FILE)
    save_patterns_safely(a_set(2), FILE)
    FILE.write_text("{")
    Path("items.jsonl").write_text('{"id": "a", "text": "Something that was written."}\n')
    command = [sys.executable, "-m", "jumar.cli.entry", "evaluate", "items.jsonl", "--mode", "cheap", "--patterns", str(FILE)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert 1 == " ".join(told.split()).count("which is one save older"), told


def write_as_another_program(patterns: PatternSet) -> None:
    FILE.write_text(json.dumps(patterns.model_dump(mode="json")))


def test_saving_by_the_function_is_a_version_too():
    for number in (1, 2, 3):
        save_patterns_safely(a_set(number), FILE)
    store = PatternStore(FILE)
    assert [a_set(1), a_set(2), a_set(3)] == [store.get(one.hash) for one in store.log()]
    store.save([pattern(4)], "a list")
    assert a_set(4) == store.load()


def test_rolling_back_to_another_programs_shape_says_what_is_in_the_file():
    write_as_another_program(a_set(1))
    foreign = hashlib.sha256(FILE.read_bytes()).hexdigest()
    store = PatternStore(FILE)
    store.save(a_set(2))
    written = store.rollback(foreign)
    assert written == hashlib.sha256(FILE.read_bytes()).hexdigest() == store.log()[-1].hash != foreign
    assert a_set(1) == store.load() == store.get(foreign)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"version": "1.0", "patterns": []}, "of format 1"),
        ({"version": 1.0, "patterns": []}, "of format 1"),
        ({"patterns": [{"type": "good_pattern", "description": "d"}]}, "of format 1"),
        ({"version": "3.0", "patterns": "unheard of"}, "newer jumar"),
    ],
)
@pytest.mark.parametrize("one_of", [lambda: a_set(1), lambda: [pattern(1)]])
def test_a_file_of_another_format_is_not_overwritten(content: Any, message: str, one_of: Callable[[], Any]):
    FILE.write_text(json.dumps(content))
    before = FILE.read_bytes()
    with pytest.raises(PatternSaveError, match=message):
        save_patterns_safely(one_of(), FILE)
    assert before == FILE.read_bytes()
    assert [] == PatternStore(FILE).log()
    with pytest.raises(OtherFormatError, match=r"not saved, .*patterns.json is as it was: .*; save under another name"):
        PatternStore(FILE).save(a_set(1))


def test_bytes_that_cannot_be_read_are_kept(caplog: pytest.LogCaptureFixture):
    save_patterns_safely(a_set(1), FILE)
    kept: list[bytes] = []
    for damaged in (b"{", b"\xff\x00", b'{"notes": []}', b"", b"{"):
        FILE.write_bytes(damaged)
        kept.append(damaged)
        with pytest.warns(PatternReplacedWarning, match=r"patterns.json could not be read as patterns; .* kept as .*unreadable"):
            save_patterns_safely(a_set(2), FILE)
        found = [one.read_bytes() for one in Path("patterns.json.versions/unreadable").iterdir()]
        assert sorted(set(kept)) == sorted(found)
    assert "patterns_unreadable_kept" == caplog.records[0].__dict__["event"]
    assert 6 == len(PatternStore(FILE).log())


def test_differences():
    store = PatternStore(FILE)
    first = store.save(a_set(1, 2, 3), "one")
    changed = a_set(2, 3, 4, scoring_weights={"title": 0.5})
    changed.patterns[0].weight = 0.25
    second = store.save(changed, "two")
    found = store.diff(first, second)
    assert (["p_004"], ["p_001"]) == (ids(list(found.added)), ids(list(found.removed)))
    assert [("p_002", {"weight": (1.0, 0.25)})] == [(one.id, one.fields) for one in found.changed]
    assert ("scoring_weights",) == found.sections
    assert found == store.diff(first)
    assert not store.diff(second)


def test_versions_that_are_not_there():
    store = PatternStore(FILE)
    assert [] == store.log()
    with pytest.raises(NotFoundError, match=r"no version 'abcd' of .*jumar patterns log"):
        store.get("abcd")
    version = store.save(a_set(1))
    with pytest.raises(NotFoundError, match="too short"):
        store.get(version[:3])
    assert not list(Path.cwd().glob("*.tmp"))


def test_an_altered_version_is_found_out():
    store = PatternStore(FILE)
    version = store.save(a_set(1))
    (place,) = (store.directory / "objects").iterdir()
    place.write_bytes(place.read_bytes().replace(b"p_001", b"p_009"))
    with pytest.raises(StoreDamagedError, match="altered or cut off"):
        store.get(version)
    store.save(a_set(1), "mends it")
    assert a_set(1) == store.get(version)
    place.unlink()
    with pytest.raises(StoreDamagedError, match="is lost"):
        store.rollback(version)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": "x"}', '{"format": 2}'])
def test_a_damaged_log_is_found_out(content: str):
    store = PatternStore(FILE)
    store.save(a_set(1))
    (store.directory / "log" / "000001.json").write_text(content)
    with pytest.raises(StoreDamagedError, match=r"000001\.json"):
        store.log()


@pytest.mark.parametrize("way", get_args(Way))
def test_whatever_happens_while_a_version_is_saved_the_file_is_whole_and_no_version_is_lost(way: Way):
    def prepare(name: str) -> PatternStore:
        Path(name).mkdir()
        store = PatternStore(Path(name) / FILE, now=lambda: WHEN)
        store.save(a_set(1), "one")
        return store

    with not_waiting():
        counted = prepare("counted")
        calls = changing_calls(lambda: counted.save(a_set(2), "two"))
        for at in range(1, calls + 1):
            store = prepare(f"at{at}")
            with dying(at, way), contextlib.suppress(Killed, PatternSaveError):
                store.save(a_set(2), "two")
            found = store.load()
            assert found in (a_set(1), a_set(2))
            after = PatternStore(store.path, now=lambda: WHEN)
            after.save(a_set(3), "three")
            recorded = [after.get(one.hash) for one in after.log()]
            assert found in recorded
            assert (a_set(1), a_set(3)) == (recorded[0], recorded[-1])
