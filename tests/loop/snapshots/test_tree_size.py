"""How large a directory is, where most of it lies, what would be left out; and which sizes a loop begins with unasked."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from jumar.app.config.config import JumarConfig
from jumar.app.run import preflight
from jumar.app.run.preflight import fitting_rules, refuse_full_disk, size_row
from jumar.core.copying import copies_share
from jumar.errors import ArtifactError, UsageError
from jumar.loop.snapshots.tree_size import TreeSize

MB = 1_000_000


def config(**artifacts: object) -> JumarConfig:
    checks = [{"name": "one", "command": "true"}]
    return JumarConfig.model_validate({"generator": {"command": "true"}, "checks": checks, "artifacts": artifacts})


def files(count: int, size: int = 1, where: str = "src") -> dict[str, int]:
    return {f"{where}/{number}": size for number in range(count)}


def fitted(sizes: dict[str, int], *, accept: bool = False, answer: bool | None = None, **artifacts: Any):
    told = config(**artifacts)
    asked: list[str] = []

    def ask(text: str) -> bool:
        asked.append(text)
        return bool(answer)

    rules, said = fitting_rules(told, told.artifacts.rules(), TreeSize(sizes), accept=accept, ask=None if answer is None else ask)
    return rules, said, asked


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ({}, False),
        (files(10_000), False),
        (files(10_001), True),
        (files(30_000), True),
        (files(60_000), True),
        ({"a": 100 * MB, "b": 100 * MB}, False),
        ({"a": 100 * MB, "b": 100 * MB, "c": 1}, True),
        (files(10, 100 * MB), True),
    ],
)
def test_a_large_directory_is_said_and_not_asked_about(sizes: dict[str, int], said: bool):
    rules, words, asked = fitted(sizes, answer=False)
    assert (said, []) == (words is not None, asked)
    assert (1_000_000, 1000 * MB, 100 * MB) == (rules.max_files, rules.max_total_bytes, rules.max_file_bytes)
    assert ("yellow" if said or not sizes else "green") == size_row(config(), TreeSize(sizes)).state


@pytest.mark.parametrize("sizes", [files(11, 100 * MB), {"src/a": 100 * MB + 1}])
def test_beyond_the_usual_limits_a_person_is_asked(sizes: dict[str, int]):
    with pytest.raises(UsageError, match="nothing was created; --accept-size keeps all of it"):
        fitted(sizes)
    with pytest.raises(UsageError, match=r"^nothing was created$"):  # what the question showed is not shown again
        fitted(sizes, answer=False)
    row = size_row(config(), TreeSize(sizes))
    assert ("yellow", True) == (row.state, "refuses where nobody can answer" in row.detail)
    assert "--accept-size" in row.fix

    for rules, said, _ in (fitted(sizes, accept=True), fitted(sizes, answer=True)):
        size = TreeSize(sizes)
        rules.check_size(size)
        assert size.shown() in (said or "")
        assert rules.max_files == max(1_000_000, 2 * size.files)
        assert rules.max_total_bytes == max(1000 * MB, 2 * size.bytes)


@pytest.mark.parametrize(
    ("artifacts", "sizes"),
    [
        ({"max_files": 10}, files(11)),
        ({"max_total_mb": 1}, files(2, MB)),
        ({"max_file_mb": 1}, files(1, MB + 1)),
        ({"max_files": 60_000}, files(60_001)),
    ],
)
def test_a_limit_of_the_configuration_holds_whatever_is_accepted(artifacts: dict[str, Any], sizes: dict[str, int]):
    with pytest.raises(ArtifactError, match="the snapshot would hold"):
        fitted(sizes, accept=True, **artifacts)
    assert "red" == size_row(config(**artifacts), TreeSize(sizes)).state


def test_a_higher_limit_of_the_configuration_is_the_answer_already():
    rules, said, asked = fitted(files(60_000), answer=False, max_files=70_000)
    assert (70_000, []) == (rules.max_files, asked)
    assert said is not None

    kept, _, _ = fitted(files(60_000, 20_000), accept=True, max_files=70_000)  # of the bytes there are more than usual
    assert (70_000, 2_400 * MB) == (kept.max_files, kept.max_total_bytes)


@pytest.mark.parametrize(
    ("sizes", "patterns"),
    [
        (files(9) | files(9, 10, "web/dist") | files(9, 5, "data"), ("dist/", "data/")),
        (files(9, 5, "a/build") | files(9, 5, "b/build/data"), ("build/",)),
        (files(1000, 1000) | files(1, 1, "data"), ("/src/",)),
        ({"src/a": 1, "src/weights.bin": 100 * MB + 1}, ("/src/weights.bin",)),
        ({"data/weights.bin": 100 * MB + 1, "src/a": 1}, ("data/",)),
        ({"odd\x1b.bin": 5, "src/a": 1}, (r"/odd\x1b.bin", "/src/")),
        (files(51_001, 0, "m") | {"test_a.py": 40}, ("/m/",)),
        (files(51_001, 0, "m") | files(2, 25 * MB, "n"), ("/m/", "/n/")),
    ],
)
def test_what_would_leave_out_most_of_it(sizes: dict[str, int], patterns: tuple[str, ...]):
    assert patterns == TreeSize(sizes).exclude(100 * MB)


@pytest.mark.parametrize(
    ("sizes", "limit"),
    [
        (files(2, 105 * MB), "2 files, 210.0 MB would be kept; the limit is 100.0 MB a file (2 are larger)\n"),
        (files(1_000_001), "; the limit is 1,000,000 files\n"),
        (files(11, 100 * MB) | {"a": 101 * MB}, "; the limit is 1.0 GB in all and 100.0 MB a file (1 is larger)\n"),
    ],
)
def test_the_limit_that_is_exceeded_is_said(sizes: dict[str, int], limit: str):
    with pytest.raises(UsageError, match=re.escape(limit)):
        fitted(sizes)


def test_the_words_have_the_five_largest_folders_and_both_ways_to_leave_one_out():
    sizes = {f"{name}/{number}": 100 * MB for name in ("data", "dist", "a", "b", "c", "d") for number in range(2)}
    sizes |= {"data/more": 100 * MB, "dist/more": 1 * MB}
    with pytest.raises(UsageError) as caught:
        fitted(sizes)
    assert [
        "the directory is large: 14 files, 1.3 GB would be kept; the limit is 1.0 GB in all",
        "   300.0 MB        3 files  data/",
        "   201.0 MB        3 files  dist/",
        "   200.0 MB        2 files  a/",
        "   200.0 MB        2 files  b/",
        "   200.0 MB        2 files  c/",
        'to leave out what the loop is not about: [artifacts] exclude = ["data/", "dist/"], or --exclude data/ --exclude dist/',
        "nothing was created; --accept-size keeps all of it",
    ] == str(caught.value).splitlines()


def test_a_first_snapshot_that_the_disk_has_no_room_for_is_refused(fresh_place: Path, monkeypatch: pytest.MonkeyPatch):
    root = Path(".jumar")
    monkeypatch.setattr(preflight, "free_bytes", lambda _: 10 * MB)
    monkeypatch.setattr(preflight, "copies_share", lambda *_: False)
    refuse_full_disk(root, fresh_place, TreeSize(files(2, 5 * MB)))
    with pytest.raises(
        UsageError, match=r"15\.0 MB would be kept, and 10\.0 MB are free where \.jumar lies: .*nothing was created"
    ):
        refuse_full_disk(root, fresh_place, TreeSize(files(3, 5 * MB)))

    refuse_full_disk(root, fresh_place, TreeSize(files(3, 5 * MB), holes=5 * MB))
    (root / "objects").mkdir(parents=True)
    (root / "objects" / "pack").write_bytes(bytes(5 * MB))  # an earlier loop may have stored the same
    refuse_full_disk(root, fresh_place, TreeSize(files(3, 5 * MB)))
    with pytest.raises(UsageError, match=r"20\.0 MB would be kept"):
        refuse_full_disk(root, fresh_place, TreeSize(files(4, 5 * MB)))
    monkeypatch.setattr(preflight, "copies_share", lambda *_: True)
    refuse_full_disk(root, fresh_place, TreeSize(files(4, 5 * MB)))
    with pytest.raises(UsageError, match=r"16\.0 MB would be kept"):  # those share a pack
        refuse_full_disk(root, fresh_place, TreeSize(files(16, MB)))


def test_holes_take_no_room(fresh_place: Path):
    (fresh_place / "full").write_bytes(os.urandom(100_000))
    with (fresh_place / "sparse").open("wb") as file:
        file.truncate(50 * MB)
    os.sync()
    size = TreeSize.of(fresh_place, ["full", "sparse"])
    assert size.bytes == 50 * MB + 100_000
    assert 100_000 <= size.room <= 200_000


def test_whether_copies_share_blocks_leaves_nothing_behind(fresh_place: Path):
    assert copies_share(fresh_place, fresh_place / "not/there") in {True, False}
    assert not copies_share(fresh_place / "gone", fresh_place)
    assert not copies_share(fresh_place, Path("/proc"))
    assert list(fresh_place.iterdir()) == []
