"""``[evaluator]`` and ``builtin = "judge"`` in a loop: the judges of ``jumar evaluate`` on what a candidate made.

Everything that can be wrong with judge, rubric and patterns is found when the loop is put together. What fails later is told as
what it is: a judge that cannot answer is broken, items that cannot be read are invalid, no file at all scores 0.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Coroutine, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from jumar.app.config.evaluator import EvaluatorConfig, JudgeOptions
from jumar.core.files import UnreadableFileError, as_write_error, make_directory, replace_file, sha256_file
from jumar.core.leftovers import remove_any
from jumar.core.redaction import current
from jumar.core.text import escape, json_rows
from jumar.errors import ConfigError, EvaluationUnreliableError, ItemError, JumarError, UsageError
from jumar.loop.scorers import JudgeScorer, SharedEvaluation
from jumar.loop.store.layout import REPLIES
from jumar.model.budget.pricing import PriceTable
from jumar.model.protocols import Evaluated, Judge, StepContext
from jumar.processes.functions import describe_exception, described

if TYPE_CHECKING:
    from jumar.app.run.findings import Findings
    from jumar.app.run.learning import LoopAuto, LoopLearning
    from jumar.judging.asking.cache import ReplyCache
    from jumar.judging.asking.call_log import CallLog
    from jumar.judging.asking.summary import Evaluation
    from jumar.judging.auto.results import AutoEvaluation
    from jumar.judging.cheap.evaluator import CheapModeEvaluator
    from jumar.judging.dual import CheapResult, DualEvaluation
    from jumar.judging.items.item import Item
    from jumar.judging.rubric import StoryRubric, TextRubric

_T = TypeVar("_T")
_LOOK: Final = 0.1  # seconds between two looks at the request to stop
_BUILTIN: Final = ("story", "text")
_STOPPED: Final = "stopped before every item was judged"


class _StoppedError(Exception):
    """Somebody asked the loop to end now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an evaluator works: ``base`` is the configuration's directory, ``root`` holds the loops (None: no replies are kept).

    ``stop`` ends an evaluation that is under way. ``prices`` are for judges that tell no cost and have no prices of their own.
    Replies without a mark are taken where they are older than ``since`` (ns), when programs of the loop ran first; None is now.
    """

    base: Path
    root: Path | None = None
    stop: threading.Event | None = None
    prices: PriceTable | None = None
    since: int | None = None


class Evaluators:
    """Makes the evaluators of one configuration; equal options give the same one, so that nothing is judged twice."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._made: list[tuple[JudgeOptions, SharedEvaluation]] = []

    def of_options(self, options: Mapping[str, object]) -> SharedEvaluation:
        """Return the evaluation of a ``judge`` scorer. Errors: :class:`jumar.errors.ConfigError`."""
        from pydantic import ValidationError

        try:
            checked = JudgeOptions.model_validate(dict(options))
        except ValidationError as error:  # a configuration file was checked before; this is for other callers
            first = error.errors(include_url=False)[0]
            raise ConfigError(f"scorer 'judge': {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
        return self._shared(checked, "scorer 'judge'")

    def scorers(self, config: EvaluatorConfig) -> list[JudgeScorer]:
        """Return a scorer for each dimension of ``[evaluator]``. Errors: :class:`jumar.errors.ConfigError`."""
        shared = self._shared(config.options(), "[evaluator]")
        return [JudgeScorer(dimension, shared, part=part) for dimension, part in config.dimensions.items()]

    def _shared(self, options: JudgeOptions, where: str) -> SharedEvaluation:
        for known, shared in self._made:
            if known == options:
                return shared
        number = len(self._made) + 1
        evaluator = LoopEvaluator(options, self._place, where=where, folder="evaluation" + (f"-{number}" if number > 1 else ""))
        self._made.append((options, SharedEvaluation(evaluator)))
        return self._made[-1][1]


@contextlib.contextmanager
def _named(where: str, key: str) -> Generator[None]:
    """Put the table and the key in front of what is wrong."""
    try:
        yield
    except UsageError as error:
        raise ConfigError(f"{where} {key}: {error}") from error


class LoopEvaluator:
    """Judges the items that ``options`` name. ``folder`` is where, below a step's logs, the single results are kept.

    Errors: :class:`jumar.errors.ConfigError` that begins with ``where`` and the key.
    """

    name = "judge"

    def __init__(self, options: JudgeOptions, place: Place, *, where: str, folder: str) -> None:
        from jumar.judging.cheap.evaluator import CheapModeEvaluator
        from jumar.judging.dual import require_statistics

        self._options = options
        self._place = place
        self._folder = folder
        self._since = place.since or time.time_ns()
        self._forged: list[str] = []
        self._rubric = _rubric(options.rubric, place.base, where)
        self._patterns = None if options.patterns is None else place.base / options.patterns
        self._cheap: CheapModeEvaluator | None = None
        self._judge: Judge | None = None
        self._digest: str | None = None
        if options.mode != "cheap":
            from jumar.judging.asking.settings import JudgeConfig
            from jumar.judging.judges import judge_price, make_judge

            with _named(where, "judge"):
                self._judge = make_judge(options.judge, max_tokens=options.max_tokens, base=place.base)
            with _named(where, "settings"):
                asked = JudgeConfig.of(options.judge or "", options.model_dump())
            self._settings = asked.settings
            self._prices = asked.prices or judge_price(options.judge, place.prices)
        if options.mode != "expensive":
            with _named(where, "patterns"):
                self._cheap = CheapModeEvaluator(self._patterns, rubric=self._rubric)
            self._digest = None if self._patterns is None else sha256_file(self._patterns)
        if options.mode in {"dual", "auto"}:
            with _named(where, "mode"):
                require_statistics()
        self._auto = self._proven(where) if options.mode == "auto" else None
        self._refuse_gameable(where)
        self._learning = self._learner(where)

    def _learner(self, where: str) -> LoopLearning | None:
        """Return what the cheap judge learns with; None where it does not, or where there is no store to keep it in."""
        learn, root = self._options.learn, self._place.root
        if not self._options.learns or root is None:
            return None
        from jumar.app.run.learning import LoopLearning

        return LoopLearning(
            learn or True, root=root, folder=self._folder, patterns=self._patterns, rubric=self._rubric, where=where
        )

    def _proven(self, where: str) -> LoopAuto:
        """Return what mode auto decides by; the cheap judge is from now on the one that was proven."""
        from jumar.app.run.learning import LoopAuto

        options = self._options
        if self._judge is None or self._patterns is None or options.proof is None:
            raise ConfigError(f"{where} mode: 'auto' needs judge, patterns and proof")
        with _named(where, "proof"):
            found = LoopAuto(options, self._patterns, self._place.base / options.proof, self._rubric)
            found.check_judge(self._judge, self._settings)
        self._rubric, self._cheap = found.rubric, found.evaluator
        return found

    def _refuse_gameable(self, where: str) -> None:
        """Refuse a score that a generator is rewarded for, and that was not made to be optimised against."""
        used = None if self._cheap is None or self._options.mode == "dual" else self._cheap.patterns
        if used is None or used.is_robust or self._options.allow_gameable:
            return
        raise ConfigError(
            f"{where} patterns: {escape(str(self._patterns))} was not learned to be optimised against, as loops do: what makes "
            "an item worse or just longer may raise its score. Learn it again with `jumar learn --robust`, or set "
            "allow_gameable = true here, which the selection report tells"
        )

    @property
    def asks(self) -> bool:
        """Whether an evaluation asks a judge."""
        return self._judge is not None

    @property
    def judge(self) -> str | None:
        """Who is asked, None in cheap mode."""
        return None if self._judge is None else self._judge.identity

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a run or ``jumar doctor`` has to say before anything is paid for: what is so; what to do about it."""
        from jumar.app.run.learning import gaming_warnings

        if self._auto is not None:
            return self._auto.warnings()
        alone = self._options.mode == "cheap" and self._cheap is not None and self._cheap.card is not None
        return tuple(gaming_warnings(self._patterns, "cheap")) if alone and self._patterns is not None else ()

    def look(self, context: StepContext) -> int:
        """Return how many items there are, 0 without a file, and ask nobody. Errors: :class:`jumar.errors.ItemError`."""
        try:
            return len(self._items(context) or ())
        except UnreadableFileError as error:
            raise ItemError(str(error)) from error

    def evaluate(self, context: StepContext) -> Evaluated:
        """Judge the items; see :class:`jumar.model.protocols.Evaluator`."""
        began = time.monotonic()
        found = self._evaluated(context)
        forged, self._forged[:] = tuple(self._forged), ()
        return replace(found, seconds=time.monotonic() - began, forged=forged)

    def _items(self, context: StepContext) -> list[Item] | None:
        from jumar.app.run.findings import collect_items
        from jumar.judging.rubric import kind_of_items

        kind = kind_of_items(self._rubric)
        options = self._options
        return collect_items(context.workdir, options.paths, among=context.artifacts, fields=options.fields, kind=kind)

    def _evaluated(self, context: StepContext) -> Evaluated:
        named = ", ".join(escape(path) for path in self._options.paths)
        try:
            items = self._items(context)
        except (UnreadableFileError, ItemError) as error:
            return Evaluated(invalid=str(error))
        if items is None:
            return Evaluated(missing=f"missing: {named}")
        if not items:
            return Evaluated(invalid=f"{named}: there are no items in it")
        try:
            return self._judged(items, context)
        except JumarError:
            raise  # of the disk: that is no judge's fault
        except Exception as error:  # noqa: BLE001 - whatever a judge of somebody else's may raise
            with as_write_error("write", context.log_directory):
                log = context.log_directory / f"score-{self._folder}.log"
                remove_any(log)  # it may lead to a person's file
                log.write_text(described(error), encoding="utf-8", errors="backslashreplace")
            return Evaluated(broken=describe_exception(error))

    def _judged(self, items: Sequence[Item], context: StepContext) -> Evaluated:
        from jumar.app.run.findings import Findings, summarise, unreliable
        from jumar.judging.asking.call_log import FILE, CallLog
        from jumar.judging.asking.summary import JudgeRejectedError

        if self._place.stop is not None and self._place.stop.is_set():
            return Evaluated(broken=_STOPPED)
        folder = context.log_directory / self._folder
        with as_write_error("create", folder):
            make_directory(folder)
        read = tuple(item for item in items if not _empty(item))
        empty = tuple(item.id for item in items if _empty(item))
        learned = self._patterns_for(context)
        found = Findings(mode=self._options.mode, read=read, empty=empty, recorded=self._recorded(learned))
        if self._judge is not None and read:
            try:
                log = None if getattr(self._judge, "recorded", False) else folder / FILE  # an earlier try was paid for, too
                with CallLog(log, reserve=self._settings.reserve_cost) as calls:
                    found = replace(found, recorded={**found.recorded, "earlier_cost_usd": calls.charged_usd or None})
                    try:
                        found = self._asked(found, self._judge, calls, fresh=context.fresh)
                    except _StoppedError:
                        cost = None if calls.uncharged else calls.charged_usd
                        paid = {**found.recorded, "cost_usd": cost, "known_cost_usd": calls.known_usd}
                        return unreliable(replace(found, recorded=paid), _STOPPED)
            except (EvaluationUnreliableError, JudgeRejectedError) as error:
                return unreliable(replace(found, expensive=cast("Evaluation | None", error.evaluation)), str(error))
        found = self._with_cheap(found, learned)
        self._write(folder, found, context.iteration)
        return self._with_learned(summarise(found), found, context)

    def _patterns_for(self, context: StepContext) -> Path | None:
        """Return what the loop has learned before this iteration, None where that is nothing."""
        return None if self._learning is None else self._learning.patterns(context)

    def _with_learned(self, judged: Evaluated, found: Findings, context: StepContext) -> Evaluated:
        """Return the evaluation with what the cheap judge learns from it; a reading to confirm a choice teaches nothing."""
        expensive, stop = found.expensive, self._place.stop
        if self._learning is None or expensive is None or judged.judgement is None or judged.broken is not None or context.fresh:
            return judged
        if stop is not None and stop.is_set():  # nobody will keep this answer
            return judged
        learned = self._learning.learn(context, found.read, expensive.results)
        return replace(judged, judgement=replace(judged.judgement, learned=learned))

    def _recorded(self, learned: Path | None) -> dict[str, Any]:
        from jumar.judging.rubric import builtin_rubric

        rubric = self._rubric
        digest = rubric.digest if rubric is not None else f"{builtin_rubric('story').digest} {builtin_rubric('text').digest}"
        patterns = self._digest if learned is None else sha256_file(learned)
        found: dict[str, Any] = {"rubric": digest, "patterns": patterns, "details": f"logs/{self._folder}"}
        return found if self._judge is None else {**found, "judge": self._judge.identity}

    def _asked(self, found: Findings, judge: Judge, calls: CallLog, *, fresh: str) -> Findings:
        if self._auto is None:
            return replace(found, expensive=self._ask(judge, found.read, calls, fresh=fresh))
        auto = self._decided(self._auto, judge, found.read, calls, fresh=fresh)
        return replace(found, auto=auto, expensive=auto.expensive)

    def _ask(self, judge: Judge, items: Sequence[Item], calls: CallLog, *, fresh: str) -> Evaluation:
        from jumar.judging.asking.evaluate import judge_items, run_async
        from jumar.judging.rubric import rubric_of

        cache = self._cache(judge, fresh)
        question = rubric_of(self._rubric, items)

        async def work() -> Evaluation:
            async with contextlib.aclosing(judge):
                return await judge_items(items, judge, question, self._settings, cache=cache, prices=self._prices, calls=calls)

        return run_async(lambda: _until_stopped(work(), self._place.stop))

    def _decided(self, auto: LoopAuto, judge: Judge, items: Sequence[Item], calls: CallLog, *, fresh: str) -> AutoEvaluation:
        from jumar.judging.asking.evaluate import judge_items, run_async

        cache = self._cache(judge, fresh)

        async def ask(asked: Sequence[Item]) -> Evaluation:
            question = auto.rubric.judge
            return await judge_items(asked, judge, question, self._settings, cache=cache, prices=self._prices, calls=calls)

        async def work() -> AutoEvaluation:
            async with contextlib.aclosing(judge):
                return await auto.decide(items, ask)

        return run_async(lambda: _until_stopped(work(), self._place.stop))

    def _cache(self, judge: Judge, fresh: str) -> ReplyCache | None:
        from jumar.judging.asking.cache import reply_cache

        return reply_cache(self._cache_directory(fresh), judge, since=self._since, forged=self._forged.append)

    def _cache_directory(self, fresh: str) -> Path | None:
        """Return where replies are kept, None for nowhere. A fresh reading has its own folder, and goes on when it was killed."""
        given = self._options.cache
        if given is False or (given is None and self._place.root is None):
            return None
        directory = self._place.base / given if given else (self._place.root or self._place.base) / REPLIES
        return directory / "again" / fresh if fresh else directory

    def _with_cheap(self, found: Findings, learned: Path | None) -> Findings:
        """Return the findings with those of the cheap judge, where the mode has one, and what lies between both.

        ``learned`` is a set that is compared with the expensive judge in place of the configured one. The parts stay those of
        the configured one: else the scores of two iterations would not compare.
        """
        from jumar.app.run.findings import missing_overall, weaknesses_of
        from jumar.judging.models import CheapModeResult

        cheap = self._cheap
        if cheap is None:
            return found
        patterns = 0 if cheap.evidence is None else len(cheap.evidence.ids)
        if found.auto is not None:  # no words of the cheap judge: who writes the items would learn what to write for it
            return replace(found, cheap=found.auto.cheap, patterns=patterns)
        results: list[CheapResult] = list(cheap.evaluate(found.read))
        pairs = [
            (one, _rubric_of(item, cheap))
            for item, one in zip(found.read, results, strict=True)
            if isinstance(one, CheapModeResult)
        ]
        both = found.expensive
        dual = None if both is None else self._combined(found.read, both, results, learned)
        return replace(
            found,
            cheap=tuple(results),
            dual=dual,
            patterns=patterns,
            lacks={one.story_id: weaknesses_of(one, rubric, cheap.patterns) for one, rubric in pairs},
            missing=missing_overall(pairs, cheap.patterns),
        )

    def _combined(
        self, items: Sequence[Item], expensive: Evaluation, results: Sequence[CheapResult], learned: Path | None
    ) -> DualEvaluation:
        from jumar.judging.cheap.evaluator import CheapModeEvaluator
        from jumar.judging.dual import combine

        if learned is None:
            return combine(items, expensive, results, None if self._cheap is None else self._cheap.patterns)
        cheap = CheapModeEvaluator(learned, rubric=self._rubric)
        return combine(items, expensive, list(cheap.evaluate(items)), cheap.patterns)

    def _write(self, folder: Path, found: Findings, iteration: int) -> None:
        """Keep every item's result beside the iteration's other logs, before it is acknowledged."""
        from jumar.judging.auto.results import auto_documents
        from jumar.judging.dual import cheap_document
        from jumar.judging.expensive import dual_documents

        documents: dict[str, str] = {}
        if found.auto is not None:
            documents |= auto_documents(found.auto)
        elif found.expensive is not None:
            documents["expensive_eval.json"] = json_rows(found.expensive.to_json())
        if found.dual is not None:
            documents |= dual_documents(iteration, found.dual)
        elif found.cheap is not None and found.auto is None:
            documents["cheap_eval.json"] = json_rows(cheap_document(found.cheap, None))
        for name, text in documents.items():
            replace_file(folder / name, current().redact_bytes(text.encode("utf-8", "backslashreplace")))


def _rubric(spec: str | None, base: Path, where: str) -> StoryRubric | TextRubric | None:
    from jumar.judging.rubric import load_rubric

    if spec is None or spec in _BUILTIN:
        return load_rubric(spec)
    path = base / spec
    if not path.exists():
        raise ConfigError(f"{where} rubric: {escape(str(path))}: no such file; built in are {' and '.join(_BUILTIN)}")
    with _named(where, "rubric"):
        return load_rubric(str(path.absolute()))


def _rubric_of(item: Item, cheap: CheapModeEvaluator) -> StoryRubric | TextRubric:
    wanted = "text" if item.story is None else "story"
    return next((rubric for rubric in cheap.rubrics if rubric.kind == wanted), cheap.rubrics[0])


def _empty(item: Item) -> bool:
    return not item.text.strip() and not (item.story is not None and (item.story.technical_area or "").strip())


async def _until_stopped(work: Coroutine[Any, Any, _T], stop: threading.Event | None) -> _T:
    task = asyncio.create_task(work)
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=_LOOK)
            if stop is not None and stop.is_set() and not task.done():
                raise _StoppedError
        return task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
