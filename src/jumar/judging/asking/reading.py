"""Reading one item: asking as often as wanted, and making one result of the readings."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

from jumar.core.text import escape
from jumar.judging.asking.ask import Answer, Asker, NoAnswer
from jumar.judging.asking.cache import cache_key
from jumar.judging.asking.parse import NoReading, ParsedReply, parse_reply
from jumar.judging.asking.prompt import TEMPLATE_VERSION, build_prompt, item_record, new_nonce, reply_schema
from jumar.judging.asking.settings import JudgeSettings
from jumar.judging.asking.summary import Result
from jumar.judging.items.item import Item
from jumar.judging.models import ExpensiveModeResult, Unscored, UnscoredKind
from jumar.judging.rubric import JudgeRubric
from jumar.model.judges import JudgeRequest
from jumar.model.records import Usage


@dataclass(slots=True)
class Answers:
    """What one item has been answered so far; ``asked`` counts the questions."""

    asked: int = 0
    readings: list[ParsedReply] = field(default_factory=list[ParsedReply])
    failures: list[tuple[UnscoredKind, str, str | None]] = field(default_factory=list[tuple[UnscoredKind, str, str | None]])
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    answered: int = 0
    cost: float | None = 0.0
    cached: int = 0
    model: str | None = None

    def charge(self, usage: Usage | None, cost: float | None) -> None:
        """Add what one question took."""
        self.cost = None if self.cost is None or cost is None else self.cost + cost
        if usage is not None:
            self.answered += 1
            self.input_tokens = _plus(self.input_tokens, usage.input_tokens)
            self.output_tokens = _plus(self.output_tokens, usage.output_tokens)
            self.model = usage.model or self.model


class Reader:
    """Reads items with one judge and one rubric."""

    def __init__(
        self, asker: Asker, identity: str, rubric: JudgeRubric, settings: JudgeSettings, nonce: Callable[[], str] | None
    ) -> None:
        self.identity = identity
        self._asker = asker
        self._rubric = rubric
        self._settings = settings
        self._schema = reply_schema(settings.scale, explain=settings.explain)
        self._nonce = nonce or new_nonce

    async def read(self, item: Item, repeat: int, answers: Answers) -> Answers:
        """Ask until ``repeat`` questions have been put, those in ``answers`` included; stop where another makes no sense.

        An item without any text is asked about by nobody: whatever a judge said would be about the question.
        """
        if not item.text.strip():
            answers.failures.append(("abstained", "there is nothing to judge: the text is empty", None))
        while answers.asked < repeat and not _hopeless(answers):
            await self._ask(item, answers)
        return answers

    async def _ask(self, item: Item, answers: Answers) -> None:
        number = answers.asked
        answers.asked += 1
        found = await self._asker.ask(self._request(item, number, None), self._key(item, number))
        if isinstance(found, NoAnswer):
            answers.charge(found.usage, found.cost)
            answers.failures.append((found.kind, found.message, None))
            return
        self._understand(item, found, answers)

    def _understand(self, item: Item, found: Answer, answers: Answers) -> None:
        answers.charge(found.reply.usage, found.cost)
        answers.cached += found.cached
        cut_off = found.reply.usage.completed is False
        parsed = parse_reply(found.reply.text, self._settings.scale, cut=cut_off)
        if isinstance(parsed, NoReading):
            cut = "; it was cut off at the limit on its tokens" if cut_off else ""
            answers.failures.append((parsed.kind, f"{escape(item.id)}: {parsed.message}{cut}", found.reply.text))
        else:
            answers.readings += parsed

    def _request(self, item: Item, number: int, nonce: str | None) -> JudgeRequest:
        settings = self._settings
        prompt = build_prompt(self._rubric, item, scale=settings.scale, explain=settings.explain, nonce=nonce, fresh=self._nonce)
        return JudgeRequest(
            item_id=item.id,
            item=item_record(item),
            system=prompt.system,
            user=prompt.user,
            schema=self._schema,
            repeat=number,
            temperature=settings.temperature,
            seed=None if settings.seed is None else settings.seed + number,
        )

    def _key(self, item: Item, number: int) -> str:
        return cache_key(self.identity, self._request(item, number, ""), TEMPLATE_VERSION)


def _hopeless(answers: Answers) -> bool:
    return any(kind in {"rejected", "budget", "missing", "abstained"} for kind, _, _ in answers.failures)


def result_of(item: Item, answers: Answers) -> Result:
    """Return the median of the readings, with the words of the reading nearest to it; without readings, the first failure."""
    tokens = {
        "input_tokens": answers.input_tokens if answers.answered else None,
        "output_tokens": answers.output_tokens if answers.answered else None,
    }
    if not answers.readings:
        kind, message, raw = answers.failures[0]
        return Unscored(story_id=item.id, kind=kind, message=message, raw=raw, cost_usd=answers.cost, **tokens)
    gestalts = [reading.gestalt for reading in answers.readings]
    median = statistics.median(gestalts)
    nearest = min(answers.readings, key=lambda reading: abs(reading.gestalt - median))
    return ExpensiveModeResult(
        story_id=item.id,
        gestalt=median,
        reasoning=nearest.reasoning,
        strengths=list(nearest.strengths),
        weaknesses=list(nearest.weaknesses),
        readings=gestalts,
        cost_usd=answers.cost,
        model=answers.model,
        cached=answers.cached == answers.asked,
        **tokens,
    )


def _plus(total: int | None, more: int | None) -> int | None:
    return None if total is None or more is None else total + more
