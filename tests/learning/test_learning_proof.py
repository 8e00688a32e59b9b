"""A proof says what its rows say, and whoever changes it is found out."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from learning_kit import MADE, parts, planted_targets, set_of, small_proof

from jumar.errors import FormatTooNewError, ItemError, NotFoundError, StoreDamagedError
from jumar.judging import builtin_rubric
from jumar.judging.items.item import patterns_digest
from jumar.judging.proofs import Proof, audit_evidence, drift, parse_proof, read_proof, stale_reasons
from jumar.learning.proof.evidence import compare_with_judge
from jumar.learning.proof.make import look_at, make_proof, verify_proof
from jumar.learning.proof.split import split_items

PROOF, TARGETS, PATTERNS = small_proof()
ITEMS = [one.item for one in TARGETS]
RUBRIC = builtin_rubric("text")
BYTES = PROOF.to_bytes()


def tampered(change: Any, *, forged: bool = True) -> Proof:
    """The proof with ``change`` made to its JSON; ``forged``: with a hash of the content that fits again."""
    document = json.loads(BYTES)
    change(document)
    made = parse_proof(json.dumps(document))
    return made.hashed() if forged else made


def test_a_proof_holds_survives_its_file_and_is_the_same_each_time(tmp_path):
    path = tmp_path / "proof.json"
    path.write_bytes(BYTES)
    assert PROOF == read_proof(path)
    found = verify_proof(PROOF, items=ITEMS, patterns=PATTERNS, rubric=RUBRIC)
    assert () == found.problems
    assert (7, ()) == (len(found.checked), found.not_checked)
    assert (3, 4) == (len(verify_proof(PROOF).checked), len(verify_proof(PROOF).not_checked))
    assert small_proof()[0].to_bytes() == BYTES
    assert "tracks" == PROOF.verdict
    assert (72, 108) == (PROOF.items.sealed, PROOF.items.opened)
    assert (24, 36) == (PROOF.split.sealed_groups, PROOF.split.open_groups)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, len(BYTES) - 1), st.integers(1, 255))
def test_any_byte_that_is_changed_is_found_out(place, change):
    data = bytearray(BYTES)
    data[place] ^= change
    try:
        found = parse_proof(bytes(data))
    except (StoreDamagedError, FormatTooNewError):
        return
    assert found.content_hash != found.computed_hash() or found == PROOF, bytes(data[max(0, place - 20) : place + 20])


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [one for key, below in value.items() for one in leaves(below, (*path, key))]
    if isinstance(value, list) and value:
        return [one for place, below in enumerate(value) for one in leaves(below, (*path, place))]
    return [path]


def changed(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return True if value is None else not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value + 0.125 if value < 4 else value - 0.125
    return "0" + value[1:] if isinstance(value, str) and value[:1] not in {"0", ""} else "1" + value[1:]


# who made it and how the judge was set up are claims that no row can contradict; the hash of the content covers them
CLAIMS = {"created_at", "jumar", "judge", "rubric", "patterns", "content_hash", "seed"}


def test_every_figure_that_is_changed_is_found_out_even_with_a_hash_that_fits_again(monkeypatch):
    known: dict[Any, Any] = {}

    def once(rows, cheap, baselines, *, seed):  # most changes leave the rows as they are, from which the same follows
        key = (rows, tuple(cheap), baselines, seed)
        return (
            known.setdefault(key, None)
            or known.update({key: compare_with_judge(rows, cheap, baselines, seed=seed)})
            or known[key]
        )

    monkeypatch.setattr("jumar.learning.proof.make.compare_with_judge", once)
    document = json.loads(BYTES)
    paths = [path for path in leaves(document) if path[0] not in CLAIMS and path[0] not in {"rows", "opened"}]
    paths += [path for path in leaves(document) if path[0] in {"rows", "opened"} and path[1] == 1]
    found_out = refused = 0
    for path in paths:
        at = document
        for step in path[:-1]:
            at = at[step]
        before, at[path[-1]] = at[path[-1]], changed(at[path[-1]])
        try:
            made = parse_proof(json.dumps(document)).hashed()
            problems = verify_proof(made, items=ITEMS, patterns=PATTERNS, rubric=RUBRIC).problems
            assert problems, path
            found_out += 1
        except StoreDamagedError:
            refused += 1
        at[path[-1]] = before
    print(f"{len(paths)} fields changed one by one: {found_out} contradicted, {refused} refused")
    assert found_out > 80


def test_claims_are_covered_by_the_hash_of_the_content():
    found = verify_proof(tampered(lambda it: it["judge"].update(identity="another"), forged=False))
    assert any(one.startswith("content_hash: ") for one in found.problems)
    document = json.loads(BYTES)
    for path in leaves(document):
        if path[0] in CLAIMS - {"content_hash", "created_at"} and path != ("rubric", "kind"):
            value = PROOF.model_dump(mode="json")
            at = value
            for step in path[:-1]:
                at = at[step]
            at[path[-1]] = changed(at[path[-1]])
            found = parse_proof(json.dumps(value))
            assert found.content_hash != found.computed_hash(), path


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda it: it.update(verdict="fails"), "verdict: fails in the proof, tracks computed"),
        (lambda it: it["rows"][0].update(cheap=5.0), "statistics.figures.mae"),
        (lambda it: it["rows"].pop(), "items.sealed: 72 in the proof, 71 computed"),
        (lambda it: it["rows"].append(it["rows"][0]), "is there twice"),
        (lambda it: it["opened"][0].update(group=it["rows"][0]["group"]), "is held out and open"),
        (lambda it: it["looks"].update(number=4), "looks.extra: False in the proof, True computed"),
        (lambda it: it["baselines"].update(constant=1.0), "baselines.constant"),
        (lambda it: it["statistics"]["intervals"].update(mae=None), "statistics.intervals.mae"),
        (lambda it: it["statistics"].update(more=1), "statistics.more: 1 in the proof, nothing computed"),
        (lambda it: it.update(rows=[]), "there are none"),
    ],
)
def test_what_differs_is_named(change, names):
    problems = verify_proof(tampered(change)).problems
    assert any(names in one for one in problems), problems


def forged(rows: Any = None, opened: Any = None, **unscored: int) -> Proof:
    """A proof of some of the rows alone, with every figure and every hash computed anew: what a cheat would sign."""
    kept = {row.id for row in rows or PROOF.rows} | {row.id for row in opened or PROOF.opened}
    split = split_items(ITEMS, seed=PROOF.split.seed, heldout=PROOF.split.heldout)
    left = [one for one in TARGETS if one.item.id in kept]
    made = make_proof(
        sealed=[one for one in left if split.is_sealed(one.item)],
        opened=[one for one in left if not split.is_sealed(one.item)],
        split=split,
        patterns=PATTERNS,
        rubric=RUBRIC,
        judge=PROOF.judge,
        looks=look_at(1),
        created_at=MADE,
        seed=PROOF.seed,
        unscored=unscored.get("judge", 0),
        unscored_open=unscored.get("open", 0),
    )
    counts = {**made.items.unscored, **{name: count for name, count in unscored.items() if name == "cheap"}}
    return made.model_copy(update={"items": made.items.model_copy(update={"unscored": counts})}).hashed()


@pytest.mark.parametrize(
    ("made", "names"),
    [
        (lambda: forged(opened=PROOF.opened[:20]), "items.unscored.open: 0 in the proof, 88 computed"),
        (lambda: forged(opened=PROOF.opened[:20], open=88), "scored 20 of 108 open items; it may leave out 20%"),
        (lambda: forged(rows=PROOF.rows[:40]), "together: 0 in the proof, 32 computed"),
        (lambda: forged(rows=PROOF.rows[:40], judge=32), "scored 40 of 72 held-out items; it may leave out 20%"),
        (lambda: forged(rows=PROOF.rows[:40], cheap=32), "items.unscored.cheap: 32 in the proof, and 0 without a cheap score"),
    ],
)
def test_rows_that_a_cheat_leaves_out_are_missed(made, names):
    problems = verify_proof(made(), items=ITEMS, patterns=PATTERNS, rubric=RUBRIC).problems
    assert any(names in one for one in problems), problems


def test_what_the_judge_was_asked_follows_from_the_rubric():
    for change, names in ((("question_hash", "0" * 64), "judge.question_hash"), (("template", 9), "judge.template: 9")):
        problems = verify_proof(tampered(lambda it, one=change: it["judge"].update([one])), rubric=RUBRIC).problems
        assert any(names in one for one in problems), problems


def test_other_texts_patterns_and_rubrics_are_named():
    items = [replace(ITEMS[0], text="another"), *ITEMS[1:]]
    assert any("has another text" in one for one in verify_proof(PROOF, items=items).problems)
    assert any("is not among" in one for one in verify_proof(PROOF, items=ITEMS[:-20]).problems)
    assert any("split.hash" in one for one in verify_proof(PROOF, items=ITEMS[:-20]).problems)
    assert any("split.hash" in one for one in verify_proof(PROOF, items=ITEMS[:9]).problems)
    other = set_of({"velvet": 1.0}, 0.5)
    found = verify_proof(PROOF, items=ITEMS, patterns=other, rubric=builtin_rubric("story")).problems
    assert any("patterns.hash" in one for one in found)
    assert any("rubric.hash" in one for one in found)
    assert any("the cheap score of" in one for one in found)


def test_counting_firings_is_no_other_set_and_another_weight_is_one():
    counted = PATTERNS.model_copy(deep=True)
    counted.patterns[0].times_fired, counted.last_updated = 7, MADE
    assert patterns_digest(PATTERNS) == patterns_digest(counted)
    counted.patterns[0].weight = 1.5
    assert patterns_digest(PATTERNS) != patterns_digest(counted)


def test_items_of_the_wrong_part_prove_nothing():
    targets = planted_targets(30, 2, {"velvet": 1.0})
    split, sealed, opened = parts(targets)
    common: dict[str, Any] = {
        "split": split,
        "patterns": PATTERNS,
        "rubric": RUBRIC,
        "judge": PROOF.judge,
        "looks": look_at(1),
        "created_at": MADE,
    }
    with pytest.raises(ItemError, match="is not among the held-out items"):
        make_proof(sealed=opened, opened=sealed, **common)
    with pytest.raises(ItemError, match="is not among the open items"):
        make_proof(sealed=sealed, opened=[*opened, sealed[0]], **common)
    with pytest.raises(ItemError, match="0 open items"):
        make_proof(sealed=sealed, opened=[], **common)
    assert "not_proven" == make_proof(sealed=sealed, opened=opened, **common).verdict  # 12 groups are too few


@pytest.mark.parametrize(
    "data",
    ["", "[]", "{}", '{"format": 1}', BYTES.decode().replace('"seed"', '"sede"'), '{"format": 1, "format": 1}', "[" * 100_000],
)
def test_what_is_no_proof_is_said_to_be_none(data):
    with pytest.raises(StoreDamagedError, match=r"^out/proof\.json: not a proof: "):
        parse_proof(data, "out/proof.json")


def test_a_proof_that_is_not_there_or_newer_says_what_to_do(tmp_path):
    with pytest.raises(NotFoundError, match="jumar prove OUT"):
        read_proof(tmp_path / "proof.json")
    with pytest.raises(FormatTooNewError, match="update it"):
        parse_proof('{"format": 2}')


# ------------------------------------------------------------------------------------------------------------ staleness


def test_a_proof_is_fresh_until_it_is_old():
    assert [] == stale_reasons(PROOF, MADE + timedelta(days=90))
    assert ["it is 91 days old, and 90 are allowed"] == stale_reasons(PROOF, MADE + timedelta(days=91))
    assert [] == stale_reasons(PROOF, MADE + timedelta(days=91), max_age=timedelta(days=365))
    assert [] == stale_reasons(PROOF, MADE - timedelta(hours=20))
    assert ["which has not come yet"] == [one[-22:] for one in stale_reasons(PROOF, MADE - timedelta(days=2))]


def test_scores_that_are_spread_otherwise_make_it_stale_and_the_same_ones_do_not():
    cheap = [row.cheap for row in PROOF.rows]
    draw = random.Random(1)
    for _ in range(50):
        assert [] == stale_reasons(PROOF, MADE, draw.choices(cheap, k=200))
    moved = [min(5.0, one + 0.4) for one in draw.choices(cheap, k=200)]
    assert any("stability index" in one for one in stale_reasons(PROOF, MADE, moved))
    assert None is drift(cheap, moved[:29])
    assert (0.0, False) == drift([3.0] * 50, [3.0] * 50)
    assert (True,) == (drift([3.0] * 50, [2.0] * 50) or (0, False))[1:]


def test_chance_makes_a_proof_stale_by_drift_in_hardly_one_of_a_thousand_samples():
    draw = random.Random(2)
    found = [drift([draw.gauss(3, 1) for _ in range(60)], [draw.gauss(3, 1) for _ in range(60)]) for _ in range(1000)]
    assert sum(one is not None and one[1] for one in found) <= 8


def test_audits_make_it_stale_when_errors_grew_and_hardly_ever_when_they_did_not():
    draw = random.Random(3)
    errors = [abs(row.cheap - row.score) for row in PROOF.rows]
    stale = 0
    for _ in range(300):
        audits = [(3.0, 3.0 + one) for one in draw.choices(errors, k=300)]
        stale += audit_evidence(errors, audits) >= 100
    assert stale <= 9  # 1 in 100
    grown = [(3.0, 3.0 + 2 * one) for one in draw.choices(errors, k=60)]
    assert any("audited items" in one for one in stale_reasons(PROOF, MADE, audits=grown))
    assert 1.0 == audit_evidence(errors, [])
    assert audit_evidence([0.1], [(1.0, 5.0)] * 9) < 10  # of one item little can be known: each of ten is the smallest as easily
