"""The items of a learning run: read, split once and for all, and judged when somebody needs to know what the judge says."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from jumar.app.items import read_items
from jumar.app.learning_model import LearnRequest
from jumar.app.learning_verdicts import FILE as VERDICTS
from jumar.app.learning_verdicts import Asking, Paid, Verdicts
from jumar.app.rubrics import load_rubric
from jumar.errors import EvaluationUnreliableError, ItemError
from jumar.files import as_write_error, make_directory, write_once
from jumar.judging.expensive.given import rubric_of
from jumar.judging.items import Item
from jumar.judging.rubric import Rubric
from jumar.learning.makers import AdditiveMaker, Maker, ScorecardMaker
from jumar.learning.material import Material, Proposer
from jumar.learning.split import Split, split_items
from jumar.learning.targets import Target
from jumar.model.judgement import Judgement
from jumar.model.judges import Judge
from jumar.text import escape

__all__ = ["SPLIT", "LearnData", "read_learning_items", "split_of"]

SPLIT: Final = "split.json"


def read_learning_items(request: LearnRequest) -> tuple[Item, ...]:
    """Return the items of the file. Errors: :class:`jumar.errors.ItemError` that names file and line, also of an empty one."""
    rubric = load_rubric(request.rubric)
    kind = "story" if rubric is not None and rubric.kind == "story" else None
    items = tuple(read_items(request.items, request.fields, kind=kind))
    if not items:
        raise ItemError(f"{escape(str(request.items))}: there are no items in it; give one JSON object a line")
    return items


def split_of(request: LearnRequest, items: Sequence[Item]) -> Split:
    """Return the run's split: that of ``split.json`` where it is there, else a new one, which is then written.

    Errors: :class:`jumar.errors.ItemError` for too few groups, or for other items than those that were split.
    """
    path = request.output / SPLIT
    if path.exists():
        split = Split.from_json(path.read_bytes(), str(path))
        split.check(items)
        return split
    split = split_items(items, seed=request.seed, heldout=request.heldout)
    with as_write_error("write", path):
        make_directory(request.output)
        write_once(path, (json.dumps(split.to_json(), indent=1, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass"))
    return split


@dataclass
class LearnData:
    """What a run learns from. The judge is asked on the first call of :meth:`material`, unless its verdicts are on file."""

    request: LearnRequest
    items: tuple[Item, ...]
    split: Split
    judge: Judge
    made: datetime
    proposer: Proposer
    stop: Callable[[], bool]
    _material: Material | None = None
    _untold: Judgement | None = None

    def __post_init__(self) -> None:
        request = self.request
        self.rubric = load_rubric(request.rubric)
        self.question = rubric_of(self.rubric, self.items)
        self.asking = Asking(
            judge=self.judge,
            question=self.question,
            settings=request.settings,
            cache=request.cache,
            prices=request.prices,
            stop=self.stop,
        )
        self.verdicts = Verdicts(request.output / VERDICTS, self.asking)
        self.paid: list[Paid] = []

    def material(self) -> tuple[Material, Judgement | None]:
        """Return what is learned from, and once what the judge was paid for it.

        Errors: those of the judge; :class:`jumar.errors.EvaluationUnreliableError` when too few items have a verdict.
        """
        if self._material is None:
            opened = self.split.part(self.items, "open")
            paid = self.ask(opened, self._share(len(opened)))
            targets = tuple(self.verdicts.targets(opened))
            if len(targets) < (1 - self.request.settings.max_unscored) * len(opened):
                raise EvaluationUnreliableError(
                    f"the judge scored {len(targets):,} of the {len(opened):,} open items"
                    f"{'' if paid.stopped is None else f' ({paid.stopped})'}; that is too few to learn from"
                )
            self._material = Material(
                targets=targets,
                split=self.split,
                maker=self._maker(),
                proposer=self.proposer,
                made=self.made,
                rubric=self.rubric if isinstance(self.rubric, Rubric) else None,
                profile=self.request.profile,
                seed=self.request.seed,
            )
            self._untold = _judgement(paid, len(opened), targets, self.judge.identity)
        told, self._untold = self._untold, None
        return self._material, told

    def ask(self, items: Sequence[Item], max_cost: float | None = None) -> Paid:
        """Ask the judge about items that have no verdict; what it cost is remembered."""
        paid = self.verdicts.ask(items, max_cost=max_cost)
        self.paid.append(paid)
        return paid

    def _share(self, opened: int) -> float | None:
        """Return the part of the budget for the open items: the sealed ones have to be judged from the same."""
        most = self.request.settings.max_cost
        return None if most is None else most * opened / len(self.items)

    def _maker(self) -> Maker:
        kind = "story" if all(item.story is not None for item in self.items) else "text"
        if self.request.profile == "seed":
            return AdditiveMaker(rubric=self.rubric)
        return ScorecardMaker(made=self.made, rubric=kind, seed=self.request.seed)


def _judgement(paid: Paid, items: int, targets: Sequence[Target], judge: str) -> Judgement:
    scores = [one.score for one in targets]
    return Judgement(
        mode="expensive",
        items=items,
        scored=len(scores),
        gestalt=math.fsum(scores) / len(scores) if scores else None,
        unscored=paid.unscored,
        judge=judge,
        cost_usd=paid.cost_usd,
        known_cost_usd=paid.known_cost_usd,
        input_tokens=paid.input_tokens,
        output_tokens=paid.output_tokens,
        calls=paid.calls,
        cached=paid.cached,
    )
