"""Making a proof, and verifying one offline. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, cast

from jumar.core import __version__
from jumar.core.text import escape, plural
from jumar.errors import ItemError
from jumar.judging.asking.prompt import TEMPLATE_VERSION
from jumar.judging.asking.settings import MAX_UNSCORED
from jumar.judging.cheap.evaluator import CheapModeEvaluator
from jumar.judging.items.item import Item, digest_of, item_digest, patterns_digest
from jumar.judging.models import Unscored
from jumar.judging.patterns.models import PatternSet
from jumar.judging.proofs import (
    PLANNED_LOOKS,
    OpenRow,
    Proof,
    ProofItems,
    ProofJudge,
    ProofLooks,
    ProofPatterns,
    ProofRow,
    ProofRubric,
    ProofSplit,
)
from jumar.judging.rubric import StoryRubric, TextRubric
from jumar.learning.material import Target
from jumar.learning.proof.evidence import compare_with_judge, fit_baselines
from jumar.learning.proof.split import Split, group_key, split_items, tie_copies

FALSE_TRACKS: Final = 0.025
"""Chance of a look that a figure which is zero has an interval above zero."""

_CLOSE: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Verification:
    """What became of checking a proof: what was ``checked``, in words, and the ``problems``; empty when it holds.

    ``not_checked`` is what could not be looked at, since what it needs was not given; ``differing`` those of ``checked`` in which
    there are problems.
    """

    checked: tuple[str, ...]
    problems: tuple[str, ...]
    not_checked: tuple[str, ...] = ()
    differing: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        return not self.problems

    def to_json(self) -> dict[str, Any]:
        names = ("checked", "differing", "not_checked", "problems")
        return {"holds": self.holds, **{name: list(getattr(self, name)) for name in names}}


def look_at(number: int) -> ProofLooks:
    """Return what a proof says about look ``number``, from 1."""
    chance = min(1.0, round(FALSE_TRACKS * number, 6))
    return ProofLooks(number=number, planned=PLANNED_LOOKS, extra=number > PLANNED_LOOKS, false_tracks=chance)


def make_proof(
    *,
    sealed: Sequence[Target],
    opened: Sequence[Target],
    split: Split,
    patterns: PatternSet,
    rubric: StoryRubric | TextRubric,
    judge: ProofJudge,
    looks: ProofLooks,
    created_at: datetime,
    seed: int = 0,
    unscored: int = 0,
    unscored_open: int = 0,
) -> Proof:
    """Return the proof of a set on the held-out items.

    ``sealed`` and ``opened`` are what the judge scored of the two parts; ``unscored`` counts the held-out items that it left out,
    ``unscored_open`` the open ones.
    Errors: :class:`jumar.errors.ItemError` for a target of the wrong part, and when there is nothing to prove anything with.
    """
    _check_parts(sealed, opened, split)
    evaluator = CheapModeEvaluator(patterns, rubric=rubric)
    scored = [(target, evaluator.read(target.item)) for target in sealed]
    rows = tuple(ProofRow(**_row(one), cheap=reading.gestalt) for one, reading in scored if not isinstance(reading, Unscored))
    if not rows:
        raise ItemError("no held-out item was scored by both judges; there is nothing to prove anything with")
    known = tuple(OpenRow(**_row(target)) for target in opened)
    baselines = fit_baselines(known)
    found = compare_with_judge(rows, [row.cheap for row in rows], baselines, seed=seed)
    counts = split.counts()
    return Proof(
        created_at=created_at,
        jumar=__version__,
        verdict=found.verdict,
        items=ProofItems(
            sealed=len(rows),
            sealed_hash=_rows_hash(rows),
            opened=len(known),
            opened_hash=_rows_hash(known),
            unscored={"judge": unscored, "cheap": len(scored) - len(rows), "open": unscored_open},
        ),
        split=ProofSplit(
            seed=split.seed,
            heldout=split.heldout,
            hash=digest_of(split.to_json()),
            sealed_groups=counts["sealed"],
            open_groups=counts["open"],
        ),
        judge=judge,
        rubric=ProofRubric(name=rubric.name, kind=rubric.kind, hash=rubric.digest),
        patterns=ProofPatterns(hash=patterns_digest(patterns), patterns=len(patterns.patterns), active=_active(patterns)),
        robust=patterns.said_robust,
        seed=seed,
        baselines=baselines.to_json(),
        statistics=found.to_json(),
        looks=looks,
        rows=rows,
        opened=known,
    ).hashed()


def _active(patterns: PatternSet) -> int:
    return sum(pattern.status == "active" for pattern in patterns.patterns)


def _check_parts(sealed: Sequence[Target], opened: Sequence[Target], split: Split) -> None:
    for targets, wanted in ((sealed, True), (opened, False)):
        for target in targets:
            if group_key(target.item) not in split.groups or split.is_sealed(target.item) is not wanted:
                part = "held-out" if wanted else "open"
                raise ItemError(
                    f"{escape(target.item.id)} is not among the {part} items of the split; a proof would prove nothing"
                )
    if not sealed or not opened:
        raise ItemError(
            f"{plural(len(sealed), 'held-out item')} and {plural(len(opened), 'open item')} were scored; both are needed"
        )


def _row(one: Target) -> dict[str, Any]:
    item = one.item
    return {"id": item.id, "group": item.group, "hash": item_digest(item), "readings": one.readings, "length": one.length}


def _rows_hash(rows: Iterable[OpenRow]) -> str:
    return digest_of(sorted([row.id, row.hash] for row in rows))


# --------------------------------------------------------------------------------------------------------- verification


def verify_proof(
    proof: Proof,
    *,
    items: Sequence[Item] | None = None,
    patterns: PatternSet | None = None,
    rubric: StoryRubric | TextRubric | None = None,
) -> Verification:
    """Compute every figure of a proof again from its rows, without a judge.

    With all the ``items`` that were split, their texts and the split are compared too; with ``patterns`` (and the ``rubric`` of
    the cheap judge) the set; with both, every cheap score is computed again. What the expensive judge said can only be
    compared with the judge itself. Figures agree when they differ by a rounding at most.
    """
    items = None if items is None else tie_copies(items).items
    steps: list[tuple[str, list[str] | None]] = [
        ("the hash of the content", _differs("content_hash", proof.content_hash, proof.computed_hash())),
        ("counts and hashes of the rows", _counts(proof)),
        ("every figure, from the rows", _figures(proof)),
        ("the texts and the split of the items", None if items is None else _items(proof, items)),
        ("the set of patterns", None if patterns is None else _patterns(proof, patterns)),
        ("the rubric, and what it asks of the judge", None if rubric is None else _rubric(proof, rubric)),
    ]
    every = None if items is None or patterns is None or rubric is None else _cheap(proof, items, patterns, rubric)
    steps.append(("every cheap score, from the texts", every))
    return Verification(
        checked=tuple(name for name, found in steps if found is not None),
        problems=tuple(problem for _, found in steps for problem in found or ()),
        not_checked=tuple(name for name, found in steps if found is None),
        differing=tuple(name for name, found in steps if found),
    )


def _counts(proof: Proof) -> list[str]:
    problems: list[str] = []
    counts = (("sealed", proof.rows, proof.items.sealed, proof.items.sealed_hash),)
    counts += (("opened", proof.opened, proof.items.opened, proof.items.opened_hash),)
    for name, rows, number, known in counts:
        problems += _differs(f"items.{name}", number, len(rows))
        problems += _differs(f"items.{name}_hash", known, _rows_hash(rows))
    ids = [row.id for row in (*proof.rows, *proof.opened)]
    if len(set(ids)) < len(ids):
        problems.append(f"rows: the item {escape(next(one for one in ids if ids.count(one) > 1))} is there twice")
    shared = {row.group for row in proof.rows} & {row.group for row in proof.opened} - {None}
    if shared:
        problems.append(
            f"rows: the group {escape(str(min(map(str, shared))))} is held out and open; what was learned is in the proof"
        )
    looks = look_at(proof.looks.number)
    problems += _differs("looks", proof.looks.model_dump(), looks.model_dump())
    problems += _left_out("held-out", proof.items.unscored["judge"], len(proof.rows) + proof.items.unscored["cheap"])
    problems += _left_out("open", proof.items.unscored["open"], len(proof.opened))
    groups = len({group_key(Item(row.id, "", group=row.group)) for row in proof.rows})
    if groups > proof.split.sealed_groups:
        problems.append(f"split.sealed_groups: {proof.split.sealed_groups} here, {groups} in the rows")
    return problems


def _left_out(part: str, unscored: int, scored: int) -> list[str]:
    if unscored <= MAX_UNSCORED * (unscored + scored):
        return []
    every = unscored + scored
    return [f"items.unscored: the judge scored {scored} of {every} {part} items; it may leave out {MAX_UNSCORED:.0%}"]


def _figures(proof: Proof) -> list[str]:
    if not proof.rows or not proof.opened:
        return ["rows: there are none; nothing can be computed"]
    baselines = fit_baselines(proof.opened)
    found = compare_with_judge(proof.rows, [row.cheap for row in proof.rows], baselines, seed=proof.seed)
    return [
        *_differs("baselines", proof.baselines, baselines.to_json()),
        *_differs("statistics", proof.statistics, found.to_json()),
        *_differs("verdict", proof.verdict, found.verdict),
    ]


def _items(proof: Proof, items: Sequence[Item]) -> list[str]:
    problems: list[str] = []
    known = {item.id: item for item in items}
    split = _split_again(proof, items)
    if split is None or digest_of(split.to_json()) != proof.split.hash:
        problems.append("split.hash: these items are split otherwise; they are not those that the proof was made of, or not all")
    else:
        counts, unscored = split.counts(), proof.items.unscored
        problems += _differs("split.sealed_groups", proof.split.sealed_groups, counts["sealed"])
        problems += _differs("split.open_groups", proof.split.open_groups, counts["open"])
        left = len(split.part(items, "sealed")) - len(proof.rows)
        problems += _differs("items.unscored.judge and .cheap together", unscored["judge"] + unscored["cheap"], left)
        left = len(split.part(items, "open")) - len(proof.opened)
        problems += _differs("items.unscored.open", unscored["open"], left)
    for name, rows in (("rows", proof.rows), ("opened", proof.opened)):
        for row in rows:
            item = known.get(row.id)
            if item is None:
                problems.append(f"{name}: the item {escape(row.id)} is not among these items")
            elif item_digest(item) != row.hash:
                problems.append(f"{name}: the item {escape(row.id)} has another text, or another group")
            elif (item.group, len(item.text)) != (row.group, row.length):
                problems.append(f"{name}: the group or the length of {escape(row.id)} is another one")
    return problems


def _split_again(proof: Proof, items: Sequence[Item]) -> Split | None:
    try:
        return split_items(items, seed=proof.split.seed, heldout=proof.split.heldout)
    except ItemError:
        return None


def _rubric(proof: Proof, rubric: StoryRubric | TextRubric) -> list[str]:
    problems = _differs("rubric.hash", proof.rubric.hash, rubric.digest)
    problems += _differs("judge.question_hash", proof.judge.question_hash, digest_of(rubric.judge.model_dump(mode="json")))
    if not 1 <= proof.judge.template <= TEMPLATE_VERSION:
        problems.append(f"judge.template: {proof.judge.template} in the proof; there is none above {TEMPLATE_VERSION}")
    return problems


def _patterns(proof: Proof, patterns: PatternSet) -> list[str]:
    return [
        *_differs("robust", proof.robust, patterns.said_robust),
        *_differs("patterns.hash", proof.patterns.hash, patterns_digest(patterns)),
        *_differs("patterns.patterns", proof.patterns.patterns, len(patterns.patterns)),
        *_differs("patterns.active", proof.patterns.active, _active(patterns)),
    ]


def _cheap(proof: Proof, items: Sequence[Item], patterns: PatternSet, rubric: StoryRubric | TextRubric) -> list[str]:
    evaluator = CheapModeEvaluator(patterns, rubric=rubric)
    known = {item.id: item for item in items}
    problems: list[str] = []
    for row in proof.rows:
        reading = evaluator.read(known[row.id]) if row.id in known else None
        if reading is not None:
            score = None if isinstance(reading, Unscored) else reading.gestalt
            problems += _differs(f"rows: the cheap score of {escape(row.id)}", row.cheap, score)
    proven, split = {row.id for row in proof.rows}, _split_again(proof, items)
    left = [] if split is None else [item for item in split.part(items, "sealed") if item.id not in proven]
    mute = sum(isinstance(evaluator.read(item), Unscored) for item in left)
    if proof.items.unscored["cheap"] > mute:
        problems.append(f"items.unscored.cheap: {proof.items.unscored['cheap']} in the proof, and {mute} without a cheap score")
    return problems


def _differs(name: str, here: Any, computed: Any) -> list[str]:
    """Return in words what of ``here``, plain JSON, is not what was computed."""
    one, other = _entries(here), _entries(computed)
    if one is not None and other is not None:
        names = dict.fromkeys([*one, *other])
        return [found for key in names for found in _differs(f"{name}.{key}", one.get(key, "nothing"), other.get(key, "nothing"))]
    if _same(here, computed):
        return []
    return [f"{name}: {escape(str(here))[:80]} in the proof, {escape(str(computed))[:80]} computed"]


def _entries(value: Any) -> dict[Any, Any] | None:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[Any, Any]", value))
    return dict(enumerate(cast("Sequence[Any]", value))) if isinstance(value, list | tuple) else None


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool) or not (isinstance(one, float | int) and isinstance(other, float | int)):
        return type(one) is type(other) and one == other
    return math.isclose(one, other, rel_tol=_CLOSE, abs_tol=_CLOSE)
