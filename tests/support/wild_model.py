"""What must hold of a loop under real conditions, said a second time and plainly: from the promises, not from the engine.

The model walks through what is on disk, attempt by attempt, knows from the scenario what really happened, and says of each step
whether it was allowed to begin, what it counts as, and what the loop may conclude at its end.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from wild_world import START, Deed, Scenario

from jumar.model import Attempt, IterationRecord

NEAR = 1e-6
FAILED = {"fail": "failed", "crash": "failed", "hang": "timeout", "limited": "rate_limited", "blocked": "blocked"}
FAILURES = {"failed": "generator_failed", "timeout": "generator_timeout", "rate_limited": "rate_limited", "blocked": "blocked"}


def said(value: Any, *, whole: bool) -> float | None:
    """Return a number of dollars or tokens that somebody may be believed, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not 0 <= value <= 10**15:
        return None
    return value if not whole or value == int(value) else None


@dataclass
class Sum:
    """One measure of the ledger: what is known, what is assumed in place of it, and how often nobody said."""

    cap: float | None
    configured: float | None
    charge_silent: bool
    known: float = 0.0
    assumed: float = 0.0
    silent: int = 0
    uncharged: int = 0
    largest: dict[str, float] = field(default_factory=dict[str, float])
    steps: dict[int, float] = field(default_factory=lambda: defaultdict[int, float](float))

    def reserve(self, purpose: str) -> float | None:
        """Return what a step that does not say is charged: a run what is configured, a score what scores cost."""
        seen = self.largest.get(purpose)
        first, second = (self.configured, seen) if purpose == "generate" else (seen, self.configured)
        return second if first is None else first

    def pay(self, attempt: Attempt, reserved: float | None, value: float | None, part: float = 0.0) -> None:
        """Count one attempt that ended, of which ``value`` is known, or of an unknown one a ``part``."""
        purpose, lost = attempt.start.purpose, attempt.end is not None and attempt.end.outcome == "lost"
        limited = attempt.end is not None and attempt.end.outcome == "rate_limited"
        before = self.charged
        if value is not None:
            self.known += value
            if value or not limited:
                self.largest[purpose] = max(value, self.largest.get(purpose, 0))
        else:
            self.silent += not lost
            charged = reserved if lost or self.charge_silent else None
            self.uncharged += charged is None
            self.known += part
            self.assumed += max(0, (charged or 0) - part)
        self.steps[attempt.start.iteration] += self.charged - before

    @property
    def charged(self) -> float:
        return self.known + self.assumed

    @property
    def total(self) -> float | None:
        """What the loop says that it cost: unknown as soon as one attempt is."""
        return None if self.silent else self.charged

    def full(self) -> bool:
        """Whether another iteration cannot begin: the cap is reached, or what is set aside for it does not fit."""
        if self.cap is None:
            return False
        reserved = [max(self.reserve(purpose) or 0, self.largest.get(purpose, 0)) for purpose in ("generate", "score")]
        needed = sum(reserved)
        return self.charged >= self.cap - NEAR or self.charged + needed > self.cap + NEAR


@dataclass
class Model:
    """The loop as it should be, built up from its attempts in order."""

    scenario: Scenario
    records: dict[int, IterationRecord]
    cost: Sum = field(init=False)
    tokens: Sum = field(init=False)
    seconds: float = 0.0
    last_seconds: float = 0.0
    begun: int = 0
    failures: Counter[str] = field(default_factory=Counter[str])
    runs: Counter[tuple[str, int]] = field(default_factory=Counter[tuple[str, int]])
    ends: dict[int, list[str]] = field(default_factory=lambda: defaultdict[int, list[str]](list))
    deeds: dict[int, Deed] = field(default_factory=dict[int, Deed])
    waits: list[float] = field(default_factory=list[float])
    texts: dict[int, str] = field(default_factory=dict[int, str])

    def __post_init__(self) -> None:
        budget = self.scenario.budget
        charge = budget.on_unknown_cost == "charge_reserve"
        self.cost = Sum(budget.max_cost_usd, budget.reserve_cost_usd, charge)
        self.tokens = Sum(budget.max_tokens, budget.reserve_tokens, charge)

    # ---------------------------------------------------------------------------------------------- one attempt

    def take(self, attempt: Attempt) -> None:
        """Count one attempt, and compare how it ended with what really happened."""
        start, end = attempt.start, attempt.end
        assert end is not None, f"attempt {start.number} has no end"
        if self.scenario.candidates == 1:  # side by side, it depends on who ends first
            expected = (self.cost.reserve(start.purpose), self.tokens.reserve(start.purpose))
            assert expected == (start.reserve_cost_usd, start.reserve_tokens), (
                f"attempt {start.number} set aside the wrong amount"
            )
        self.begun += start.purpose == "generate"
        seconds = end.seconds or 0.0
        self.last_seconds = seconds if start.purpose == "generate" else self.last_seconds + seconds
        self.seconds += seconds
        if end.outcome == "lost":
            self.failures["lost"] += 1
            told = (
                self.scenario.deed(start.iteration, self.runs[start.purpose, start.iteration]).usage
                if start.purpose == "generate"
                else {}
            )
            cost, tokens = end.usage.token_cost_usd, end.usage.tokens_used
            assert cost in {None, said(told.get("token_cost_usd"), whole=False)}, "a lost run is charged what it had reported"
            self._pay(attempt, cost, tokens)
            return
        run = self.runs[start.purpose, start.iteration]
        self.runs[start.purpose, start.iteration] += 1
        if start.purpose == "generate":
            self._generated(attempt, self.scenario.deed(start.iteration, run))
        else:
            self._scored(attempt, run)

    def _generated(self, attempt: Attempt, deed: Deed) -> None:
        assert attempt.end is not None
        iteration, outcome = attempt.start.iteration, FAILED.get(deed.kind, "ok")
        assert outcome == attempt.end.outcome, f"a deed '{deed.kind}' ended as {attempt.end.outcome}"
        assert deed.seconds < 0 or abs((attempt.end.seconds or 0.0) - deed.seconds) < NEAR
        cost = said(deed.usage.get("token_cost_usd"), whole=False)
        tokens = said(deed.usage.get("tokens_used"), whole=True)
        parts = [said(deed.usage.get(name), whole=True) for name in ("input_tokens", "output_tokens")]
        if tokens is None and None not in parts:
            tokens = sum(part or 0 for part in parts)
        reported = any(value for value in (cost, tokens, *parts))
        if outcome == "rate_limited" and not reported:  # turned away at once: nothing was used
            cost, tokens = (0 if value is None else value for value in (cost, tokens))
        self._pay(attempt, cost, tokens)
        if outcome in FAILURES:
            self.failures[FAILURES[outcome]] += 1
        if outcome == "rate_limited":
            refused = 1 + next(
                (n for n, one in enumerate(reversed(self.ends[iteration])) if one != outcome), len(self.ends[iteration])
            )
            told = deed.usage.get("retry_after")
            self.waits.append(min(60.0 * 2 ** (refused - 1), 900.0) if told is None else told)
        self.ends[iteration].append(outcome)
        self.deeds[iteration] = deed

    def _scored(self, attempt: Attempt, run: int) -> None:
        assert attempt.end is not None
        ask = self.scenario.ask(attempt.start.iteration, run)
        assert ("ok" if ask.broken is None else "broken") == attempt.end.outcome
        if ask.broken is not None:
            self.failures[f"{ask.broken}_broken"] += 1
        judged = self.scenario.judged
        part = ask.known if judged and ask.cost is None else 0.0
        self._pay(attempt, ask.cost if judged else 0.0, ask.tokens if judged else 0, part)

    def _pay(self, attempt: Attempt, cost: float | None, tokens: float | None, part: float = 0.0) -> None:
        self.cost.pay(attempt, attempt.start.reserve_cost_usd, cost, part)
        self.tokens.pay(attempt, attempt.start.reserve_tokens, tokens)

    @property
    def limited(self) -> bool:
        budget = self.scenario.budget
        return any(cap is not None for cap in (budget.max_cost_usd, budget.max_tokens, budget.max_seconds))

    # ---------------------------------------------------------------------------------------------- one iteration

    def check_record(self, number: int) -> None:
        """Compare what is on record of an iteration with what really happened in it."""
        record, retries = self.records[number], self.scenario.retries
        asks, broken = self.runs["score", number], self.scenario.ask(number, 0).broken
        if number == 0:
            text, outcome = START, "ok"
        else:
            deed, outcome = self.deeds[number], self.ends[number][-1]
            assert outcome != "rate_limited", f"iteration {number} was rate-limited, which is no iteration"
            text = self.text_of(number) if deed.text is None else deed.text
        if outcome in {"failed", "timeout"}:
            status = FAILURES[outcome]
            assert not asks, "what failed is not scored"
            again = retries[status] >= self.ends[number].count(outcome)
            assert not again or number > max(self.records) - self.scenario.candidates, f"iteration {number} was not tried again"
        else:
            answered = next((run for run in range(retries["broken"] + 1) if not self.scenario.ask(number, run).broken), None)
            status = f"{broken}_broken" if answered is None else "ok" if text != "words" else "invalid_score"
            least = retries["broken"] + 1 if answered is None else answered + 1
            if asks < least:  # another evaluation is only made where the budget has room for it
                assert asks
                assert self.limited, f"iteration {number} was asked of {asks} times, not {least}"
                status = f"{self.scenario.ask(number, asks - 1).broken}_broken"
        assert status == record.status, (number, status, record.status, record.status_reason)
        score = round(100 * float(text), 4) if status == "ok" else None
        assert score == record.quality_score, (number, score, record.quality_score)
        verified = "passed" if self.scenario.validated and text != "0.7" else "failed" if self.scenario.validated else "skipped"
        if number and self.deeds[number].cheats:
            verified = "failed"
            assert record.tampering, f"iteration {number} cheated and was not caught"
        if status in {"ok", "invalid_score"}:
            assert verified == record.verification_status
        if number:
            self._check_effect(number, status, text)

    def _check_effect(self, number: int, status: str, text: str) -> None:
        deed, record = self.deeds[number], self.records[number]
        kind = record.failure
        if status in {"generator_failed", "generator_timeout", "validator_broken", "scorer_broken"} and deed.kind != "blocked":
            assert status == kind
            return
        unchanged = text == self.text_of(number)
        if deed.kind == "blocked":
            assert "blocked" == kind
        elif status == "invalid_score":
            assert status == kind
            self.failures[status] += 1
        elif unchanged and deed.kind != "done":
            expected = "changed_nothing" if deed.printed else "produced_nothing"
            assert expected == kind
            self.failures[expected] += 1
        else:
            assert kind is None, (number, kind)

    def text_of(self, number: int) -> str:
        """Return what stood in the file before iteration ``number`` began: its parent's text."""
        parent = self.records[number].parent
        assert parent is not None
        return self.texts[parent]

    # ---------------------------------------------------------------------------------------------- conclusions

    def parent(self, before: list[IterationRecord]) -> int:
        """Return the iteration to go on from, for one iteration after another."""
        if self.scenario.continue_from == "best":
            valid = [one for one in before if one.quality_score is not None]
            honest = [one for one in valid if not one.tampering] or valid
            passed = [one for one in honest if one.verification_status == "passed"] if self.scenario.validated else []
            if valid:  # the latest of equals
                return max(passed or honest, key=lambda one: (one.quality_score or 0.0, one.iteration_number)).iteration_number
        usable = [one for one in before if one.status not in {"generator_failed", "generator_timeout"}]
        return (usable or before)[-1].iteration_number

    def stops_by_records(self, before: list[IterationRecord]) -> set[str]:
        """Return every reason of the work itself for which the loop must end after ``before``, in order of their numbers."""
        rules, found = self.scenario.rules, set[str]()
        passes = [one for one in before if one.iteration_number > 0]
        if rules.target is not None and any(
            (one.quality_score or 0.0) >= rules.target and one.verification_status != "failed" for one in before
        ):
            found.add("target")
        if len(passes) >= rules.max_iterations:
            found.add("max_iterations")
        row = 0
        for one in passes:
            useless = one.quality_score is None or one.failure in {"changed_nothing", "produced_nothing"}
            row = row + 1 if useless else 0
        if row >= rules.consecutive_failures:
            found.add("consecutive_failures")
        latest = [one for one in passes if one is passes[-1] or (one.batch is not None and one.batch == passes[-1].batch)]
        for one in latest:
            deed = self.deeds[one.iteration_number]
            if deed.kind == "blocked":
                found.add("blocked")
            agreed = one.verification_status == "passed" or (rules.target is not None and one.verification_status != "failed")
            enough = one.quality_score is not None and one.quality_score >= (rules.target or 0.0)
            if deed.kind == "done" and agreed and enough:
                found.add("completed")
        return found

    def stops_by_budget(self) -> set[str]:
        """Return every limit for which no further pass may begin now, with nothing under way."""
        budget, found = self.scenario.budget, set[str]()
        if budget.max_iterations is not None and self.begun >= budget.max_iterations:
            found.add("max_attempts")
        if budget.max_seconds is not None and self.seconds >= budget.max_seconds - NEAR:
            found.add("max_seconds")
        found |= {"max_cost"} if self.cost.full() else set[str]()
        found |= {"max_tokens"} if self.tokens.full() else set[str]()
        policy = budget.on_unknown_cost
        if policy == "stop" and (self.cost.silent or self.cost.uncharged):
            found.add("unknown_cost")
        if policy == "charge_reserve" and self.cost.cap is not None and self.cost.uncharged:
            found.add("unknown_cost")
        if policy != "allow" and self.tokens.cap is not None and self.tokens.uncharged:
            found.add("unknown_cost")
        return found

    def refused(self, iteration: int) -> bool:
        """Whether the provider refused an iteration more often in a row than the loop puts up with."""
        most, ends = self.scenario.retries["rate_limited"], self.ends.get(iteration, [])
        return len(ends) > most and set(ends[-most - 1 :]) == {"rate_limited"}

    def chosen(self) -> int | None:
        """Return the best: what passed its checks before what did not, then the score, then the earlier one."""
        valid = [one for one in self.records.values() if one.quality_score is not None]
        if not valid:
            return None
        passed = [one for one in valid if one.verification_status == "passed"] if self.scenario.validated else []
        return max(passed or valid, key=lambda one: (one.quality_score or 0.0, -one.iteration_number)).iteration_number
