"""A generator and a judge that misbehave as agents do, from a seed: a deed is a function of which run of which iteration it is.

Nothing here knows the engine. A *deed* is one run of the generator, an *ask* one evaluation; lost ones happen again as they were.
"""

from __future__ import annotations

import math
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from jumar.model import Attempt, CheckResult, GenerateOutcome, Judgement, ScoreReading, StepContext, StopRules
from jumar.model.budget.pricing import Budget
from jumar.processes.usage import parse_usage
from jumar.testing import ManualClock

TIMEOUT = 30.0
LIES: tuple[Any, ...] = (math.nan, math.inf, -math.inf, -0.01, -5, 1e300, 10**40, "0.10", "free", True, [0.1], {"usd": 1})
START = "0.3"


class Killed(BaseException):
    """The process is dead: not an Exception, because nothing may catch it."""


@dataclass
class Fuse:
    """Blows at the ``left``-th chance; None never does."""

    left: int | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def chance(self) -> None:
        with self._lock:
            if self.left is None:
                return
            self.left -= 1
            if self.left < 0:
                self.left = None
                raise Killed


class WildClock(ManualClock):
    """Monotonic time goes on as it does; the wall clock is somebody's to turn."""

    def __init__(self) -> None:
        super().__init__()
        self.turned = 0.0
        self._lock = threading.Lock()

    def advance(self, seconds: float) -> None:
        with self._lock:
            super().advance(seconds)

    def now(self) -> str:
        at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self._elapsed + self.turned)
        return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, kw_only=True)
class Deed:
    """What one run of the generator does and says. ``text`` None leaves the file alone."""

    kind: str
    text: str | None
    usage: dict[str, Any]
    seconds: float
    printed: bool = True
    turns: float = 0.0
    acts: tuple[str, ...] = ()
    cheats: bool = False


@dataclass(frozen=True, kw_only=True)
class Ask:
    """What one evaluation says: which part cannot answer, and what its judge was paid."""

    broken: str | None
    cost: float | None
    known: float
    tokens: int | None
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One loop with everything that will happen to it."""

    seed: int
    candidates: int = 1
    workers: int = 1
    continue_from: str = "previous"
    isolation: str = "none"
    rules: StopRules = field(default_factory=StopRules)
    budget: Budget = field(default_factory=Budget)
    retries: dict[str, int] = field(default_factory=dict[str, int])
    validated: bool = True
    judged: bool = False
    honest: bool = False

    def deed(self, iteration: int, run: int) -> Deed:
        rng = random.Random(f"{self.seed} deed {iteration} {run}")
        kinds = ("write", "same", "mute", "fail", "crash", "hang", "limited", "blocked", "done")
        kind = rng.choices(kinds, (50, 5, 3, 8, 4, 6, 10, 2, 5))[0]
        text = f"{rng.randrange(0, 11) / 10}" if rng.random() > 0.08 else "words"
        usage = self._usage(rng)
        if kind == "limited":
            usage = {} if rng.random() < 0.7 else usage
            usage |= rng.choice(({"rate_limited": True}, {"rate_limited": True, "retry_after": rng.choice((0, 1.5, 20))}))
        usage |= {"blocked": rng.choice((True, "no key"))} if kind == "blocked" else {}
        usage |= {"completed": True} if kind == "done" else {}
        seconds = TIMEOUT if kind == "hang" else round(rng.uniform(0, 20), 2)
        turns = rng.choice((-3600.0, 86400.0)) if rng.random() < 0.1 else 0.0
        unchanged = kind in {"same", "mute", "limited"}
        return Deed(
            kind=kind, text=None if unchanged else text, usage=usage, seconds=seconds, printed=kind != "mute", turns=turns
        )

    def _usage(self, rng: random.Random) -> dict[str, Any]:
        usage: dict[str, Any] = {"token_cost_usd": rng.randrange(0, 40) / 100, "tokens_used": rng.randrange(0, 4000)}
        if rng.random() < 0.15:
            del usage["tokens_used"]
            usage |= {"input_tokens": rng.randrange(500), "output_tokens": rng.randrange(500)}
        if self.honest:
            return usage
        for name in list(usage):
            drawn = rng.random()
            if drawn < 0.08:
                usage[name] = rng.choice(LIES)
            elif drawn < 0.12:
                del usage[name]
        return usage

    def ask(self, iteration: int, run: int) -> Ask:
        rng = random.Random(f"{self.seed} ask {iteration}")
        retries = self.retries.get("broken", 1)
        times = rng.choices((0, rng.randint(0, retries), 10**6), (80, 14, 6))[0]  # for ever is more than any retry
        broken = rng.choice(("validator", "scorer")) if run < times else None
        if broken == "validator" and not self.validated:
            broken = "scorer"
        paid = random.Random(f"{self.seed} paid {iteration} {run}")
        known = paid.randrange(0, 6) / 100
        silent = not self.honest and paid.random() < 0.05
        tokens = paid.randrange(0, 300)
        return Ask(
            broken=broken,
            cost=None if silent else known,
            known=known,
            tokens=None if silent else tokens,
            seconds=round(paid.uniform(0, 2), 2),
        )


def draw(seed: int) -> Scenario:
    """Return the scenario of a seed."""
    rng = random.Random(seed)
    candidates = rng.choice((1, 1, 1, 2, 3))
    kept = rng.choice(("none", "none", "money", "money", "all"))
    budget = Budget()
    if kept != "none":
        budget = Budget(
            max_cost_usd=rng.choice((None, 0.0, 0.3, 0.8, 2.0)),
            max_tokens=rng.choice((None, None, 3_000, 12_000)),
            reserve_cost_usd=rng.choice((None, 0.1, 0.4)) if rng.random() < 0.6 else None,
            reserve_tokens=rng.choice((None, 1_000)),
            on_unknown_cost=rng.choice(("charge_reserve", "charge_reserve", "stop", "allow")),
            max_seconds=rng.choice((None, 25.0, 60.0)) if kept == "all" else None,
            max_iterations=rng.choice((None, 3, 7)) if kept == "all" else None,
            max_calls_per_hour=rng.choice((None, None, 2)) if kept == "all" else None,
        )
    return Scenario(
        seed=seed,
        candidates=candidates,
        workers=rng.randint(1, candidates),
        continue_from=rng.choice(("previous", "best")),
        isolation=rng.choice(("none", "none", "copy")),
        rules=StopRules(
            target=rng.choice((None, None, 90.0, 100.0)),
            max_iterations=rng.randint(1, 7),
            consecutive_failures=rng.randint(1, 4),
        ),
        budget=budget,
        retries={
            "generator_failed": rng.choice((0, 0, 1, 2)),
            "generator_timeout": rng.choice((0, 0, 1)),
            "rate_limited": rng.choice((0, 1, 20)),
            "broken": rng.choice((0, 1, 2)),
        },
        validated=rng.random() < 0.7,
        judged=rng.random() < 0.4,
        honest=rng.random() < 0.4,
    )


class World:
    """Acts out a scenario in one process; goes on where the attempts on disk end. ``log`` is what was really done, in order."""

    def __init__(self, scenario: Scenario, attempts: Iterable[Attempt], clock: WildClock, fuse: Fuse) -> None:
        self.scenario = scenario
        self.clock = clock
        self.fuse = fuse
        self.log: list[tuple[str, int]] = []
        self._lock = threading.Lock()
        ended = [one for one in attempts if one.end is not None and one.end.outcome not in {"lost", "interrupted"}]
        self._runs = Counter((one.start.purpose, one.start.iteration) for one in ended)

    def _next(self, purpose: str, iteration: int) -> int:
        with self._lock:
            self._runs[purpose, iteration] += 1
            self.log.append((purpose, iteration))
            return self._runs[purpose, iteration] - 1

    def _pass_time(self, seconds: float, turns: float = 0.0) -> None:
        if self.scenario.candidates == 1:  # side by side, the time of one is not the time of the other
            self.clock.advance(seconds)
        self.clock.turned += turns

    def generate(self, context: StepContext) -> GenerateOutcome:
        self.fuse.chance()
        deed = self.scenario.deed(context.iteration, self._next("generate", context.iteration))
        if deed.text is not None:
            (context.workdir / "out.txt").write_text(deed.text)
        self._pass_time(deed.seconds, deed.turns)
        self.fuse.chance()
        reading = parse_usage(deed.usage, where="usage file")
        failed = {"fail": "exit code 3", "crash": "killed by signal 11", "hang": "timed out", "limited": "exit code 75"}
        return GenerateOutcome(
            exit_code={"fail": 3, "crash": -11, "limited": 75}.get(deed.kind, 0),
            seconds=deed.seconds,
            timed_out=deed.kind == "hang",
            failure=failed.get(deed.kind),
            usage=reading.usage,
            notes=reading.notes,
            rate_limited=deed.kind == "limited",
            blocked=reading.usage.blocked,
            printed=deed.printed,
        )


class WildValidator:
    """Refuses the text 0.7; cannot answer when the scenario says so. The first of the parts that are asked."""

    name = "wild"

    def __init__(self, asked: Callable[[StepContext], Ask]) -> None:
        self._asked = asked

    def validate(self, context: StepContext) -> CheckResult:
        ask = self._asked(context)
        text = (context.workdir / "out.txt").read_text()
        if ask.broken == "validator":
            return CheckResult(name=self.name, passed=False, broken="not found")
        return CheckResult(name=self.name, passed=text != "0.7")


class WildScorer:
    """Reads the number in the file; judged, it says what that cost."""

    dimension = "quality"

    def __init__(self, world: World) -> None:
        self._world = world
        self._open: dict[int, Ask] = {}

    def asked(self, context: StepContext) -> Ask:
        """Return the ask under way for an iteration, beginning one if there is none: checks are asked first."""
        world, iteration = self._world, context.iteration
        if iteration not in self._open:
            world.fuse.chance()
            self._open[iteration] = world.scenario.ask(iteration, world._next("score", iteration))
        return self._open[iteration]

    def score(self, context: StepContext) -> ScoreReading:
        ask = self.asked(context)
        del self._open[context.iteration]
        self._world._pass_time(ask.seconds)
        text = (context.workdir / "out.txt").read_text()
        self._world.fuse.chance()
        judgement = None
        if self._world.scenario.judged:
            judgement = Judgement(
                mode="expensive",
                items=1,
                scored=1,
                gestalt=3.0,
                cost_usd=ask.cost,
                known_cost_usd=ask.known if ask.cost is None else ask.cost,
                input_tokens=ask.tokens,
                output_tokens=0 if ask.tokens is not None else None,
                calls=1,
            )
        if ask.broken == "scorer":
            return ScoreReading(dimension=self.dimension, score=None, broken="timed out", judgement=judgement)
        try:
            return ScoreReading(dimension=self.dimension, score=float(text), judgement=judgement)
        except ValueError:
            return ScoreReading(dimension=self.dimension, score=None, invalid=f"{text!r} is no number", judgement=judgement)
