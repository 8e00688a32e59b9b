"""The use case of ``jumar run``: put the loop together, run it, tell ``[loop] on_stop`` how it ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from jumar.app.config.tables import load_notifier, load_prices
from jumar.app.run.preflight import earlier_passes
from jumar.app.run.prepare import in_force, limits_of_run, prepare, prompt_of
from jumar.app.run.request import RunRequest
from jumar.core.text import plural
from jumar.errors import JumarError, LockedError
from jumar.loop.engine.engine import Loop
from jumar.loop.engine.outcome import LoopOutcome
from jumar.loop.events.events import Listener
from jumar.loop.hooks import notify
from jumar.loop.store.layout import loops_directory
from jumar.loop.store.loop_reader import LoopReader
from jumar.model.attempts import Spend
from jumar.model.budget.estimate import Estimate, Expected, PassUse, estimate, passes_of
from jumar.model.budget.ledger import spend
from jumar.model.budget.pricing import Budget, PriceTable
from jumar.model.records import Usage
from jumar.model.selection import REQUESTED_REASONS
from jumar.processes.control import StopSwitch


def run(
    request: RunRequest,
    *,
    switch: StopSwitch | None = None,
    listener: Listener | None = None,
    attended: Callable[[Loop], LoopOutcome] = Loop.run,
    shown: Callable[[LoopOutcome], None] | None = None,
    warn: Callable[[str], None] | None = None,
) -> LoopOutcome:
    """Run or resume the loop that ``request`` asks for, and return how it ended.

    ``switch`` stops it from elsewhere, ``listener`` hears its events. ``attended`` runs the loop that was put together, with what
    a caller does around it; ``shown`` gets the outcome before ``on_stop`` and ``[notify]`` do, and ``warn`` is told why these
    failed. Errors: those of :func:`jumar.app.run.prepare.prepare` before anything is run.
    """
    notifier = load_notifier(request.config.notify)
    loop = prepare(request, switch=switch or StopSwitch(), listener=listener)

    def ended(outcome: LoopOutcome | BaseException) -> None:
        failure = _tell_of_end(request, loop, outcome)
        if failure is not None and warn is not None:
            warn(f"{failure}; its output is in {loop.store.paths.directory / 'logs' / 'on_stop.log'}")
        unsent = None if notifier is None else notifier.tell(loop.store, outcome)
        if unsent is not None and warn is not None:
            warn(unsent)

    try:
        outcome = attended(loop)
    except BaseException as error:
        ended(error)
        raise
    if shown is not None:
        shown(outcome)
    ended(outcome)
    return outcome


def _tell_of_end(request: RunRequest, loop: Loop, outcome: LoopOutcome | BaseException) -> str | None:
    """Run ``on_stop``, if there is one, and return why it failed, None when it did not.

    The locks are released: the command may read the loop, or start the next one. What is for a person to decide is refused to it,
    because the generator may have edited what it calls. It is not run where nothing was: by a run that found its loop finished,
    or in another's hands.
    """
    hook = request.config.loop.hook("on_stop")
    nothing_ran = isinstance(outcome, LockedError) or (isinstance(outcome, LoopOutcome) and outcome.already_finished)
    if hook is None or nothing_ran:
        return None
    document = outcome.to_json() if isinstance(outcome, LoopOutcome) else _error_document(loop, outcome)
    store, allowed = loop.store, request.config.loop.env
    return notify(hook, document, loop=store.paths.directory, cwd=request.base, allowed=allowed, nonce=store.nonce)


def _error_document(loop: Loop, error: BaseException) -> dict[str, Any]:
    """Return what stands for the final document where an error ended the run: what ``--json`` prints, and which loop it was."""
    known = isinstance(error, JumarError)
    kind, code = type(error).__name__, error.exit_code if isinstance(error, JumarError) else 1
    message = str(error) if known else f"{kind}: {error}"
    return {
        "loop_id": loop.store.loop_id,
        "stop_reason": "error",
        "stop_detail": message,
        "error": {"kind": kind, "message": message, "exit_code": code},
        "directory": str(loop.store.paths.directory),
        "exit_code": code,
    }


SET_ASIDE: Final = "what [budget] sets aside for an iteration"

_CHARACTERS_A_TOKEN: Final = 4
_GOES_ON: Final = REQUESTED_REASONS | {
    *("max_iterations", "max_cost", "max_tokens", "max_seconds", "max_attempts"),
    *("unknown_cost", "disk_full", "blocked"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEstimate:
    """What ``--estimate`` says. ``made`` counts the iterations so far; ``estimate`` is None when no limit says anything.

    ``ended`` says why the loop has come to its end, None while it is not begun, under way, or would be resumed.
    """

    loop_id: str
    exists: bool
    made: int
    spend: Spend
    budget: Budget
    estimate: Estimate | None
    ended: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "loop_id": self.loop_id,
            "exists": self.exists,
            "passes_made": self.made,
            "spend": self.spend.to_json(),
            "budget": self.budget.to_json(),
            "ended": self.ended,
            "estimate": None if self.estimate is None else self.estimate.to_json(),
        }


def estimate_run(request: RunRequest) -> RunEstimate:
    """Return the estimate for the loop that ``request`` would start or resume.

    An iteration takes what those of this loop took, else those of the newest earlier loop below the same root with the same
    generator, else what is set aside for one, else at least what its prompt costs. Errors: :class:`jumar.errors.ConfigError`.
    """
    request, choice = in_force(request)
    loop_id = choice.loop_id
    config = limits_of_run(request, loop_id).config
    budget, prices = config.budget.limits(), load_prices(config.budget, request.base)
    directory = loops_directory(request.root) / loop_id
    exists = (directory / "loop.json").is_file()
    store = LoopReader(directory) if exists else None
    attempts = () if store is None else store.attempts()
    numbers = () if store is None else store.iteration_numbers()
    made = sum(number > 0 for number in numbers)
    used = passes_of(attempts)
    source = f"{plural(len(used), 'iteration')} of this loop"
    if not used:
        used, other = earlier_passes(request.config, request.root, besides=loop_id)
        source = f"{plural(len(used), 'iteration')} of loop '{other}', which has the same generator" if used else ""
    total = spend(attempts, budget)
    found = estimate(
        budget=budget,
        spend=total,
        passes=used,
        source=source,
        expected=_expected(request, budget, prices),
        pass_limit=max(0, config.max_iterations - made),
    )
    ended = None if store is None else _ended(store, none_left=found is not None and found.passes.high == 0)
    return RunEstimate(loop_id=loop_id, exists=exists, made=made, spend=total, budget=budget, ended=ended, estimate=found)


def _ended(store: LoopReader, *, none_left: bool) -> str | None:
    """Return why the loop ended after its last iteration; None when it would go on, because its limits allow more by now."""
    end = store.end()
    if end is None or (end.data.get("stop_reason") in _GOES_ON and not none_left):
        return None
    return end.reason


def _expected(request: RunRequest, budget: Budget, prices: PriceTable) -> Expected | None:
    """Return what an iteration may take where none was made: what is set aside for it, else at least its prompt."""
    if budget.reserve_cost_usd is not None or budget.reserve_tokens is not None:
        use = PassUse(cost_usd=budget.reserve_cost_usd, tokens=budget.reserve_tokens)
        return Expected(use=use, source=SET_ASIDE)
    model = request.config.budget.model
    row = None if model is None else prices.find(model)
    if row is None:
        return None
    tokens = -(-len(prompt_of(request)) // _CHARACTERS_A_TOKEN)
    cost = row[1].prices.cost(Usage(input_tokens=tokens, output_tokens=0))
    source = f"at least its prompt: about {plural(tokens, 'token')} to '{row[0]}'"
    return Expected(use=PassUse(cost_usd=cost, tokens=tokens), source=source, at_least=True)
