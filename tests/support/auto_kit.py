"""A folder as a learning run leaves it, and new items: what mode auto is tried on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from commands import call
from learning_kit import planted_targets, set_of

from jumar.judging.asking.settings import JudgeConfig, JudgeSettings
from jumar.judging.auto.intervals import fit_intervals
from jumar.judging.cheap.evaluator import CheapModeEvaluator
from jumar.judging.models import CheapModeResult
from jumar.judging.patterns import PatternSet
from jumar.judging.patterns.models import Curve, Scorecard
from jumar.judging.patterns.storage import serialised
from jumar.learning.material import Target
from jumar.learning.proof.split import split_items
from jumar.learning.run.request import ProveRequest, remember

EFFECTS = {"velvet": 1.2, "rust": -1.2}


def write_items(path: Path, targets: Sequence[Target], *, shift: float = 0.0) -> None:
    rows = [
        {
            "id": one.item.id,
            "group": one.item.group,
            "text": one.item.text,
            "judge_scores": [min(5.0, max(1.0, reading + shift)) for reading in one.readings],
        }
        for one in targets
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def renamed(targets: Sequence[Target]) -> list[Target]:
    """Items of other groups, so that nothing of them was learned or held out."""
    return [
        Target(replace(one.item, id=f"new-{one.item.id}", group=f"new-{one.item.group}"), one.score, one.readings)
        for one in targets
    ]


def calibrated(opened: Sequence[Target] = ()) -> PatternSet:
    """A set that scores as the items were planted, with the intervals of open items where there are any."""
    patterns = set_of(EFFECTS, 2.0)
    card = Scorecard(rubric="text", base=3.35, unit=EFFECTS["velvet"] / 2.0, curve=Curve(x=(1.0, 5.0), y=(1.0, 5.0)))
    if opened:
        plain = patterns.model_copy(update={"calibration": card.model_dump(mode="json")})
        read = CheapModeEvaluator(plain, rubric="text").evaluate(one.item for one in opened)
        cheap = [one.gestalt for one in read if isinstance(one, CheapModeResult)]
        found = fit_intervals(cheap, [one.score for one in opened], [one.item.group for one in opened])
        card = card.model_copy(update={"interval": found.model_dump(mode="json")})
    return patterns.model_copy(update={"calibration": card.model_dump(mode="json")})


def proven_folder(folder: Path) -> Path:
    """A folder as `jumar learn` leaves it: a set, its proof, and new items with what the judge says of them."""
    targets = planted_targets(60, 3, EFFECTS)
    items = folder / "items.jsonl"
    write_items(items, targets)
    split = split_items([one.item for one in targets])
    (folder / "split.json").write_text(json.dumps(split.to_json()))
    opened = [one for one in targets if not split.is_sealed(one.item)]
    (folder / "patterns.json").write_bytes(serialised(calibrated(opened), folder / "patterns.json"))
    remember(
        ProveRequest(output=folder, items=items, judge=JudgeConfig(spec=f"replay:{items}", settings=JudgeSettings(repeat=1)))
    )
    found = call("prove", str(folder), "--json", check=0).document
    assert found["verdict"] == "tracks"
    new = renamed(planted_targets(60, 3, EFFECTS, seed=5))
    write_items(folder / "new.jsonl", new)
    write_items(folder / "shifted.jsonl", new, shift=-1.5)
    return folder
