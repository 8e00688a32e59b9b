"""The cheap judge of a loop learns: after each iteration one step, from all that the expensive judge said so far.

What was learned lies with the iteration's logs, and is a function of the iterations before it and of its own verdicts: whoever
makes an iteration again after a kill gets the same. The next iteration goes on from the newest one that has a score. Nothing is
asked, and the configured patterns stay as they are.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from jumar.app.config.evaluator import JudgeOptions
from jumar.core.codec import FORMAT
from jumar.core.files import as_write_error, make_directory, read_bytes, replace_file
from jumar.core.leftovers import remove_tree
from jumar.core.redaction import current
from jumar.core.text import escape
from jumar.errors import ConfigError, StoreDamagedError
from jumar.judging.asking.settings import JudgeSettings
from jumar.judging.auto.escalation import AUDIT, CONFIDENCE, AutoRules
from jumar.judging.auto.results import AutoEvaluation
from jumar.judging.items.item import Item
from jumar.judging.rubric import StoryRubric, TextRubric, builtin_rubric
from jumar.learning.material import Profile
from jumar.learning.run.auto import Ask, decide, read_basis, trust_of
from jumar.loop.store.layout import LoopPaths, iteration_name, loops_directory
from jumar.model.judgement import LearnedSoFar
from jumar.model.protocols import Judge, StepContext

if TYPE_CHECKING:
    from jumar.judging.asking.summary import Result
    from jumar.judging.items.item import Item
    from jumar.judging.models import IterationMetrics
    from jumar.judging.rubric import StoryRubric, TextRubric
    from jumar.learning.material import Material
    from jumar.learning.online import GatheredItems, SeenItem
    from jumar.learning.state import Checkpoint
    from jumar.learning.step import IterationOutcome
    from jumar.loop.store.trust import MarkTrust

VERDICTS: Final = "verdicts.jsonl"
LEARNED: Final = "learned"
PATTERNS: Final = "patterns.json"
_SUMMARY: Final = "learned.json"
_log = logging.getLogger("jumar.judging")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Before:
    """What an earlier iteration left: its folder, the profile, where everything stands, the figures of the loop so far."""

    folder: Path
    profile: Profile
    homes: Mapping[str, int]
    history: tuple[IterationMetrics, ...]


class LoopLearning:
    """Learns in the folder ``folder`` of each iteration's logs, below the loops of ``root``.

    ``wanted`` is the profile, True for the best that is installed. ``patterns`` is the configured file, None for none.
    Errors: :class:`jumar.errors.ConfigError` that begins with ``where``, for a profile that is not installed.
    """

    def __init__(
        self,
        wanted: Literal[True] | Profile,
        *,
        root: Path,
        folder: str,
        patterns: Path | None,
        rubric: StoryRubric | TextRubric | None,
        where: str,
    ) -> None:
        fits = find_spec("sklearn") is not None
        if wanted == "evidence" and not fits:
            raise ConfigError(
                f"{where} learn: fitting weights needs scikit-learn: pip install 'jumar[learn]'; or learn = \"seed\""
            )
        self._fits = fits
        self._profile: Profile = ("evidence" if fits else "seed") if wanted is True else wanted
        self._root = root
        self._folder = folder
        self._patterns = patterns
        self._rubric: StoryRubric | TextRubric | None = rubric

    def patterns(self, context: StepContext) -> Path | None:
        """Return the set that the cheap judge of this iteration uses, None while nothing was learned."""
        folder = self._newest(context)
        return None if folder is None else folder / PATTERNS

    def learn(self, context: StepContext, items: Sequence[Item], results: Sequence[Result]) -> LearnedSoFar:
        """Keep the verdicts of an iteration, learn one step, and return what is known now.

        What an earlier iteration left is taken where jumar vouches for it. Errors: :class:`jumar.errors.StoreDamagedError` for
        files of one that cannot be read.
        """
        learned = self._learn(context, items, results)
        trust = self._trust(context)
        if trust is not None:
            trust.vouch(context.log_directory / self._folder, self._place(context.iteration))
        return learned

    def _learn(self, context: StepContext, items: Sequence[Item], results: Sequence[Result]) -> LearnedSoFar:
        from jumar.learning.online import gather

        own = context.log_directory / self._folder
        _write_verdicts(own / VERDICTS, items, results)
        with as_write_error("replace", own / LEARNED):
            remove_tree(own / LEARNED)  # of a try that was cut off
        before = self._before(context)
        profile = self._profile if before is None else before.profile
        if profile == "evidence" and not self._fits:
            return LearnedSoFar(profile=profile, waiting="fitting weights needs scikit-learn: pip install 'jumar[learn]'")
        gathered = gather(self._seen(context, own), {} if before is None else before.homes)
        left_out = sum(number == context.iteration for number, _ in gathered.left_out)
        sizes = LearnedSoFar(profile=profile, items=len(gathered.targets), groups=gathered.groups, left_out=left_out)
        if gathered.too_few:
            return replace(sizes, waiting=gathered.too_few)
        return self._step(context, gathered, before, sizes)

    # ------------------------------------------------------------------------------------------- earlier iterations

    def _logs(self, context: StepContext, number: int) -> Path:
        return LoopPaths(loops_directory(self._root) / context.loop_id).iteration(number) / "logs" / self._folder

    def _trust(self, context: StepContext) -> MarkTrust | None:
        from jumar.loop.store.loop_reader import LoopReader

        directory = loops_directory(self._root) / context.loop_id
        if not LoopPaths(directory).loop_json.exists():  # an evaluator that is asked outside of a loop
            return None
        return LoopReader(directory).trust

    def _place(self, number: int) -> str:
        return f"{iteration_name(number)}/{self._folder}"

    def _earlier(self, context: StepContext) -> Iterator[int]:
        """Yield the iterations that this one may know of, that have a score and whose files are jumar's, the newest first."""
        views = [view for view in context.history if view.number < context.iteration and view.score is not None]
        trust = self._trust(context)
        for number in sorted((view.number for view in views), reverse=True):
            folder = self._logs(context, number)
            if trust is None or not folder.is_dir() or trust.vouches(folder, self._place(number)):
                yield number
            else:
                _log.warning("jumar.learned_forged: %s was not written by jumar; nothing is learned from it", escape(str(folder)))

    def _newest(self, context: StepContext) -> Path | None:
        folders = (self._logs(context, number) / LEARNED for number in self._earlier(context))
        return next((folder for folder in folders if (folder / _SUMMARY).exists()), None)

    def _before(self, context: StepContext) -> _Before | None:
        from jumar.judging.models import IterationMetrics

        folder = self._newest(context)
        if folder is None:
            return None
        try:
            found = json.loads(read_bytes(folder / _SUMMARY))
            return _Before(
                folder=folder,
                profile="seed" if found["profile"] == "seed" else "evidence",
                homes={str(name): int(fold) for name, fold in found["homes"].items()},
                history=tuple(IterationMetrics.model_validate(one) for one in found["history"]),
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise _damaged(folder / _SUMMARY, error) from None

    def _seen(self, context: StepContext, own: Path) -> list[SeenItem]:
        """Return the verdicts of the newest iterations, the oldest first: as many as a step may learn from."""
        from jumar.learning.online import MOST

        found = [_read_verdicts(own / VERDICTS, context.iteration)]
        for number in self._earlier(context):
            if sum(map(len, found)) >= MOST:
                break
            found.append(_read_verdicts(self._logs(context, number) / VERDICTS, number))
        return [one for each in reversed(found) for one in each]

    # -------------------------------------------------------------------------------------------------- the step

    def _step(self, context: StepContext, gathered: GatheredItems, before: _Before | None, sizes: LearnedSoFar) -> LearnedSoFar:
        from jumar.learning.convergence import missing_checks, missing_words
        from jumar.learning.online import iteration_metrics
        from jumar.learning.step import converged, learn_once

        material = self._material(context, gathered, sizes.profile)
        checkpoint = self._known(material, before)
        if not checkpoint.tested:
            return replace(sizes, waiting="the cheap judge abstains from every item")
        learned = learn_once(checkpoint, material, iteration=context.iteration, now=material.made)
        history = () if before is None else before.history
        named = {own: name for (number, own), name in gathered.names.items() if number == context.iteration}
        metrics = iteration_metrics(learned, material, named, iteration=context.iteration, now=material.made, before=history)
        history = history if metrics is None else (*history, metrics)
        found: dict[str, Any] = {"converged": False} if metrics is None else converged(history, learned.checkpoint, material)[0]
        missing = missing_checks(found, history, learned.evidence.to_json(), fewest=material.min_iterations, growing=True)
        self._keep(context, learned, gathered, history, found, sizes.profile)
        statuses = [proposal.status for proposal in learned.checkpoint.state.proposals]
        return replace(
            sizes,
            patterns=learned.metrics.pattern_count,
            proposed=len(statuses),
            committed=statuses.count("validated"),
            rejected=statuses.count("rejected"),
            abs_gap=None if metrics is None else metrics.abs_gap,
            tracks=learned.metrics.tracks,
            rolled_back=bool(learned.metrics.regression_detected),
            converged=bool(found["converged"]),
            missing=missing_words(one.to_json() for one in missing),
            checks=dict(found["checks"]) if "checks" in found else {},
            set=f"logs/{self._folder}/{LEARNED}/{PATTERNS}",
        )

    def _material(self, context: StepContext, gathered: GatheredItems, profile: str) -> Material:
        from jumar.learning.material import Material
        from jumar.learning.proposals.candidates import by_terms
        from jumar.learning.set_building import AdditiveBuilder, ScorecardBuilder

        made = self._made(context)
        stories = all(target.item.story is not None for target in gathered.targets)
        kind = ("story" if stories else "text") if self._rubric is None else self._rubric.kind
        fitted = ScorecardBuilder(made=made, rubric="story" if kind == "story" else "text", robust=True)
        return Material(
            targets=gathered.targets,
            split=gathered.split,
            builder=fitted if profile == "evidence" else AdditiveBuilder(rubric=self._rubric),
            proposer=by_terms,
            made=made,
            rubric=self._rubric,
            profile="seed" if profile == "seed" else "evidence",
            robust=True,
            growing=True,
        )

    def _made(self, context: StepContext) -> datetime:
        """Return the date on what is learned: the loop's own, so that a step that is made again gives the same."""
        from jumar.judging.patterns.proposed import UNDATED
        from jumar.loop.store.loop_reader import LoopReader

        directory = loops_directory(self._root) / context.loop_id
        if not LoopPaths(directory).loop_json.exists():  # an evaluator that is asked outside of a loop
            return UNDATED
        return datetime.fromisoformat(LoopReader(directory).created_at)

    def _known(self, material: Material, before: _Before | None) -> Checkpoint:
        from jumar.judging.patterns.models import PatternSet
        from jumar.judging.patterns.storage import load_pattern_set
        from jumar.learning.online import extend_checkpoint
        from jumar.learning.state import read_checkpoint
        from jumar.learning.step import begin

        if before is not None:
            return extend_checkpoint(read_checkpoint(before.folder), material)
        start = PatternSet(version="2.0", patterns=[]) if self._patterns is None else load_pattern_set(self._patterns)
        return begin(start, material)

    def _keep(
        self,
        context: StepContext,
        learned: IterationOutcome,
        gathered: GatheredItems,
        history: Sequence[IterationMetrics],
        found: Mapping[str, Any],
        profile: str,
    ) -> None:
        """Write what was learned; the summary last, because where it is the rest is."""
        from jumar.learning.run.learn import write_set
        from jumar.learning.state import write_checkpoint

        folder = context.log_directory / self._folder / LEARNED
        with as_write_error("create", folder):
            make_directory(folder)
        write_set(learned.checkpoint.state.patterns, folder / PATTERNS)
        write_checkpoint(learned.checkpoint, folder)
        document = {
            "format": FORMAT,
            "iteration": context.iteration,
            "profile": profile,
            "actions": list(learned.actions),
            "convergence": dict(found),
            "history": [metrics.model_dump(mode="json") for metrics in history],
            "homes": dict(gathered.homes),
        }
        replace_file(folder / _SUMMARY, _bytes(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)) + b"\n")


def _write_verdicts(path: Path, items: Sequence[Item], results: Sequence[Result]) -> None:
    from jumar.judging.models import ExpensiveModeResult
    from jumar.learning.online import shorten_verdict

    by_id = {result.story_id: shorten_verdict(result) for result in results if isinstance(result, ExpensiveModeResult)}
    lines: list[str] = []
    for item in items:
        if item.id in by_id:
            seen = {name: getattr(item, name) for name in ("id", "text", "prompt", "group", "context")}
            story = None if item.story is None else item.story.model_dump(mode="json")
            line = {**seen, "story": story, "result": by_id[item.id].model_dump(mode="json")}
            lines.append(json.dumps(line, ensure_ascii=False) + "\n")
    replace_file(path, _bytes("".join(lines)))


def _read_verdicts(path: Path, iteration: int) -> list[SeenItem]:
    """Return the verdicts of an iteration; none where it kept none, as those before the loop learned."""
    from jumar.judging.items.item import Item
    from jumar.judging.models import ExpensiveModeResult, Story
    from jumar.learning.online import SeenItem

    found: list[SeenItem] = []
    try:
        for line in read_bytes(path).split(b"\n")[:-1]:
            entry = json.loads(line.decode("utf-8", "surrogatepass"))
            story = None if entry["story"] is None else Story.model_validate(entry["story"])
            seen = {name: entry[name] for name in ("id", "text", "prompt", "group", "context")}
            found.append(SeenItem(iteration, Item(**seen, story=story), ExpensiveModeResult.model_validate(entry["result"])))
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(path, error) from None
    return found


def _bytes(text: str) -> bytes:
    """Return the bytes that are kept: without secrets, so that whoever reads them again learns from the same."""
    return current().redact_bytes(text.encode("utf-8", "surrogatepass"))


def _damaged(path: Path, error: Exception) -> StoreDamagedError:
    return StoreDamagedError(
        f"{escape(str(path))} is damaged ({escape(f'{type(error).__name__}: {error}')[:100]}); "
        "restore it from a backup, or resume with learn = false"
    )


_RESULT = "result.json"


class LoopAuto:
    """A set with its proof and the rules of escalation. Errors: those of :func:`jumar.learning.run.auto.read_basis`.

    ``rubric`` None is the built-in one of the kind that was proven.
    """

    def __init__(self, options: JudgeOptions, patterns: Path, proof: Path, rubric: StoryRubric | TextRubric | None) -> None:
        self._basis = read_basis(patterns, proof)
        self._proof = proof
        self.rubric = rubric or builtin_rubric(self._basis.proof.rubric.kind)
        self.evaluator = self._basis.evaluator(self.rubric)
        self._rules = AutoRules(
            line=options.decision_line or 0.0,
            confidence=CONFIDENCE if options.confidence is None else options.confidence,
            audit=AUDIT if options.audit is None else options.audit,
            seed=options.audit_seed or 0,
        )
        self._judge_known = False

    def check_judge(self, judge: Judge, settings: JudgeSettings) -> None:
        """Refuse another judge than the one that was proven. Errors: :class:`jumar.errors.ConfigError`."""
        self._judge_known = self._basis.check_judge(judge, self.rubric, settings)

    def warnings(self) -> tuple[str, ...]:
        """What a person should know before a run: that the cheap judge will decide nothing, and that it can be gamed.

        Each is what is so, a semicolon, and what to do about it.
        """
        trust = trust_of(self._basis, self._rules, datetime.now(UTC), judge_known=self._judge_known)
        shown = escape(str(self._proof))
        found = [
            f"mode auto: {shown}: {reason}, so the cheap judge decides nothing and the judge is asked about every item; "
            "prove the set again with `jumar prove OUT`, learn from more items, or take mode = 'expensive', which costs the same"
            for reason in trust.reasons
        ]
        return (*found, *gaming_warnings(self._proof, "auto"))

    async def decide(self, items: Sequence[Item], ask: Ask) -> AutoEvaluation:
        """Return what became of the items, at the time of the call."""
        return await decide(
            items, self._basis, self.evaluator, self._rules, datetime.now(UTC), ask, judge_known=self._judge_known
        )


def _probes(path: Path) -> dict[str, Any] | None:
    """Return the probes of a learning run's result; None where there is none that can be read."""
    try:
        found = json.loads(read_bytes(path))["probes"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not isinstance(found, dict):
        return None
    known = cast("dict[str, Any]", found)
    return known if isinstance(known.get("passed"), bool) else None


def gaming_warnings(file: Path, mode: str) -> list[str]:
    """Return what the probes of the run that wrote ``file`` say of its set: a generator is rewarded for what raises the score.

    The probes are in ``result.json`` beside it. Each is what is so, a semicolon, and what to do about it.
    """
    path = file.with_name(_RESULT)
    probes = _probes(path)
    if probes is None:
        unknown = f"mode {mode}: whether the set of {escape(str(file))} can be gamed is not known"
        return [f"{unknown}: no {_RESULT} with probes lies beside it; name the file in the folder where `jumar learn` wrote it"]
    if probes.get("passed") is not False:
        return []
    single = cast("dict[str, Any]", probes.get("probes") or {})
    failed = [name.replace("_", " ") for name, one in single.items() if not one.get("passed", True)]
    probe = ", ".join(map(escape, failed)) or "a probe"
    gamed = f"mode {mode}: the set can be gamed, says {escape(str(path))}: {probe} raised the cheap score of real items"
    more = "raise audit, " if mode == "auto" else ""
    way = f"a loop rewards what raises it, so keep the set out of the generator's reach, {more}or take mode = 'expensive'"
    return [f"{gamed}; {way}"]
