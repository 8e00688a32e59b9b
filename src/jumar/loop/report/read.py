"""The read model: everything that the renderings show of one loop, computed from records and decisions.

:func:`load_report` reads them from a store, without a lock.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

from jumar.core.text import cut
from jumar.errors import NotFoundError, NothingEvaluatedError, ScoreError
from jumar.loop.ranking.choose import ordered
from jumar.loop.ranking.confirmed import Certainty, Finalist, certainty, seen
from jumar.loop.ranking.degradation import EXACT, NOTICEABLE, Chance, detect_degradation, detect_diminishing_returns
from jumar.loop.ranking.noise import Evidence, ranked
from jumar.loop.ranking.ratchet import select_kept
from jumar.loop.ranking.score import resolve_weights
from jumar.loop.report.spending import NOTHING_TAKEN, Took, spend_of_records, took_of
from jumar.loop.store.in_force import TrailEntry, config_now, criteria_of, evidence_of, trail_of
from jumar.model import (
    Decision,
    Degradation,
    DiminishingReturns,
    IterationRecord,
    IterationView,
    SelectionCriteria,
    SelectionResult,
    Spend,
    StopDecision,
)
from jumar.model.budget.ledger import count_failures
from jumar.model.budget.ledger import spend as spend_of_attempts
from jumar.model.budget.pricing import Budget
from jumar.model.decisions import Rechecked, end_after, last_end, recheck_seconds, rechecks
from jumar.model.ordering import valid_score
from jumar.model.records import Measured

if TYPE_CHECKING:
    from jumar.loop.store.loop_store import LoopStore

MOST_ARTIFACTS: Final = 100_000
"""How many artifacts of all iterations together a report keeps in memory, some 40 MB."""

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class LoopReport:
    """One loop as a report shows it; what follows from the records is worked out when it is first asked for.

    ``records`` and ``decisions`` are sorted by number, iteration 0 (the start state) included. ``selection`` is None when no
    iteration has a valid score. ``snapshots`` are the numbers whose artifacts are still stored, None when nobody looked;
    ``by_hash`` those of the start and of what was selected whose files lie among the objects of the root.
    ``evidence`` is what is known of the noise, None for nothing. ``budget`` are the limits in force, ``took`` where all attempts
    went. Errors: :class:`NotFoundError` when the selection or an override names an iteration that is not among the records.
    """

    loop_id: str
    records: tuple[IterationRecord, ...]
    selection: SelectionResult | None
    decisions: tuple[Decision, ...]
    criteria: SelectionCriteria
    spend: Spend
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    stop: StopDecision | None = None
    storage_path: str = ""
    snapshots: frozenset[int] | None = None
    created_at: str | None = None
    artifacts_complete: bool = True
    by_hash: frozenset[int] = frozenset()
    evidence: Evidence | None = None
    budget: Budget = field(default_factory=Budget)
    took: Took = NOTHING_TAKEN

    def __post_init__(self) -> None:
        for number in (self.chosen, self.selection and self.selection.selected_iteration):
            if number is not None and self.find(number) is None:
                text = f"the selection names iteration {number}, which is not among the records of loop '{self.loop_id}'"
                raise NotFoundError(text)

    @cached_property
    def override(self) -> Decision | None:
        """The last override, which stands until the next one."""
        return next((decision for decision in reversed(self.decisions) if decision.kind == "override"), None)

    @property
    def chosen(self) -> int | None:
        """The iteration that stands: the override's, else the selection's, else None."""
        if self.override is not None and self.override.best_iteration is not None:
            return self.override.best_iteration
        return None if self.selection is None else self.selection.stands

    @property
    def measured(self) -> Measured | None:
        """The metric of a loop that was imported on a scale of its own; None for every other."""
        return self.records[0].measured if self.records else None

    @property
    def objective(self) -> str:
        """What the loop is for, at most 600 characters: its objective, or what was imported."""
        if self.measured is not None:
            where = _section(self.config, "origin").get("path", "")
            return f"Imported from {where}: {self.measured.metric}, {self.measured.better}"
        return cut(str(setting(self.config, "loop", "objective") or "").strip(), 600)

    @cached_property
    def views(self) -> tuple[IterationView, ...]:
        """The views of the records."""
        return tuple(record.view() for record in self.records)

    @cached_property
    def weights(self) -> Mapping[str, float]:
        """The weight of every dimension that was scored."""
        return weights_of(self.config, self.records)

    @cached_property
    def leaders(self) -> tuple[int, ...]:
        """The iterations that were the running best, in order: seed 1's rule, only a higher score takes the lead."""
        leaders: list[int] = []
        best = float("-inf")
        for view in self.views:
            score = valid_score(view)
            if score is not None and score > best:
                leaders.append(view.number)
                best = score
        return tuple(leaders)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The valid iterations as the rules rank them, by all readings of each; the choice comes first whoever made it."""
        if self.selection is None:
            return ()
        chosen, evidence = self.selection.selected_iteration, self.evidence
        views = ordered(self.views, self.criteria) if evidence is None else ()
        numbers = [view.number for view in views] if evidence is None else ranked(evidence, self.criteria)
        return tuple(sorted(numbers, key=lambda number: number != chosen))

    @cached_property
    def certainty(self) -> Certainty | None:
        """How sure the choice is, as far as anything is known of it."""
        if self.evidence is None or self.selection is None:
            return None
        return certainty(self.evidence, self.criteria, self.selection)

    @cached_property
    def _rescored(self) -> tuple[tuple[IterationView, ...], Chance]:
        return (self.views, EXACT) if self.evidence is None else seen(self.evidence, self.criteria)

    @property
    def seen(self) -> tuple[IterationView, ...]:
        """The views with the scores by all readings of each."""
        return self._rescored[0]

    @property
    def chance(self) -> Chance:
        """How uncertain the scores of :attr:`seen` are."""
        return self._rescored[1]

    @cached_property
    def degradation(self) -> Degradation:
        """Where quality fell on the way."""
        return detect_degradation(self.seen, chance=self.chance)

    @cached_property
    def diminishing(self) -> DiminishingReturns:
        """From where on going on stopped paying."""
        return detect_diminishing_returns(self.views)

    @property
    def kept(self) -> bool:
        """Whether what stands is an iteration that is as good as the start, which the rules selected."""
        return self.override is None and self.selection is not None and self.selection.kept is not None

    @property
    def chosen_quality(self) -> float | None:
        """The score of the iteration that stands: by all readings of it, where the choice was made by these."""
        if self.selection is not None and self.selection.stands == self.chosen:
            return self.selection.quality_score
        return None if self.chosen is None else self.score_of(self.chosen)

    def score_of(self, number: int) -> float | None:
        """The score of one iteration by which it is compared: the mean of all readings where it has later ones."""
        finalist = self._read_again(number)
        return self.record(number).quality_score if finalist is None else finalist.mean

    def readings_of(self, number: int) -> int:
        """How many readings :attr:`score_of` is the mean of; 1 where it is the score as recorded."""
        finalist = self._read_again(number)
        return 1 if finalist is None else 1 + len(finalist.later)

    def _read_again(self, number: int) -> Finalist | None:
        found = self.certainty
        if found is None or not found.rescored:
            return None
        return next((one for one in found.finalists if one.iteration == number and one.mean is not None), None)

    def is_noise(self, number: int) -> bool:
        """Whether the difference between iteration ``number`` and the rules' choice is within the noise.

        They tie, or differ by at most two standard errors of their difference. False where nothing is known of noise.
        """
        found, selection = self.certainty, self.selection
        if found is None or selection is None or number == selection.selected_iteration:
            return False
        if number in found.tied:
            return len(found.tied) > 1
        width, score = self.chance.width(selection.selected_iteration, number), self.score_of(number)
        return score is not None and width > 0 and abs(selection.quality_score - score) <= width

    @property
    def degraded(self) -> bool:
        """Whether the last iteration is worse than the rules' choice, and nothing excuses that."""
        selection = self.selection
        return selection is not None and selection.degradation_detected and not self.excuse

    @property
    def excuse(self) -> str:
        """Why a last iteration with a lower score than the rules' choice is not called worse; empty where it is."""
        selection = self.selection
        if selection is None or selection.final_quality is None:
            return ""
        selected, final = self.record(selection.selected_iteration), self.record(selection.final_iteration)
        if self.is_noise(selection.final_iteration):
            return "within the noise"
        if selected.batch is not None and selected.batch == final.batch:
            return "made at the same time"
        if self.measured is not None:  # how much matters on a scale of its own nobody said
            return ""
        return "too little to matter" if selection.quality_score - selection.final_quality < NOTICEABLE else ""

    @property
    def final_quality(self) -> float | None:
        """The score of the last iteration, by all readings of it as :attr:`chosen_quality`."""
        if self.selection is not None and self.selection.final_quality is not None:
            return self.selection.final_quality
        return None if self.final is None else self.score_of(self.final.iteration_number)

    @property
    def within_noise(self) -> bool:
        """Whether noise had a say in the choice: finalists were scored again, or somebody tied."""
        found = self.certainty
        return found is not None and (found.rescored or len(found.tied) > 1)

    @property
    def recheck(self) -> Rechecked | None:
        """What came of running the checks of the iteration that stands once more; None where nobody tried."""
        return None if self.chosen is None else rechecks(self.decisions).get(self.chosen)

    @property
    def passes(self) -> int:
        """How many iterations there are, the start state not counted."""
        return sum(record.iteration_number > 0 for record in self.records)

    @property
    def trail(self) -> tuple[TrailEntry, ...]:
        """What was decided and how it ended, as :func:`full_trail` has it."""
        return full_trail(self.decisions)

    @property
    def start(self) -> IterationRecord | None:
        """Iteration 0, when the start state was recorded."""
        return self.records[0] if self.records and self.records[0].iteration_number == 0 else None

    @property
    def final(self) -> IterationRecord | None:
        """The last iteration by number."""
        return self.records[-1] if self.records else None

    @property
    def chosen_record(self) -> IterationRecord | None:
        """The record of the iteration that stands."""
        return None if self.chosen is None else self.record(self.chosen)

    def record(self, number: int) -> IterationRecord:
        """Return the record of iteration ``number``. Errors: :class:`NotFoundError`."""
        found = self.find(number)
        if found is None:
            raise NotFoundError(f"loop '{self.loop_id}' has no iteration {number}")
        return found

    def find(self, number: int | None) -> IterationRecord | None:
        """Return the record of iteration ``number``, None when there is none."""
        at = 0 if number is None else bisect_left(self.records, number, key=lambda record: record.iteration_number)
        return self.records[at] if at < len(self.records) and self.records[at].iteration_number == number else None

    def compared_with(self, record: IterationRecord) -> IterationRecord | None:
        """Return the iteration that ``record`` started from, None when it is not there.

        In the records of a program of a person's own nobody knows that, and it is the one before.
        """
        if record.parent is not None:
            return self.find(record.parent)
        at = bisect_left(self.records, record.iteration_number, key=lambda other: other.iteration_number)
        return self.records[at - 1] if at else None

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The dimensions that anybody scored, in the order in which they first appear."""
        return tuple(dict.fromkeys(name for record in self.records for name in record.dimensions))


def full_trail(decisions: Sequence[Decision]) -> tuple[TrailEntry, ...]:
    """Return what was decided and how it ended, oldest first: the beginning and the end of an apply are one entry."""
    ends = (TrailEntry(decision=decision) for decision in decisions if decision.kind == "end")
    return tuple(sorted([*trail_of(decisions), *ends], key=lambda entry: entry.decision.number))


def load_report(
    store: LoopStore,
    *,
    selection: SelectionResult | None = None,
    criteria: SelectionCriteria | None = None,
    stop: StopDecision | None = None,
    all_artifacts: bool = False,
) -> LoopReport:
    """Read a loop and build its report; takes no lock and writes nothing.

    ``selection`` None: computed now, by ``criteria``; those None: as the loop's configuration has them now. ``stop`` None: as
    the loop's end was written down, if nothing was recorded since. Lists of artifacts are kept up to a bound, because a long
    loop over a large tree has millions of them; beyond it only the start and the selected iteration have theirs,
    unless ``all_artifacts`` is set. Errors: :class:`jumar.errors.StoreDamagedError`.
    """
    config = config_now(store)
    rules = criteria_of(config) if criteria is None else criteria
    decisions, evidence = store.decisions(), evidence_of(store)
    if selection is None:
        with contextlib.suppress(NothingEvaluatedError):
            selection = select_kept(evidence, rules)
    chosen = {decision.best_iteration for decision in decisions if decision.kind == "override"}
    chosen |= {0, selection and selection.stands}  # the start too: what was selected is held against it
    refused = {recheck.iteration for recheck in rechecks(decisions).values() if recheck.refused}  # by a strict one
    records: list[IterationRecord] = []
    listed, complete = 0, True
    for number in store.iteration_numbers():
        always = all_artifacts or number in chosen
        record = store.record(number, listed=always or listed < MOST_ARTIFACTS)
        listed += len(record.artifacts_detail)
        keep = always or listed <= MOST_ARTIFACTS
        complete = complete and keep
        kept = record if keep else replace(record, artifacts=(), artifacts_detail=())
        records.append(replace(kept, verification_status="failed") if number in refused else kept)
    attempts, budget = store.attempts(), budget_in_force(config, decisions)
    spent = spend_of_attempts(attempts, budget)
    numbers = [record.iteration_number for record in records]
    end = end_after(decisions, numbers[-1] if numbers else None)
    return LoopReport(
        loop_id=store.loop_id,
        records=tuple(records),
        selection=selection,
        decisions=decisions,
        criteria=rules,
        spend=replace(spent, seconds=spent.seconds + recheck_seconds(decisions)) if attempts else spend_of_records(records),
        config=config,
        stop=(end and end.stop) if stop is None else stop,
        storage_path=str(config.get("storage_path") or store.paths.directory),
        snapshots=frozenset(number for number in numbers if store.has_snapshot(number)),
        created_at=store.created_at,
        artifacts_complete=complete,
        by_hash=frozenset(number for number in numbers if number in chosen and store.manifest(number).by_hash),
        evidence=evidence if evidence.noisy else None,
        budget=budget,
        took=took_of(attempts, {record.attempt for record in records}, count_failures(attempts, records), budget),
    )


def budget_in_force(config: Mapping[str, Any], decisions: Sequence[Decision]) -> Budget:
    """Return the limits of the last run that ended, else those that the loop was recorded with: they may change on a resume."""
    end = last_end(decisions)
    run: Mapping[str, Any] = config.get("run") or {}
    return Budget.from_recorded((end and end.data.get("budget")) or run.get("budget") or {})


def is_run(config: Mapping[str, Any]) -> bool:
    """Return whether this is the configuration of a run, not of a tracker in somebody else's loop."""
    return "run" in config


def setting(config: Mapping[str, Any], table: str, key: str) -> Any:
    """Return what holds for one key of a run's configuration: what it says, else the default that it began with, else None."""
    said = _section(_section(config, "run"), table)
    return said.get(key, _section(config, "defaults").get(f"{table}.{key}"))


def weights_of(config: Mapping[str, Any], records: Iterable[IterationRecord]) -> Mapping[str, float]:
    """Return the weight of every dimension: a tracker's own table; for a run, the engine's rule for those that were scored."""
    given = {
        name: value
        for name, value in _section(config, "quality_weights").items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    if given and "run" not in config:
        return given
    scored = dict.fromkeys(name for record in records for name in record.dimensions)
    try:
        return resolve_weights(scored, given or None) if scored else given
    except ScoreError:  # a weight for a dimension that no iteration has yet
        return given


def _section(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section: object = config.get(name)
    return cast("Mapping[str, Any]", section) if isinstance(section, Mapping) else _NOTHING
