"""The beginning and the end of everything that is paid for: allowed and reserved before, accounted for after, and told."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, Literal

from jumar.errors import JumarError
from jumar.loop.engine.run_context import LoopRun
from jumar.loop.events.events import AttemptEnded, AttemptStarted, Waiting
from jumar.loop.generators.failures import next_wait
from jumar.loop.scorers import JudgeScorer
from jumar.loop.workspace.disk_space import disk_is_full, with_room
from jumar.model import StopDecision, Usage
from jumar.model.attempts import Attempt, AttemptEnd, Purpose
from jumar.model.budget.gate import Gate, Stop
from jumar.model.budget.gate import may_begin as _gate
from jumar.model.budget.ledger import larger
from jumar.model.budget.pricing import Reservation
from jumar.model.records import ReadingKind

_LOOK: Final = 0.5  # seconds between two looks at whether somebody wants the loop to end
_HOUR: Final = 3600.0


def may_begin(run: LoopRun, *, running: int = 0) -> Gate:
    """Return whether another run of the generator may begin while ``running`` others are under way."""
    budget, tally = run.settings.budget, run.tally
    generate, score = tally.needed("generate"), tally.needed("score")
    ages: Sequence[float] = ()
    if budget.max_calls_per_hour is not None:
        ages = _call_ages(run)
    return _gate(
        spend=tally.spend(),
        budget=budget,
        generate=generate,
        score=score,
        in_flight=[_still_to_come(tally.reservation("generate"), generate, score)] * running,
        running=running,
        call_ages=ages,
    )


def refused_evaluation(run: LoopRun, takes: Reservation | None = None) -> str | None:
    """Return why the limits have no room for another evaluation, None where they have; those of iterations and calls don't count.

    ``takes`` is what it may take, by default what scoring did. The first evaluation of what was paid for is not to be asked
    about: it is never refused.
    """
    spend, limit = run.tally.spend(), run.settings.stop.max_seconds
    if limit is not None and spend.seconds >= limit:
        return f"{spend.seconds:.1f} s of {limit:g} s are used up ([stop] max_seconds)"
    answer = _gate(
        spend=spend,
        budget=replace(run.settings.budget, max_iterations=None, max_calls_per_hour=None),
        generate=Reservation(cost_usd=0.0, tokens=0),
        score=takes or run.tally.needed("score"),
    )
    return answer.decision.detail if isinstance(answer, Stop) else None


def refused_reading(run: LoopRun, kind: ReadingKind) -> str | None:
    """Return why the limits have no room for another reading of an iteration; None where they have.

    It may take more than scoring did: it asks anew what replies are kept for, and the hold-out has judges of its own.
    """
    tally, holdout = run.tally, run.parts.holdout if kind == "holdout" else ()
    if any(isinstance(scorer, JudgeScorer) and scorer.shared.evaluator.asks for scorer in holdout):
        return refused_evaluation(run, tally.needed("confirm"))
    return refused_evaluation(run, larger(tally.needed("score"), tally.seen("confirm")))


def _call_ages(run: LoopRun) -> list[float]:
    ages: list[float] = []
    for attempt in reversed(run.store.attempts()):
        if attempt.start.purpose == "generate":
            ages.append(_age(run, attempt))
            if ages[-1] > _HOUR and len(ages) > (run.settings.budget.max_calls_per_hour or 0):
                break
    return ages


def _still_to_come(reserved: Reservation, generate: Reservation, score: Reservation) -> Reservation:
    """Return what an iteration under way may take beyond what its start set aside: a dearer run than that, and its scoring."""
    cost = max(0.0, (generate.cost_usd or 0.0) - (reserved.cost_usd or 0.0)) + (score.cost_usd or 0.0)
    tokens = max(0, (generate.tokens or 0) - (reserved.tokens or 0)) + (score.tokens or 0)
    return Reservation(cost_usd=cost, tokens=tokens)


def _age(run: LoopRun, attempt: Attempt) -> float:
    """Return how long ago an attempt began: in this run by the clock that never goes back, else by its time stamp.

    A wall clock that was set back makes an earlier run's attempt no younger than now.
    """
    began = run.tally.began(attempt.start.number)
    if began is not None:
        return run.clock.monotonic() - began
    return max(0.0, seconds_since(run, attempt.start.started_at))


def seconds_since(run: LoopRun, at: str) -> float:
    """Return the seconds since the time stamp ``at``; negative when the clock was set back since."""
    return (datetime.fromisoformat(run.clock.now()) - datetime.fromisoformat(at)).total_seconds()


def turned_away(run: LoopRun, number: int) -> tuple[int, float]:
    """Return how often in a row the provider refused iteration ``number``, and how many seconds are left to wait.

    Both follow from the attempts on disk, so that a resume waits no longer and no shorter. A wall clock that was set back does
    not make the wait longer than it was told. Refusals before the loop ended for them are forgiven: somebody ran it again.
    """
    refused = _refusals(run, number)
    if not refused:
        return 0, 0.0
    last = refused[0]
    wait = next_wait(last.wait_seconds, len(refused))
    return len(refused), min(wait, max(0.0, wait - seconds_since(run, last.ended_at)))


def _refusals(run: LoopRun, number: int) -> list[AttemptEnd]:
    """Return the refusals in a row of iteration ``number``, the last one first.

    A run that was killed says nothing about the provider: it neither counts nor ends the row.
    """
    found: list[AttemptEnd] = []
    forgiven = _attempts_before_the_last_end(run)
    for start, end in run.ended_attempts(number):
        if start.number <= forgiven:
            break
        if start.purpose != "generate" or end.outcome in {"lost", "interrupted"}:
            continue
        if end.outcome != "rate_limited":
            break
        found.append(end)
    return found


def _attempts_before_the_last_end(run: LoopRun) -> int:
    end = run.store.last_end()
    number = 0 if end is None else end.data.get("attempts", 0)
    return number if isinstance(number, int) else 0


def refused_text(refused: int) -> str:
    """Return ``refused once``, ``refused twice in a row``, ``refused 3 times in a row``."""
    return "refused once" if refused == 1 else f"refused {'twice' if refused == 2 else f'{refused} times'} in a row"


def refused_too_often(run: LoopRun, number: int) -> StopDecision | None:
    """Return why the loop gives up on a provider that keeps refusing; None while it may wait on."""
    most = run.settings.retries.rate_limited
    refused = len(_refusals(run, number))
    if refused <= most:
        return None
    detail = (
        f"the provider refused iteration {number}{refused_text(refused).removeprefix('refused')} ([retry] rate_limited = {most})"
    )
    return StopDecision(reason="rate_limited", detail=f"{detail}; run the same command again to resume")


def wait_for(
    run: LoopRun,
    why: Literal["rate_limited", "calls_per_hour", "budget"],
    seconds: float,
    *,
    iteration: int | None = None,
    detail: str = "",
) -> None:
    """Wait ``seconds``, or until somebody asks the loop to end."""
    if seconds <= 0:
        return
    run.tell(Waiting(why=why, seconds=seconds, iteration=iteration, detail=detail))
    until = run.clock.monotonic() + seconds
    while not run.switch.requested and (left := until - run.clock.monotonic()) > 0:
        run.sleep(min(left, _LOOK))


def begin(
    run: LoopRun,
    iteration: int,
    parent: int | None,
    nonce: str,
    purpose: Purpose,
    *,
    batch: int | None = None,
    candidate: int | None = None,
) -> Attempt:
    """Write the start of a paid step, with what is set aside for it: durable when this returns."""
    set_aside = run.tally.reservation(purpose)
    attempt = run.store.begin_attempt(
        iteration,
        parent,
        nonce,
        run.clock.now(),
        purpose=purpose,
        batch=batch,
        candidate=candidate,
        reserve_cost_usd=set_aside.cost_usd,
        reserve_tokens=set_aside.tokens,
    )
    run.tally.note_begin(attempt.start.number, run.clock.monotonic())
    started = AttemptStarted(
        attempt=attempt.start.number,
        iteration=iteration,
        candidate=candidate,
        purpose=purpose,
        reserve_cost_usd=set_aside.cost_usd,
        reserve_tokens=set_aside.tokens,
    )
    run.tell(started)
    return attempt


def finish(run: LoopRun, attempt: Attempt, end: AttemptEnd) -> None:
    """Write the end of a paid step: durable when this returns."""
    start = attempt.start
    with_room(run.space, lambda: run.store.end_attempt(start.number, end))  # paid for: what was kept back is for this
    with contextlib.suppress(OSError):
        run.store.paths.heartbeat(start.number).unlink(missing_ok=True)
    ended = AttemptEnded(
        attempt=start.number,
        iteration=start.iteration,
        outcome=end.outcome,
        candidate=start.candidate,
        purpose=start.purpose,
        seconds=end.seconds,
        usage=end.usage,
        failure=end.failure,
        detail=end.detail,
        exit_code=end.exit_code,
    )
    run.tell(ended)


@contextlib.contextmanager
def ended_if_full(run: LoopRun, attempt: Attempt, end: Callable[[], AttemptEnd | None] = lambda: None) -> Generator[None]:
    """When a full disk ends the body in our own hands, write the end of the attempt: it was not lost, and no process died.

    ``end`` is how it ended, if that is known by then; else it was cut off before anything was paid.
    """
    began = run.clock.monotonic()
    try:
        yield
    except (JumarError, OSError) as error:
        if disk_is_full(error):
            nothing = AttemptEnd(
                outcome="interrupted",
                seconds=run.clock.monotonic() - began,
                ended_at=run.clock.now(),
                detail=f"cut off: {error}",
                usage=Usage(tokens_used=0, token_cost_usd=0.0),
            )
            with contextlib.suppress(JumarError):
                finish(run, attempt, end() or nothing)
        raise
