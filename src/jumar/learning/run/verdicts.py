"""What the judge said in a learning run, kept as it is said: nothing that was answered is asked again, whenever it was killed.

``verdicts.jsonl`` holds one object a line: the result of an item, as ``evaluate`` writes it, with the digests of the item's text
and of the judge and how it is asked. A line that was cut off by a kill is no verdict.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from jumar.core.files import as_write_error, make_directory, read_bytes
from jumar.core.redaction import current, redacted_json
from jumar.core.text import escape, plural
from jumar.errors import ConfigError, ItemError, StoreDamagedError
from jumar.judging.asking.cache import reply_cache
from jumar.judging.asking.call_log import CallLog
from jumar.judging.asking.evaluate import PROBED, JudgeRun, judge_items, readings_for
from jumar.judging.asking.prompt import TEMPLATE_VERSION
from jumar.judging.asking.settings import JudgeSettings
from jumar.judging.asking.summary import NOT_THE_JUDGES, Evaluation, Result
from jumar.judging.items.item import Item, digest_of, item_digest
from jumar.judging.models import ExpensiveModeResult, Unscored
from jumar.judging.proofs import ProofJudge
from jumar.judging.rubric import JudgeRubric
from jumar.learning.material import Target, targets_of
from jumar.model.budget.pricing import Prices
from jumar.model.protocols import Judge

FILE: Final = "verdicts.jsonl"
Hear = Callable[[Result, int], None]
"""Told of each answer: the result, and how many items are asked about."""

_HOPELESS: Final = 0.9  # of the first few; whether too many of all have no verdict is seen with the others
_LOOK: Final = 0.1  # seconds between two looks at the request to stop


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAccess:
    """How the judge is asked. ``cache`` is the folder of replies, None for none; ``stop`` ends the asking.

    ``calls`` counts what is asked and paid, by default in memory.
    """

    judge: Judge
    question: JudgeRubric
    settings: JudgeSettings
    cache: Path | None = None
    prices: Prices | None = None
    stop: Callable[[], bool] = _never
    calls: CallLog = field(default_factory=CallLog)

    @property
    def claims(self) -> ProofJudge:
        """What a proof says of the judge."""
        return judge_of_proof(self.judge, self.question, self.settings)


def warn_of_unscored(unscored: Mapping[str, int], kind: str, items: int) -> None:
    """Warn of items that have no score and so take no part; where the judge left its scale they are the best or the worst."""
    count = sum(unscored.values())
    if not count:
        return
    kinds = ", ".join(f"{many:,} {name}" for name, many in sorted(unscored.items()))
    told = f"{count:,} of {plural(items, f'{kind} item')} got no score ({kinds}), and what follows is about the others alone"
    if unscored.get("out_of_range"):
        told += (
            "; out of range are the judge's lowest or highest scores: give its scale with --judge-scale LO,HI, and learn into "
            "another folder"
        )
    warnings.warn(told, stacklevel=2)


def judge_of_proof(judge: Judge, question: JudgeRubric, settings: JudgeSettings) -> ProofJudge:
    """Return what a proof says about the judge: what decides about its answers, not how fast it is asked or for how much."""
    decides = ("repeat", "scale", "temperature", "seed", "explain")
    chosen = {name: value for name, value in settings.to_json().items() if name in decides}
    return ProofJudge(
        identity=judge.identity,
        question_hash=digest_of(question.model_dump(mode="json")),
        template=TEMPLATE_VERSION,
        settings=chosen,
    )


class Verdicts:
    """The verdicts of one run.

    Errors: :class:`jumar.errors.StoreDamagedError` for a line in the middle that cannot be read,
    :class:`jumar.errors.ConfigError` for verdicts of another judge, or of one that was asked otherwise.
    """

    def __init__(self, path: Path, asking: JudgeAccess) -> None:
        self._path = path
        self._asking = asking
        self._judge = digest_of(asking.claims.model_dump(mode="json"))
        self._ids: dict[str, str] = {}
        self._costs: list[float | None] = []
        self.stopped: str | None = None
        self._known = self._read()

    @property
    def calls(self) -> CallLog:
        """What was asked and paid."""
        return self._asking.calls

    @property
    def claims(self) -> ProofJudge:
        """Who is asked, and how."""
        return self._asking.claims

    def _read(self) -> dict[str, ExpensiveModeResult]:
        try:
            lines = read_bytes(self._path).split(b"\n")
        except FileNotFoundError:
            return {}
        found: dict[str, ExpensiveModeResult] = {}
        for number, line in enumerate(lines[:-1], 1):
            try:
                entry = json.loads(line)
                judge: str = entry["judge"]
                self._ids[str(entry["id"])] = str(entry["item"])
                if "paid" in entry:  # of before calls were counted: an answer that was no verdict
                    self._costs.append(float(entry["paid"]))
                else:
                    result = found[str(entry["item"])] = ExpensiveModeResult.model_validate(entry["result"])
                    readings = 0 if result.cached else len(result.readings) or 1
                    self._costs += [None if result.cost_usd is None else result.cost_usd / readings] * readings
            except (ValueError, KeyError, TypeError, ValidationError) as error:
                raise StoreDamagedError(
                    f"{escape(str(self._path))}:{number}: not a verdict ({type(error).__name__}); "
                    "take the line out, and its item is judged again"
                ) from None
            if judge != self._judge:
                raise ConfigError(
                    f"{escape(str(self._path))}:{number}: this verdict is of another judge than "
                    f"{escape(self.claims.identity)}, or it was asked for with other options (rubric, --judge-scale, --repeat, "
                    "--no-reasons); give those of the run, or learn into another folder"
                )
        if lines[-1]:  # cut off in the middle of a line: nothing must be appended to it
            with as_write_error("write", self._path), self._path.open("r+b") as stream:
                stream.truncate(sum(len(line) + 1 for line in lines[:-1]))
        return found

    def _of(self, item: Item) -> ExpensiveModeResult | None:
        """Return the verdict of an item. It is found by the digest: its name may have been taken for a secret, and redacted."""
        found = self._known.get(item_digest(item))
        return None if found is None else found.model_copy(update={"story_id": item.id})

    def missing(self, items: Sequence[Item]) -> list[Item]:
        """Return the items that the judge has not scored yet. Errors: ItemError for one whose text has changed since."""
        left = [item for item in items if self._of(item) is None]
        for item in left:
            if self._ids.get(item.id, item_digest(item)) != item_digest(item):
                raise ItemError(
                    f"{item.source or escape(item.id)}: the text of '{escape(item.id)}' is not the one that was judged; "
                    "learn into another folder"
                )
        return left

    def targets(self, items: Sequence[Item]) -> list[Target]:
        """Return the items that have a verdict, in their order. Errors: as :meth:`missing`."""
        self.missing(items)
        return targets_of(items, self.results(items))

    def results(self, items: Sequence[Item]) -> list[ExpensiveModeResult]:
        """Return the verdicts of these items, in their order."""
        return [found for _, found in self._pairs(items)]

    def digest(self, items: Sequence[Item]) -> str | None:
        """Return one hash of what the judge said of these items, in any order; None when it said nothing yet."""
        said = sorted([item_digest(item), *one.readings] for item, one in self._pairs(items))
        return digest_of(said) if said else None

    def _pairs(self, items: Sequence[Item]) -> list[tuple[Item, ExpensiveModeResult]]:
        return [(item, found) for item in items if (found := self._of(item)) is not None]

    def count_before(self) -> None:
        """Count what was asked before calls were counted: of a run that an earlier version began."""
        calls = self._asking.calls
        for cost in self._costs if not calls.calls else ():
            calls.end(calls.begin(), cost)

    def ask(self, *parts: Sequence[Item], max_cost: float | None = None, hear: Hear | None = None) -> Counter[str]:
        """Ask about the items that have no verdict yet, one part after the other; keep what is said, count what got no verdict.

        ``max_cost`` is in USD, for all that ``calls`` of the asking has. Where nobody said how often an item is
        read, the first of each part are read twice, and these readings decide about the others: of the same items the same ones,
        so that a run that was interrupted asks what the whole one would have asked. :attr:`stopped` says why not all were asked.
        Errors: those of :func:`jumar.judging.judge_items`; what was judged before them is kept.
        """
        asked = replace(self._asking.settings, max_cost=max_cost)
        unscored: Counter[str] = Counter()
        self.stopped = None
        for part in parts:
            wanted = len(self.missing(part))
            if not wanted:
                continue

            def told(result: Result, total: int = wanted) -> None:
                if hear is not None and not (isinstance(result, Unscored) and result.kind in NOT_THE_JUDGES):
                    hear(result, total)

            # of a part of which most is on file, the few that are asked again may all fail
            settings = replace(asked, max_unscored=min(1.0, asked.max_unscored * len(part) / wanted))
            if settings.repeat is None and not getattr(self._asking.judge, "recorded", False):
                twice = replace(settings, repeat=2, max_unscored=max(settings.max_unscored, _HOPELESS))
                unscored += self._ask(part[:PROBED], twice, told)
                read = [result.readings for result in self.results(part[:PROBED])]
                settings = replace(settings, repeat=readings_for(read))
            unscored += self._ask(part, settings, told)
        return unscored

    def _ask(self, items: Sequence[Item], settings: JudgeSettings, told: Callable[[Result], None]) -> Counter[str]:
        """Ask about ``items`` unless the budget has ended before, and return how many got no verdict, by kind."""
        wanted = self.missing(items)
        if not wanted or self.stopped is not None:
            return Counter()
        with as_write_error("write", self._path):
            make_directory(self._path.parent)
            by_id, repeat = {item.id: item for item in wanted}, settings.repeat or 1
            with self._path.open("a", encoding="utf-8") as stream:

                def keep(result: Result) -> None:
                    told(result)
                    if not isinstance(result, ExpensiveModeResult) or (self._asking.stop() and len(result.readings) < repeat):
                        return  # whoever stops it cuts an item's readings short: what was said is in the cache, and is no verdict
                    digest = item_digest(by_id[result.story_id])
                    self._known[digest], self._ids[result.story_id] = result, digest
                    entry = {
                        "id": result.story_id,
                        "item": digest,
                        "judge": self._judge,
                        "result": result.model_dump(mode="json"),
                    }
                    stream.write(_line(entry))
                    stream.flush()

                found = _asked(replace(self._asking, settings=settings), wanted, keep)
        self.stopped = found.stopped
        return Counter(found.unscored_kinds)


def _line(entry: dict[str, Any]) -> str:
    """Return a line: what was said redacted, the digests as they are, since verdicts are found by them."""
    return json.dumps(redacted_json(entry, current().redact, frozenset({"item", "judge"})), ensure_ascii=False) + "\n"


def _asked(asking: JudgeAccess, items: Sequence[Item], keep: Callable[[Result], None]) -> Evaluation:
    async def work() -> Evaluation:
        async with contextlib.aclosing(asking.judge), contextlib.AsyncExitStack() as stack:
            return await judge_items(
                items,
                asking.judge,
                asking.question,
                asking.settings,
                on_result=keep,
                cache=reply_cache(asking.cache, asking.judge),
                prices=asking.prices,
                calls=asking.calls,
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
