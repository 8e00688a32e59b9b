"""The items of a learning run: read, split once and for all, and judged when somebody needs to know what the judge says."""

from __future__ import annotations

import asyncio
import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from jumar.core.files import as_write_error, make_directory, read_bytes, write_once
from jumar.core.text import escape, plural
from jumar.errors import ConfigError, EvaluationUnreliableError, ExistsError, ItemError
from jumar.judging.asking.call_log import CallLog
from jumar.judging.asking.evaluate import judge_items
from jumar.judging.asking.summary import JudgeInterruptedError, JudgeRejectedError
from jumar.judging.files import learned_from, proof_beside
from jumar.judging.items.item import Item
from jumar.judging.items.records import read_items
from jumar.judging.judges import make_judge
from jumar.judging.models import ExpensiveModeResult
from jumar.judging.patterns.models import PatternSet
from jumar.judging.patterns.storage import load_pattern_set
from jumar.judging.rubric import Rubric, kind_of_items, load_rubric, rubric_of
from jumar.judging.tracking import FEWEST_GROUPS, FEWEST_ITEMS
from jumar.learning.material import Material, Proposer, SetBuilder, Target, targets_of
from jumar.learning.plan import Plan, make_plan
from jumar.learning.proof.split import FEWEST_TO_SPLIT, Split, group_key, split_items, tie_copies
from jumar.learning.run.request import LOOP, RESULT, ROOT, SEALED_TESTS, LearnRequest
from jumar.learning.run.verdicts import FILE as VERDICTS
from jumar.learning.run.verdicts import Hear, JudgeAccess, Verdicts, warn_of_unscored
from jumar.learning.set_building import AdditiveBuilder, ScorecardBuilder
from jumar.learning.state import LEDGER, PATTERNS, PREDICTIONS, STATE
from jumar.loop.store.layout import loops_directory
from jumar.model.judgement import Judgement
from jumar.model.protocols import Judge

SPLIT: Final = "split.json"


def read_learning_items(request: LearnRequest) -> tuple[Item, ...]:
    """Return the items of the file, copies of one text in one group, which is warned of.

    Errors: :class:`jumar.errors.ItemError` that names file and line, also of an empty one.
    """
    kind = kind_of_items(load_rubric(request.rubric))
    items = tuple(read_items(request.items, request.fields, kind=kind))
    if not items:
        raise ItemError(f"{escape(str(request.items))}: there are no items in it; give one JSON object a line")
    tied = tie_copies(items)
    if tied.warning is not None:
        warnings.warn(tied.warning, stacklevel=2)
    return tied.items


def check_output(request: LearnRequest) -> None:
    """Refuse a folder that holds what learning would write over, and that no run of learning made.

    Errors: :class:`jumar.errors.ExistsError`.
    """
    output = request.output
    if (loops_directory(output / ROOT) / LOOP).exists():
        return
    own = None if request.patterns is None else request.patterns.absolute()
    names = [PATTERNS, VERDICTS, STATE, LEDGER, PREDICTIONS, RESULT, SEALED_TESTS, "proof.json", "looks.jsonl"]
    there = [name for name in names if (output / name).exists() and (output / name).absolute() != own]
    there += sorted(one.name for one in output.glob("iteration_*"))
    if there:
        raise ExistsError(
            f"{escape(str(output))} holds {escape(there[0])}, which no run of learning made and this one would write over; "
            "name another folder with -o"
        )


def start_set(request: LearnRequest, items: Sequence[Item]) -> PatternSet:
    """Return the set to begin with, which a run that finds no better one keeps and proves.

    Errors: of its file; :class:`jumar.errors.ConfigError` where a new run would keep what it must not: a set that was learned
    from some of these very items, or, where a robust one is asked for, one that was made without the guard.
    """
    if request.patterns is None:
        return PatternSet(version="2.0", patterns=[])
    found = load_pattern_set(request.patterns)
    if (loops_directory(request.output / ROOT) / LOOP).exists():
        return found
    name = f"--patterns {escape(str(request.patterns))}"
    if request.robust and not found.is_robust:
        raise ConfigError(
            f"{name} was learned without the guard, and --robust would keep it if nothing were better; leave one out"
        )
    proof = proof_beside(request.patterns, found)
    count = learned_from(items, proof)
    if count:
        raise ConfigError(
            f"{name} was learned from {count:,} of these {plural(len(items), 'item')}: what it says of them is no evidence, and "
            "would be taken for it; leave --patterns out, or give items that it was not learned from"
        )
    if proof is None and found.scorecard() is not None:
        warnings.warn(
            f"{name} is a learned set, and from which items is not known: its proof does not lie beside it. If it was learned "
            "from some of these, the verdict means nothing; leave it out, or name it where it was learned",
            stacklevel=2,
        )
    return found


def split_of(request: LearnRequest, items: Sequence[Item]) -> Split:
    """Return the run's split: that of ``split.json`` where it is there, else a new one, which is then written.

    Errors: :class:`jumar.errors.ItemError` for too few groups, or for other items than those that were split.
    """
    path = request.output / SPLIT
    if path.exists():
        split = Split.from_json(read_bytes(path), str(path))
        split.check(items)
        return split
    split = split_items(items, seed=request.seed, heldout=request.heldout)
    with as_write_error("write", path):
        make_directory(request.output)
        write_once(path, (json.dumps(split.to_json(), indent=1, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass"))
    return split


def plan_of(request: LearnRequest, items: Sequence[Item] | None = None) -> Plan:
    """Return what the items could prove. Nobody is asked: of a recorded judge the scores of the open items are read.

    Errors: :class:`jumar.errors.ItemError` of the items; of the judge's file.
    """
    items = read_learning_items(request) if items is None else items
    opened: Sequence[Item] = ()
    if request.judge.spec.startswith("replay:") and len({group_key(item) for item in items}) >= FEWEST_TO_SPLIT:
        opened = split_items(items, seed=request.seed, heldout=request.heldout).part(items, "open")
    return make_plan(items, heldout=request.heldout, seed=request.seed, judged=_recorded_targets(request, items, opened))


def _recorded_targets(request: LearnRequest, items: Sequence[Item], opened: Sequence[Item]) -> list[Target]:
    if not opened:
        return []
    judge = make_judge(request.judge.spec, max_tokens=request.judge.max_tokens)
    question = rubric_of(load_rubric(request.rubric), items)
    found = asyncio.run(judge_items(opened, judge, question, replace(request.judge.settings, max_unscored=1.0)))
    warn_of_unscored(found.unscored_kinds, "open", len(opened))
    return targets_of(opened, [one for one in found.results if isinstance(one, ExpensiveModeResult)])


def warn_of_few(split: Split, items: Sequence[Item]) -> None:
    """Warn of too few held-out items or groups, before anybody is paid: whatever is learned, nothing of it can be proven."""
    sealed = split.part(items, "sealed")
    groups = len({group_key(item) for item in sealed})
    if len(sealed) < FEWEST_ITEMS or groups < FEWEST_GROUPS:
        warnings.warn(
            f"{plural(len(sealed), 'item')} in {plural(groups, 'group')} are held out for the proof, and {FEWEST_ITEMS} in "
            f"{FEWEST_GROUPS} are the least: the verdict will be 'not proven' whatever is learned; give more items",
            stacklevel=2,
        )


def _warn_of_constant(targets: Sequence[Target]) -> None:
    if len({one.score for one in targets}) == 1:
        warnings.warn(
            f"the judge gave all {plural(len(targets), 'open item')} the score {targets[0].score:.2f}: nothing can be learned "
            "from that; mend its rubric, or give items that differ",
            stacklevel=2,
        )


@dataclass
class LearnData:
    """What a run learns from. The judge is asked on the first call of :meth:`material`, unless its verdicts are on file.

    ``stop`` says whether to ask no more; ``halt`` then ends the step that needed the answers. ``hear`` is told of each
    answer. ``problem`` is why nothing can be learned, None while that is not known.
    """

    request: LearnRequest
    items: tuple[Item, ...]
    split: Split
    judge: Judge
    made: datetime
    proposer: Proposer
    stop: Callable[[], bool]
    halt: Callable[[], None]
    hear: Hear | None = None
    calls: CallLog = field(default_factory=CallLog)
    problem: str | None = None
    _material: Material | None = None
    _untold: Judgement | None = None

    def __post_init__(self) -> None:
        request = self.request
        self.rubric = load_rubric(request.rubric)
        self.question = rubric_of(self.rubric, self.items)
        asking = JudgeAccess(
            judge=self.judge,
            question=self.question,
            settings=request.judge.settings,
            cache=request.judge.cache,
            prices=request.judge.prices,
            stop=self.stop,
            calls=self.calls,
        )
        self.verdicts = Verdicts(request.output / VERDICTS, asking)
        self.verdicts.count_before()

    def material(self) -> Material:
        """Return what is learned from; the first call asks the judge.

        Errors: those of the judge; :class:`jumar.errors.EvaluationUnreliableError` when too few items have a verdict. The loop
        is halted then: neither another try nor another iteration would change it.
        """
        if self._material is None:
            opened = self.split.part(self.items, "open")
            unscored = self._judged(opened)
            targets = tuple(self.verdicts.targets(opened))
            if len(targets) < (1 - self.request.judge.settings.max_unscored) * len(opened):
                stopped = "" if self.verdicts.stopped is None else f" ({self.verdicts.stopped})"
                raise self._given_up(
                    f"the judge scored {len(targets):,} of the {len(opened):,} open items{stopped}; too few to learn from. "
                    f"What was said is kept: {self._way_out(unscored)}"
                )
            warn_of_unscored(unscored, "open", len(opened))
            _warn_of_constant(targets)
            self._material = Material(
                targets=targets,
                split=self.split,
                builder=self._builder(),
                proposer=self.proposer,
                made=self.made,
                rubric=self.rubric if isinstance(self.rubric, Rubric) else None,
                profile=self.request.profile,
                seed=self.request.seed,
                min_iterations=self.request.min_iterations,
                robust=self.request.robust,
            )
            self._untold = _judgement(unscored, len(opened), self.verdicts.results(opened), self.judge.identity, self.calls)
        return self._material

    def _judged(self, opened: Sequence[Item]) -> Mapping[str, int]:
        try:
            return self.verdicts.ask(opened, max_cost=open_share(self.request, self.split, self.items), hear=self.hear)
        except JudgeInterruptedError as error:
            self.halt()
            judged = len(self.verdicts.results(opened))
            raise EvaluationUnreliableError(f"stopped when {judged:,} of {len(opened):,} open items were judged") from error
        except (EvaluationUnreliableError, JudgeRejectedError) as error:
            told = "a judge that was changed is another judge, and another folder is learned into with -o"
            raise self._given_up(f"{str(error).rstrip('.')}; {told}") from error

    def _given_up(self, problem: str) -> EvaluationUnreliableError:
        self.problem = problem
        self.halt()
        return EvaluationUnreliableError(problem)

    def judgement(self) -> Judgement | None:
        """Return once what the judge said of the open items, and was paid."""
        told, self._untold = self._untold, None
        return told

    def _way_out(self, unscored: Mapping[str, int]) -> str:
        most = self.request.judge.settings.max_cost
        if most is not None and self.verdicts.stopped is not None:
            return f"give more than --max-cost {most:g}, of which a part is kept for the held-out items, and run it again"
        if unscored.get("missing"):
            return "the recorded judge has no verdict of the others; add them to its file, and learn into another folder"
        return "the same command asks about the others"

    def _builder(self) -> SetBuilder:
        kind = "story" if all(item.story is not None for item in self.items) else "text"
        if self.request.profile == "seed":
            return AdditiveBuilder(rubric=self.rubric)
        return ScorecardBuilder(made=self.made, rubric=kind, seed=self.request.seed, robust=self.request.robust)


def open_share(request: LearnRequest, split: Split, items: Sequence[Item]) -> float | None:
    """Return what may be spent before the held-out items are judged, in USD, proposals included: their part is left for them."""
    most = request.judge.settings.max_cost
    return None if most is None else most * len(split.part(items, "open")) / len(items)


def _judgement(
    unscored: Mapping[str, int], items: int, results: Sequence[ExpensiveModeResult], judge: str, calls: CallLog
) -> Judgement:
    """Return what the judge said and was paid for it, in this process and in those that were killed before."""
    return Judgement(
        mode="expensive",
        items=items,
        scored=len(results),
        gestalt=math.fsum(result.gestalt for result in results) / len(results) if results else None,
        unscored=unscored,
        judge=judge,
        cost_usd=calls.total_usd,
        known_cost_usd=calls.known_usd,
        input_tokens=_total([result.input_tokens for result in results]),
        output_tokens=_total([result.output_tokens for result in results]),
        calls=calls.calls,
        cached=sum(result.cached for result in results),
    )


def _total(counts: Sequence[int | None]) -> int | None:
    return None if None in counts else sum(count or 0 for count in counts)
