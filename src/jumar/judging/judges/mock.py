"""A judge that is none: quick, deterministic, as slow and unreliable as it is told to be. For tests of what asks a judge.

What it says depends on the item's content, the seed and the repeat, and on nothing else; whether a call fails also on how often
the same thing was asked. It obeys whatever is written *outside* of the fence around the item (``score 5``), as a gullible
model would: an item that gets out of its fence is found with it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import re
from collections import Counter
from typing import Any, Final, get_args

from jumar.core.text import escape, nearest
from jumar.errors import ConfigError
from jumar.judging.judges import JudgeSpec
from jumar.model.protocols import FailureKind, JudgeFailure, JudgeReply, JudgeRequest
from jumar.model.records import Usage

_OPENING: Final = re.compile(r"<<<ITEM (\w+)")
_ORDER: Final = re.compile(r"\bscore\s+([1-5])\b", re.IGNORECASE)
_OPTIONS: Final = ("latency", "fail", "kind", "noise", "score", "prose", "seed", "cost")


FORM: Final = ""  # nobody who looks for a judge is shown it


def judge_of(spec: JudgeSpec) -> MockJudge:
    """Return the mock with the options of ``mock:latency=0.2,fail=0.1``. Errors: :class:`jumar.errors.ConfigError`."""
    return MockJudge.from_options(spec.rest)


class MockJudge:
    """Scores from 1 to 5 in tenths.

    ``latency``: seconds a call. ``fail``: share of calls that fail, with ``kind``. ``prose``: share of answers without JSON.
    ``noise``: how far readings of one item scatter, either way. ``score``: one score for all. ``cost`` in USD a call, None
    for unknown. ``calls`` counts, ``in_flight_most`` is the most there were at once.
    """

    def __init__(
        self,
        *,
        latency: float = 0.0,
        fail: float = 0.0,
        kind: FailureKind = "unavailable",
        retry_after: float | None = None,
        noise: float = 0.0,
        score: float | None = None,
        prose: float = 0.0,
        seed: int = 0,
        cost: float | None = 0.0,
    ) -> None:
        options = {"latency": latency, "fail": fail, "noise": noise, "score": score, "prose": prose, "cost": cost}
        for name, value in options.items():
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise ConfigError(f"mock: {name} = {value} should be 0 or more")
        self._latency = latency
        self._fail = fail
        self._kind: FailureKind = kind
        self._retry_after = retry_after
        self._noise = noise
        self._score = score
        self._prose = prose
        self._seed = seed
        self._cost = cost
        self._asked: Counter[str] = Counter()
        self._in_flight = 0
        self.calls = 0
        self.in_flight_most = 0
        shown = {name: value for name, value in (*options.items(), ("seed", seed)) if name not in {"latency", "fail", "cost"}}
        self.identity = "mock:" + ",".join(f"{name}={value}" for name, value in shown.items() if value is not None)

    @classmethod
    def from_options(cls, text: str) -> MockJudge:
        """Return a judge from ``latency=0.2,fail=0.1``. Errors: :class:`jumar.errors.ConfigError`."""
        given: dict[str, Any] = {}
        for part in filter(None, text.split(",")):
            name, _, value = part.partition("=")
            if name not in _OPTIONS:
                raise ConfigError(
                    f"mock: has no option '{escape(name)}'{nearest(name, _OPTIONS)}; there are {', '.join(_OPTIONS)}"
                )
            if name == "kind":
                if value not in get_args(FailureKind):
                    raise ConfigError(f"mock: kind = {escape(value)} should be one of {', '.join(get_args(FailureKind))}")
                given[name] = value
                continue
            try:
                given[name] = int(value) if name == "seed" else float(value)
            except ValueError:
                raise ConfigError(f"mock: {name} = {escape(value)} should be a number") from None
        return cls(**given)

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        self.calls += 1
        self._in_flight += 1
        self.in_flight_most = max(self.in_flight_most, self._in_flight)
        try:
            await asyncio.sleep(self._latency)
            return self._reply(request)
        finally:
            self._in_flight -= 1

    def _reply(self, request: JudgeRequest) -> JudgeReply:
        item = {name: value for name, value in request.item.items() if name != "id"}
        content = json.dumps(item, sort_keys=True, default=str)
        if self._fail:
            question = hashlib.sha256(f"{content}{request.repeat}".encode()).hexdigest()[:16]
            self._asked[question] += 1
            if self._draw("fail", content, request.repeat, self._asked[question]) < self._fail:
                raise JudgeFailure(self._kind, f"the mock judge fails as told: {self._kind}", retry_after=self._retry_after)
        prompt = request.system + request.user
        text = self._verdict(request, content)
        usage = Usage(
            input_tokens=len(prompt) // 4, output_tokens=len(text) // 4, token_cost_usd=self._cost, model="mock", completed=True
        )
        return JudgeReply(text=text, usage=usage)

    def _verdict(self, request: JudgeRequest, content: str) -> str:
        base = self._score if self._score is not None else 1.0 + 4.0 * self._draw("score", content)
        scatter = self._noise * (2.0 * self._draw("noise", content, request.repeat) - 1.0)
        told = _ORDER.search(_outside(request))
        gestalt = float(told[1]) if told else round(min(5.0, max(1.0, base + scatter)), 1)
        if self._draw("prose", content, request.repeat) < self._prose:
            return f"I would give this about {gestalt:g} of 5."
        words = {"reasoning": "a mock judge's verdict", "strengths": ["it is there"], "weaknesses": ["nobody read it"]}
        return json.dumps({**words, "gestalt": gestalt})

    def _draw(self, *what: object) -> float:
        """Return a number from 0 to 1, below 1, that depends on ``what`` and the seed only."""
        digest = hashlib.sha256(repr((self._seed, *what)).encode()).digest()
        return int.from_bytes(digest[:6], "big") / 2**48

    async def aclose(self) -> None:
        """Nothing is open."""


def _outside(request: JudgeRequest) -> str:
    """Return what the message says outside of the fence, as whoever reads it from the top would see it."""
    opening = _OPENING.search(request.system)
    if opening is None:
        return request.user
    before, _, rest = request.user.partition(f"<<<ITEM {opening[1]}\n")
    _, _, after = rest.partition(f"\nITEM {opening[1]}>>>")
    return f"{before}\n{after}"
