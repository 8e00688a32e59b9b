"""What the judge said in a learning run, kept as it is said: nothing is asked or paid for twice, whenever the run was killed.

``verdicts.jsonl`` holds one object a line: the result of an item, as ``evaluate`` writes it, with the digest of the item's text.
A line that was cut off by a kill is no verdict.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from jumar.app.judged import reply_cache
from jumar.errors import ItemError, StoreDamagedError
from jumar.files import as_write_error, make_directory
from jumar.judging.digests import item_digest
from jumar.judging.expensive.evaluate import JudgeRun, judge_items
from jumar.judging.expensive.settings import JudgeSettings
from jumar.judging.expensive.summary import Evaluation, Result
from jumar.judging.items import Item
from jumar.judging.models import ExpensiveModeResult
from jumar.judging.rubric import JudgeRubric
from jumar.learning.targets import Target, targets_of
from jumar.model.judges import Judge
from jumar.model.prices import Prices
from jumar.redaction import current
from jumar.text import escape

__all__ = ["FILE", "Asking", "Hear", "Paid", "Verdicts"]

FILE: Final = "verdicts.jsonl"
Hear = Callable[[Result, int], None]
"""Told of each answer: the result, and how many items are asked about."""

_LOOK: Final = 0.1  # seconds between two looks at the request to stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Paid:
    """What some questions cost. ``cost_usd`` is None when an answer did not say; ``known_cost_usd`` is what the others cost."""

    calls: int = 0
    cached: int = 0
    cost_usd: float | None = 0.0
    known_cost_usd: float = 0.0
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    unscored: Mapping[str, int] = field(default_factory=dict[str, int])
    stopped: str | None = None

    @classmethod
    def of(cls, found: Evaluation) -> Paid:
        return cls(
            calls=found.calls,
            cached=found.cached,
            cost_usd=found.cost_usd,
            known_cost_usd=found.known_cost_usd,
            input_tokens=found.input_tokens,
            output_tokens=found.output_tokens,
            unscored=dict(found.unscored_kinds),
            stopped=found.stopped,
        )


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How the judge is asked. ``cache`` is the folder of replies, None for none; ``stop`` ends the asking."""

    judge: Judge
    question: JudgeRubric
    settings: JudgeSettings
    cache: Path | None = None
    prices: Prices | None = None
    stop: Callable[[], bool] = _never


class Verdicts:
    """The verdicts of one run. Errors: :class:`jumar.errors.StoreDamagedError` for a line in the middle that cannot be read."""

    def __init__(self, path: Path, asking: Asking) -> None:
        self._path = path
        self._asking = asking
        self._known = _read(path)

    @property
    def judge(self) -> Judge:
        """Who is asked."""
        return self._asking.judge

    def missing(self, items: Sequence[Item]) -> list[Item]:
        """Return the items that the judge has not scored yet."""
        return [item for item in items if item.id not in self._known]

    def targets(self, items: Sequence[Item]) -> list[Target]:
        """Return the items that have a verdict, in their order. Errors: ItemError for one whose text has changed since."""
        for item in items:
            known = self._known.get(item.id)
            if known is not None and known[0] != item_digest(item):
                raise ItemError(
                    f"{item.source or escape(item.id)}: the text of '{escape(item.id)}' is not the one that was judged; "
                    "learn into another folder"
                )
        return targets_of(items, [self._known[item.id][1] for item in items if item.id in self._known])

    def results(self, items: Sequence[Item]) -> list[ExpensiveModeResult]:
        """Return the verdicts of these items, in their order."""
        return [self._known[item.id][1] for item in items if item.id in self._known]

    @property
    def calls(self) -> int:
        """How many readings of the judge the verdicts are made of, without those that came from its cache."""
        return sum(len(one.readings) or 1 for _, one in self._known.values() if not one.cached)

    def ask(self, items: Sequence[Item], *, max_cost: float | None = None, hear: Hear | None = None) -> Paid:
        """Ask about the items that have no verdict yet, and keep what is said. ``max_cost`` is in USD, for these questions.

        Errors: those of :func:`jumar.judging.judge_items`; what was judged before them is kept.
        """
        wanted = self.missing(items)
        if not wanted:
            return Paid()
        with as_write_error("write", self._path):
            make_directory(self._path.parent)
            by_id = {item.id: item for item in wanted}
            with self._path.open("a", encoding="utf-8") as stream:

                def keep(result: Result) -> None:
                    if hear is not None:
                        hear(result, len(wanted))
                    if isinstance(result, ExpensiveModeResult):
                        digest = item_digest(by_id[result.story_id])
                        self._known[result.story_id] = (digest, result)
                        line = {"id": result.story_id, "item": digest, "result": result.model_dump(mode="json")}
                        stream.write(current().redact(json.dumps(line, ensure_ascii=False)) + "\n")
                        stream.flush()

                return Paid.of(_asked(self._asking, wanted, keep, max_cost))


def _asked(asking: Asking, items: Sequence[Item], keep: Any, max_cost: float | None) -> Evaluation:
    settings = asking.settings if max_cost is None else replace(asking.settings, max_cost=max_cost)

    async def work() -> Evaluation:
        async with contextlib.aclosing(asking.judge), contextlib.AsyncExitStack() as stack:
            return await judge_items(
                items,
                asking.judge,
                asking.question,
                settings,
                on_result=keep,
                cache=reply_cache(asking.cache, asking.judge),
                prices=asking.prices,
                total=len(items),
                started=lambda run: stack.push_async_callback(_watching(run, asking.stop)),
            )

    return asyncio.run(work())


def _watching(run: JudgeRun, stop: Callable[[], bool]) -> Any:
    """Stop ``run`` when somebody asks for it; returns what ends the watching."""

    async def watch() -> None:
        while not stop():  # noqa: ASYNC110 - a signal handler or a file asks, neither of which knows this event loop
            await asyncio.sleep(_LOOK)
        run.stop()

    task = asyncio.ensure_future(watch())

    async def end() -> None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    return end


def _read(path: Path) -> dict[str, tuple[str, ExpensiveModeResult]]:
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return {}
    found: dict[str, tuple[str, ExpensiveModeResult]] = {}
    for number, line in enumerate(lines[:-1], 1):
        try:
            entry = json.loads(line)
            found[entry["id"]] = (entry["item"], ExpensiveModeResult.model_validate(entry["result"]))
        except (ValueError, KeyError, TypeError, ValidationError) as error:
            raise StoreDamagedError(
                f"{escape(str(path))}:{number}: not a verdict ({type(error).__name__}); "
                "take the line out, and its item is judged again"
            ) from None
    if lines[-1]:  # cut off in the middle of a line: nothing must be appended to it
        with as_write_error("write", path), path.open("r+b") as stream:
            stream.truncate(sum(len(line) + 1 for line in lines[:-1]))
    return found
