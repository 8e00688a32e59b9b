"""When a proof goes stale: how often by chance, by groups, and how often when something has changed.

``JUMAR_SWEEP=full`` runs ten times as many of each.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from scipy.stats import binom

from jumar.core.lock import writing
from jumar.errors import LockedError, StoreDamagedError
from jumar.judging import exchange
from jumar.judging.auto.results import Audit, AuditLog, read_audits, write_audits
from jumar.judging.proofs import audit_evidence, drift

FULL = os.environ.get("JUMAR_SWEEP") == "full"
CHANCE: Final = 1e-4
"""How often a correct program fails one of the counts below."""

Sample = tuple[list[float], list[str]]


def scores(draw: np.random.Generator, groups: int, size: int, shared: float, *, shift: float = 0.0) -> Sample:
    """Cheap scores around 3; ``shared`` is the part of their variance that is of the group."""
    of_group = np.repeat(draw.normal(0, math.sqrt(shared), groups), size)
    values = 3.0 + shift + 0.7 * (of_group + draw.normal(0, math.sqrt(1 - shared), groups * size))
    return np.clip(values, 1, 5).tolist(), [f"g{place // size}" for place in range(groups * size)]


def drifts(known: Sample, new: Sample) -> bool:
    found = drift(known[0], new[0], known_groups=known[1], new_groups=new[1])
    assert found is not None
    return found[1]


# ---------------------------------------------------------------------------------------------------------------- drift


@pytest.mark.parametrize(
    ("known", "new"),
    [
        ((120, 1, 0.0), (120, 1, 0.0)),
        ((30, 4, 0.9), (30, 4, 0.9)),
        ((12, 10, 0.9), (12, 10, 0.9)),
        ((24, 7, 0.5), (8, 5, 0.5)),
        ((100, 4, 0.0), (30, 1, 0.0)),  # groups of one sample are larger than those of the other
        ((30, 4, 0.9), (400, 1, 0.0)),
        ((168, 1, 0.0), (8, 20, 0.6)),
    ],
)
@pytest.mark.sweep
def test_unchanged_groups_are_drift_in_hardly_one_of_a_thousand_samples(
    known: tuple[int, int, float], new: tuple[int, int, float]
) -> None:
    draw = np.random.default_rng(19)
    runs = 2_000 if FULL else 150
    found = sum(drifts(scores(draw, *known), scores(draw, *new)) for _ in range(runs))
    print(f"{found} of {runs} samples of unchanged groups are drift: known {known}, new {new}")

    assert found <= binom.ppf(1 - CHANCE, runs, 0.001)


@pytest.mark.sweep
@pytest.mark.parametrize("groups", [(120, 1, 0.0), (30, 4, 0.9), (24, 7, 0.5)])
def test_the_level_of_chance_is_kept_where_it_can_be_counted(
    monkeypatch: pytest.MonkeyPatch, groups: tuple[int, int, float]
) -> None:
    """The same test at a level of a tenth, which a few hundred runs tell from another one."""
    monkeypatch.setattr(exchange, "DEALS", 199)
    draw = np.random.default_rng(20)
    runs = 4_000 if FULL else 400
    cuts = [2.0, 2.5, 3.0, 3.5, 4.0]
    found = 0
    for _ in range(runs):
        (known, names), (new, others) = scores(draw, *groups), scores(draw, *groups)
        found += exchange.beyond_chance(known, new, names, others, cuts, chance=0.1)
    print(f"{found} of {runs} at 10%, {groups}")

    assert found <= binom.ppf(1 - CHANCE, runs, 0.1)
    assert found >= 0.02 * runs  # of two tests that have to agree


@pytest.mark.parametrize(
    ("known", "new", "least"),
    [((120, 1, 0.0), (120, 1, 0.0), 0.95), ((60, 4, 0.5), (60, 4, 0.5), 0.9), ((24, 7, 0.5), (24, 7, 0.5), 0.4)],
)
@pytest.mark.sweep
def test_a_move_of_a_point_is_found(known: tuple[int, int, float], new: tuple[int, int, float], least: float) -> None:
    draw = np.random.default_rng(21)
    runs = 200 if FULL else 20
    found = sum(drifts(scores(draw, *known), scores(draw, *new, shift=1.0)) for _ in range(runs))
    print(f"{found} of {runs} moves by a point are found: known {known}, new {new}")

    assert found >= least * runs


def test_scores_that_are_all_the_same_may_not_jump_unseen() -> None:
    for moved in (1.0, 3.0, 4.2, 5.0):
        assert (drift([4.0] * 100, [moved] * 100) or (0, False))[1]
    assert drift([4.0] * 100, [4.0] * 100) == (0.0, False)
    assert drift([4.0] * 100, [4.0] * 50 + [4.0001] * 50) == (0.0, False)  # less than a hundredth of a point is no move
    draw = np.random.default_rng(22)
    nearly = (4 + draw.normal(0, 0.0005, 100)).tolist()
    assert drift(nearly, (4.001 + draw.normal(0, 0.0005, 100)).tolist()) == (0.0, False)
    assert (drift(nearly, [5.0] * 100) or (0, False))[1]


@pytest.mark.parametrize(
    ("known", "new"),
    [
        ([2.0] * 20 + [3.0] * 60 + [4.0] * 20, [2.0] * 20 + [3.9] * 60 + [4.0] * 20),  # off a tie in the midst
        ([2.0] * 40 + [4.0] * 60, [2.0] * 40 + [5.0] * 60),  # off the highest one
        ([2.0] * 60 + [4.0] * 40, [1.0] * 60 + [4.0] * 40),  # off the lowest one
        (
            [2 + place / 100 for place in range(100)],
            [2 + place / 100 for place in range(80)] + [4.9] * 20,
        ),  # beyond all known ones
    ],
)
def test_what_leaves_a_tie_or_all_that_is_known_is_drift(known: list[float], new: list[float]) -> None:
    found = drift(known, new)
    print(found)
    assert found is not None
    assert found[1]


def test_of_too_few_groups_nothing_can_be_said() -> None:
    known = [2 + place / 100 for place in range(100)]
    assert drift(known, [5.0] * 40, new_groups=["one"] * 40, known_groups=[f"g{place // 5}" for place in range(100)]) == (
        pytest.approx(5.0, abs=3.0),
        False,
    )
    assert drift(known[:29], known) is None
    with pytest.raises(ValueError, match="give as many"):
        drift(known, known, new_groups=["one"])


# -------------------------------------------------------------------------------------------------------------- audits


def errors(draw: np.random.Generator, groups: int, size: int, shared: float, *, scale: float = 1.0, name: str = "k") -> Sample:
    of_group = np.repeat(draw.normal(0, math.sqrt(shared), groups), size)
    values = 0.5 * scale * np.abs(of_group + draw.normal(0, math.sqrt(1 - shared), groups * size))
    return np.minimum(4.0, values).tolist(), [f"{name}{place // size}" for place in range(groups * size)]


def fails(known: Sample, audits: Sample) -> bool:
    pairs = [(1.0, 1.0 + error) for error in audits[0]]
    return audit_evidence(known[0], pairs, groups=known[1], audit_groups=audits[1]) >= 100


@pytest.mark.parametrize(
    ("known", "audited"),
    [
        ((100, 1, 0.0), (100, 1, 0.0)),
        ((60, 1, 0.0), (300, 1, 0.0)),
        ((13, 8, 1.0), (13, 8, 1.0)),
        ((13, 8, 0.5), (13, 8, 0.5)),
        ((24, 7, 0.0), (100, 1, 0.0)),  # a few audits of each group
        ((24, 7, 1.0), (100, 2, 1.0)),
    ],
)
@pytest.mark.sweep
def test_unchanged_groups_fail_the_audits_in_at_most_one_of_a_hundred_runs(
    known: tuple[int, int, float], audited: tuple[int, int, float]
) -> None:
    draw = np.random.default_rng(23)
    runs = 5_000 if FULL else 500
    found = sum(fails(errors(draw, *known), errors(draw, *audited, name="a")) for _ in range(runs))
    print(f"{found} of {runs} runs reach 100 to 1 where nothing changed: known {known}, audited {audited}")

    assert found <= binom.ppf(1 - CHANCE, runs, 0.01)


@pytest.mark.parametrize(
    ("known", "audited", "least"),
    [
        ((100, 1, 0.0), (100, 1, 0.0), 0.85),
        ((60, 1, 0.0), (300, 1, 0.0), 0.85),
        ((24, 7, 0.5), (100, 4, 0.5), 0.8),
        ((24, 7, 0.5), (24, 2, 0.5), 0.35),
    ],
)
@pytest.mark.sweep
def test_errors_that_doubled_are_found(known: tuple[int, int, float], audited: tuple[int, int, float], least: float) -> None:
    draw = np.random.default_rng(24)
    runs = 1_000 if FULL else 100
    found = sum(fails(errors(draw, *known), errors(draw, *audited, name="a", scale=2.0)) for _ in range(runs))
    print(f"{found} of {runs} runs reach 100 to 1 where errors doubled: known {known}, audited {audited}")

    assert found >= least * runs


@pytest.mark.sweep
def test_groups_that_come_back_in_every_evaluation_do_not_raise_the_alarm() -> None:
    """Twenty evaluations of the same 30 groups: the highest evidence of all looks counts."""
    draw = np.random.default_rng(25)
    runs = 1_000 if FULL else 100
    found = {0.0: 0, 0.5: 0, 0.9: 0}
    for shared in found:
        for _ in range(runs):
            known = errors(draw, 24, 7, shared)
            audited, names = errors(draw, 30, 20, shared, name="a")
            order = [group * 20 + look for look in range(20) for group in range(30)]
            looks = (order[: 30 * look] for look in range(1, 21))
            found[shared] += any(fails(known, ([audited[at] for at in look], [names[at] for at in look])) for look in looks)
    print(f"runs of {runs} in which one of 20 looks reached 100 to 1, by what errors of a group share: {found}")

    assert all(count <= binom.ppf(1 - CHANCE, runs, 0.01) for count in found.values())


def test_errors_of_a_few_groups_that_are_larger_than_all_known_ones_are_found_soon() -> None:
    known = [place / 100 for place in range(24)]
    evidence = [audit_evidence(known, [(1.0, 3.0)] * count) for count in range(12)]
    print([round(one, 1) for one in evidence])

    assert evidence[0] == 1.0
    assert evidence[3] < 100 < evidence[4]
    assert audit_evidence(known, [(1.0, 3.0)] * 12, audit_groups=["one"] * 12) == evidence[1]  # a group is one bet
    assert audit_evidence([], [(1.0, 3.0)] * 12) == 1.0
    assert audit_evidence([0.5] * 30, [(1.0, 1.5)] * 200) == 1.0  # as large as all is no failure


# ------------------------------------------------------------------------------------------------------- the file of audits


def audits(first: int, count: int) -> tuple[Audit, ...]:
    numbers = range(first, first + count)
    return tuple(
        Audit(id=f"i{one}", item=f"h{one}", patterns="p", cheap=3.0, expensive=3.5, group=f"g{one % 7}") for one in numbers
    )


def test_two_evaluations_at_once_lose_no_audit(tmp_path: Path) -> None:
    path = tmp_path / "audits.jsonl"
    one, other = read_audits(path, "p"), read_audits(path, "p")
    write_audits(path, one.added(audits(0, 64)))
    write_audits(path, other.added(audits(60, 71)))

    assert read_audits(path, "p").audits == audits(0, 131)
    assert read_audits(path, "p").groups[:8] == ["g0", "g1", "g2", "g3", "g4", "g5", "g6", "g0"]


def test_many_processes_lose_no_audit(tmp_path: Path) -> None:
    path = tmp_path / "audits.jsonl"
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from jumar.judging.auto.results import Audit, AuditLog, write_audits\n"
        "for one in range(10):\n"
        "    number = int(sys.argv[2]) * 100 + one\n"
        "    new = Audit(id=f'i{number}', item=f'h{number}', patterns='p', cheap=3.0, expensive=3.5)\n"
        "    write_audits(Path(sys.argv[1]), AuditLog((new,), 'p'))\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", script, str(path), str(number)]) for number in range(3)]
    assert [one.wait(60) for one in running] == [0] * 3

    found = {one.id for one in read_audits(path, "p").audits}
    assert found == {f"i{process * 100 + one}" for process in range(3) for one in range(10)}


def test_a_file_that_is_held_or_damaged_meanwhile_is_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "audits.jsonl"
    log = AuditLog(audits(0, 3), "p")
    monkeypatch.setattr("jumar.judging.auto.results.PATIENCE", 0.0)
    with writing(path), pytest.raises(LockedError, match="is being written by another process"):
        write_audits(path, log)
    assert not path.exists()
    path.write_text("{}\n")
    with pytest.raises(StoreDamagedError, match=r"audits\.jsonl:1: not an audit"):
        write_audits(path, log)
    assert path.read_text() == "{}\n"


def test_audits_without_a_group_are_read_as_items_by_themselves(tmp_path: Path) -> None:
    path = tmp_path / "audits.jsonl"
    old = {"id": "a", "item": "h", "patterns": "p", "cheap": 2.0, "expensive": 3.0}
    path.write_text(json.dumps(old) + "\n" + json.dumps({**old, "item": "i", "group": "g"}) + "\n")
    assert read_audits(path, "p").groups == [None, "g"]
    assert replace(read_audits(path, "p"), patterns="other").groups == []
    path.write_text(json.dumps({**old, "group": 3}) + "\n")
    with pytest.raises(StoreDamagedError, match="a group is a text or null"):
        read_audits(path, "p")
