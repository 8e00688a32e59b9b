"""What holds for a loop now: its configuration, which iteration stands and how it came to that, and the totals so far.

The one way from a loop on disk to a choice is :func:`evidence_of`: its records, its later readings, the rules that hold now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from jumar.errors import NothingEvaluatedError
from jumar.loop.ranking.choose import leader, running_best
from jumar.loop.ranking.noise import Evidence
from jumar.loop.ranking.ratchet import select_kept
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.store.loop_reader import LoopReader
from jumar.model import Decision, IterationView, SelectionResult
from jumar.model.attempts import Purpose, Spend
from jumar.model.budget.ledger import RunningReservation, RunningSpend, larger
from jumar.model.budget.pricing import Budget, Reservation
from jumar.model.decisions import recheck_seconds, rechecks
from jumar.model.selection import DEFAULT_CRITERIA, MODES, NoiseRules, SelectionCriteria

MADE_UP = "made_up"
"""The key of ``loop.json`` that tells the loop of a command line, whose name nobody chose, from one that is called so."""

_NOTHING = ArtifactRules(include=("*",), exclude=("*",))


def config_now(store: LoopReader) -> Mapping[str, Any]:
    """Return the configuration that holds for a loop: the recorded one, or the last change that a person accepted."""
    accepted = [decision.data["config"] for decision in store.decisions() if decision.kind == "accept"]
    return cast("Mapping[str, Any]", accepted[-1]) if accepted else store.config


def is_made_up(store: LoopReader) -> bool:
    """Return whether the loop's name was made up for a command line: no configuration file speaks for it."""
    return store.config.get(MADE_UP) is True


def works_in_place(store: LoopReader) -> bool:
    """Return whether the iterations of a loop are made in the person's own working directory, one after the other."""
    config = config_now(store)
    run = cast("Mapping[str, Mapping[str, Any]]", config.get("run") or {})
    return config.get("isolation") in {"none", "sandbox"} and run.get("loop", {}).get("candidates", 1) == 1


def imported_commit(store: LoopReader, iteration: int) -> str | None:
    """Return the commit that an iteration of an imported branch is; None of any other loop, and while it is being imported."""
    origin = cast("Mapping[str, Any]", store.config.get("origin") or {})
    if origin.get("kind") != "git" or store.workdir is None or store.workdir.is_dir():
        return None
    made = store.record(iteration, listed=False).commits[-1:] if iteration else (str(origin.get("base")),)
    return made[0][:12] if made else None


def artifact_rules(store: LoopReader) -> ArtifactRules:
    """Return what an apply may replace and remove in the working directory.

    For a run these are its ``[artifacts]``. A tracker's iterations name the files that they recorded and nothing else; what they
    don't name is not theirs, so nothing is removed: the rules then match nothing, and only the snapshot's own files are written.
    """
    section = config_now(store).get("artifacts")
    if not isinstance(section, Mapping):
        return _NOTHING
    given = cast("Mapping[str, Any]", section)
    defaults = ArtifactRules()
    return ArtifactRules(
        include=tuple(given.get("include", ())),
        exclude=tuple(given.get("exclude", ())),
        max_files=given.get("max_files", defaults.max_files),
        max_file_bytes=given.get("max_file_bytes", defaults.max_file_bytes),
        max_total_bytes=given.get("max_total_bytes", defaults.max_total_bytes),
    )


def criteria_of(config: Mapping[str, Any]) -> SelectionCriteria:
    """Return the selection rules of a recorded configuration.

    What it does not say is the default's; in a run's configuration (it has ``run``), no threshold means no gate. Unusable
    values count as absent: the configuration was checked when it was recorded.
    """
    found: object = config.get("selection")
    section: Mapping[str, Any] = cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}
    mode = section.get("mode")
    threshold = section.get("threshold", None if "run" in config else DEFAULT_CRITERIA.threshold)
    required = section.get("require_verification", DEFAULT_CRITERIA.require_verification)
    return SelectionCriteria(
        mode=mode if mode in MODES else DEFAULT_CRITERIA.mode,
        threshold=threshold if isinstance(threshold, int | float) and not isinstance(threshold, bool) else None,
        require_verification=required if isinstance(required, bool) else DEFAULT_CRITERIA.require_verification,
    )


def evidence_of(store: LoopReader) -> Evidence:
    """Return what a choice is made from. Takes no lock. Errors: :class:`jumar.errors.StoreDamagedError`.

    What a strict recheck refused has not passed its checks.
    """
    config = config_now(store)
    begun = {key.removeprefix("noise."): value for key, value in _section(config, "defaults").items()}
    noise = {**begun, **_section(_section(config, "run"), "noise")}
    weights = {name: value for name, value in _section(config, "quality_weights").items() if isinstance(value, int | float)}
    views, refused = store.views(), [one.iteration for one in rechecks(store.decisions()).values() if one.refused]
    if refused:
        views = tuple(replace(view, verification="failed") if view.number in refused else view for view in views)
    return Evidence(views=views, readings=store.readings(), weights=weights, rules=NoiseRules.recorded(noise))


def select_from(store: LoopReader, criteria: SelectionCriteria) -> SelectionResult:
    """Return what ``criteria`` choose now. Errors: as of :func:`jumar.loop.ranking.ratchet.select_kept`."""
    return select_kept(evidence_of(store), criteria)


def _section(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section: object = config.get(name)
    return cast("Mapping[str, Any]", section) if isinstance(section, Mapping) else {}


_TRAIL = frozenset({"select", "override", "held", "apply", "undo", "cleanup", "accept", "limits", "redact", "repair"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """``iteration`` is what ``jumar apply`` applies; ``decision`` is what made it stand.

    ``decision`` is None when nobody decided yet; then ``iteration`` is what the criteria would choose, and None without
    criteria or without a valid score.
    """

    iteration: int | None
    decision: Decision | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailEntry:
    """One decision for people: ``done``, ``unfinished`` (cut off before its end), or ``undone`` (an apply taken back)."""

    decision: Decision
    state: Literal["done", "unfinished", "undone"] = "done"


def standing(store: LoopReader, criteria: SelectionCriteria | None = None) -> Standing:
    """Return the iteration that stands: the last override, else the last selection, else what ``criteria`` choose now.

    A later selection does not displace an override: the person's word holds until another override. A selection made before the
    last iteration was recorded is out of date where ``criteria`` can make a new one. Nothing is written.
    """
    decision = decided(store.decisions())
    if decision is not None and not (criteria is not None and _out_of_date(decision, store)):
        return Standing(iteration=decision.best_iteration, decision=decision)
    if criteria is not None:
        try:
            return Standing(iteration=select_from(store, criteria).stands, decision=None)
        except NothingEvaluatedError:
            pass
    return Standing(iteration=None, decision=None)


def current(store: LoopReader) -> Decision | None:
    """Return the decision that stands; None when there is none, or a selection that was made before the last iteration."""
    decision = decided(store.decisions())
    return None if decision is None or _out_of_date(decision, store) else decision


def _out_of_date(decision: Decision, store: LoopReader) -> bool:
    numbers = store.iteration_numbers()
    return decision.kind == "select" and bool(numbers) and decision.final_iteration != numbers[-1]


def decided(decisions: Iterable[Decision]) -> Decision | None:
    """Return the decision that stands among ``decisions``, which are in order; None when there is none."""
    selection: Decision | None = None
    override: Decision | None = None
    for decision in decisions:
        if decision.kind == "override":
            override = decision
        elif decision.kind == "select":
            selection = decision
    return override or selection


def held(decisions: Sequence[Decision]) -> Decision | None:
    """Return the last override that waits for a person's word; a later override is one. None when none waits."""
    last = next((decision for decision in reversed(decisions) if decision.kind in {"held", "override"}), None)
    return last if last is not None and last.kind == "held" else None


def trail(store: LoopReader) -> tuple[TrailEntry, ...]:
    """Return everything that was decided, oldest first; beginnings and ends are one entry."""
    return trail_of(store.decisions())


def trail_of(decisions: Sequence[Decision]) -> tuple[TrailEntry, ...]:
    """Return the trail of ``decisions``, which are in order; see :func:`trail`."""
    ended = {decision.data.get("apply") for decision in decisions if decision.kind == "apply-end"}
    undone = {decision.data.get("apply") for decision in decisions if decision.kind == "undo-end"}
    entries: list[TrailEntry] = []
    for decision in decisions:
        if decision.kind not in _TRAIL:
            continue
        state: Literal["done", "unfinished", "undone"] = "done"
        if decision.kind == "apply" and decision.number in undone:
            state = "undone"
        elif decision.kind == "apply":
            state = "done" if decision.number in ended else "unfinished"
        elif decision.kind == "undo":  # a later try ends the earlier ones too
            state = "done" if decision.data.get("apply") in undone else "unfinished"
        entries.append(TrailEntry(decision=decision, state=state))
    return tuple(entries)


def last_applied(store: LoopReader) -> Decision | None:
    """Return the last apply that has its end and was not taken back; None when there is none."""
    applies = (entry.decision for entry in reversed(trail(store)) if entry.decision.kind == "apply" and entry.state == "done")
    return next(applies, None)


def unfinished(store: LoopReader) -> Decision | None:
    """Return the apply or undo that was cut off, or None. There is never more than one."""
    return next((entry.decision for entry in reversed(trail(store)) if entry.state == "unfinished"), None)


class RunningTotals:
    """The best so far, the spend and the reservations of one store; equal to what the pure functions say of all records."""

    def __init__(self, store: LoopReader, budget: Budget, criteria: SelectionCriteria | None = None) -> None:
        self._store = store
        self._budget = budget
        self._criteria = criteria
        self._spend = RunningSpend(budget)
        self._reservations = RunningReservation()
        self._seen: set[int] = set()
        self._began: dict[int, float] = {}
        self._best: IterationView | None = None

    def best(self) -> IterationView | None:
        """Return :func:`jumar.loop.ranking.choose.leader` of all iterations; without criteria the one with the highest score.

        Records never change: each is looked at once.
        """
        views = self._store.views()
        missing = len(views) - len(self._seen)
        if missing:
            # parallel candidates are recorded as they end, so a new one may stand before others
            new = views[-missing:]
            if any(view.number in self._seen for view in new):
                new = tuple(view for view in views if view.number not in self._seen)
            views = new if self._best is None else (self._best, *new)
            self._best = running_best(views) if self._criteria is None else leader(views, self._criteria)
            self._seen.update(view.number for view in new)
        return self._best

    def spend(self) -> Spend:
        """Return :func:`jumar.model.budget.ledger.spend` of all attempts, with the time that rechecks took."""
        found, beside = self._spend.of(self._store.attempts()), recheck_seconds(self._store.decisions())
        return replace(found, seconds=found.seconds + beside) if beside else found

    def reservation(self, purpose: Purpose) -> Reservation:
        """Return :func:`jumar.model.budget.ledger.reservation` of all attempts."""
        return self._reservations.of(self._store.attempts(), self._budget, purpose)

    def needed(self, purpose: Purpose) -> Reservation:
        """Return what another step of ``purpose`` may take: what is reserved for it, or more where one has taken more."""
        return larger(self.reservation(purpose), self.seen(purpose))

    def seen(self, purpose: Purpose) -> Reservation:
        """Return the most that a step of ``purpose`` took; where none confirmed yet, that scoring did."""
        return self._reservations.of(self._store.attempts(), Budget(), purpose)

    def note_begin(self, attempt: int, monotonic: float) -> None:
        """Remember by the clock that never goes back when an attempt of this run began."""
        self._began[attempt] = monotonic

    def began(self, attempt: int) -> float | None:
        """Return when an attempt of this run began, by the monotonic clock; None for one of an earlier run."""
        return self._began.get(attempt)
