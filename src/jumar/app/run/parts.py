"""From the configuration's tables to programs: the generator, the checks, the scorers and the memory."""

from __future__ import annotations

import math
import re
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jumar.app.config.config import JumarConfig, ScorerConfig, ValidatorConfig
from jumar.app.config.tables import MemoryConfig, load_function, load_prices
from jumar.app.run.evaluator import Evaluators, Place
from jumar.errors import ConfigError
from jumar.loop.checks.validators import CommandValidator, PythonValidator
from jumar.loop.generators.carry_over import SummarisingGenerator
from jumar.loop.generators.generators import CommandGenerator, CumulativeGenerator, PricedGenerator, PythonGenerator
from jumar.loop.generators.memory import Memory, Note
from jumar.loop.generators.workdir import WorkdirGenerator
from jumar.loop.hooks import Hooks
from jumar.loop.scorers import JudgeScorer, RepeatedScorer, ScorerRuntime, build_scorer
from jumar.loop.settings import LoopParts
from jumar.model.protocols import Generator, Scorer, Validator
from jumar.processes.control import StopSwitch
from jumar.processes.sandbox import Sandbox

if TYPE_CHECKING:
    from jumar.topk.config import RetrievalConfig

_PACKAGES = Path(__file__).resolve().parents[2]  # where jumar is imported from


def build_parts(
    config: JumarConfig, base: Path, switch: StopSwitch, *, root: Path | None = None, since: int | None = None
) -> LoopParts:
    """Return the programs of ``config``; ``base`` is the directory of its file. Errors: :class:`jumar.errors.ConfigError`.

    Without scorers and without an evaluator the share of checks that pass is the score. ``root`` holds the loops, and the replies
    of judges; without it none are kept. ``since`` is when programs of the loop ran first, None for not yet.
    """
    prices = load_prices(config.budget, base)
    generator = _generator(config, base, switch, root)
    if config.generator.usage_is == "cumulative":
        generator = CumulativeGenerator(generator=generator)
    evaluators = Evaluators(Place(base=base, root=root, stop=switch.immediate, prices=prices, since=since))
    scorers = config.scorers or ([ScorerConfig(builtin="checks")] if config.evaluator is None else [])
    runtime = ScorerRuntime(stop=switch.immediate, search=(base.resolve(),), evaluators=evaluators.of_options)
    judged = () if config.evaluator is None else evaluators.scorers(config.evaluator)
    generator = PricedGenerator(
        generator=generator, table=prices, model=config.budget.model, wanted=config.budget.max_cost_usd is not None
    )
    if config.memory.summarise is not None:
        generator = SummarisingGenerator(generator, config.memory.summarise, switch.immediate)
    return LoopParts(
        generator=generator,
        validators=tuple(_validator(validator, base, switch) for validator in config.validators),
        scorers=(*(_scorer(scorer, runtime) for scorer in scorers), *judged),
        memory=build_memory(config.memory, base),
        hooks=Hooks(setup=config.loop.hook("setup"), reset=config.loop.hook("reset"), stop=switch.immediate),
        holdout=tuple(_scorer(scorer, runtime) for scorer in (() if config.holdout is None else config.holdout.scorers)),
        generator_timeout=config.generator.timeout,
        evaluation_timeout=sum(each.timeout for each in (*config.validators, *scorers)),
        output_tells=bool(config.generator.usage),
    )


def evaluator_warnings(parts: LoopParts) -> tuple[str, ...]:
    """Return what the evaluators have to say before a run, each once: what is so, a semicolon, and what to do about it."""
    judging = (scorer for scorer in (*parts.scorers, *parts.holdout) if isinstance(scorer, JudgeScorer))
    return tuple(dict.fromkeys(warning for scorer in judging for warning in getattr(scorer.shared.evaluator, "warnings", ())))


def sandbox_of(config: JumarConfig, base: Path, root: Path | None) -> Sandbox | None:
    """Return the sandbox that the configuration asks for; None when it asks for none."""
    if config.loop.isolation != "sandbox":
        return None
    return Sandbox(
        root=(root or base / ".jumar").absolute(),
        writable=tuple((base / Path(path).expanduser()).absolute() for path in config.loop.sandbox_writable),
        readable=(Path(sys.prefix), Path(sys.base_prefix), _PACKAGES, base.resolve()),
        network=config.loop.network,
    )


def _generator(whole: JumarConfig, base: Path, switch: StopSwitch, root: Path | None) -> Generator:
    config = whole.generator
    if config.builtin is not None:
        return WorkdirGenerator(
            source=whole.directory(base), rules=whole.artifacts.rules(None), root=(root or base / ".jumar").absolute()
        )
    sandbox = sandbox_of(whole, base, root)
    wrap = None if sandbox is None else sandbox.wrap
    if config.python is not None:
        search = (base.resolve(),)
        return PythonGenerator(config.python, search=search, timeout=config.timeout, stop=switch.immediate, wrap=wrap)
    return CommandGenerator(
        config.command or "",
        timeout=config.timeout,
        usage_map=config.usage,
        stdin=config.stdin,
        completion_promise=config.completion_promise,
        stop=switch.immediate,
        wrap=wrap,
        resume_command=config.resume_command,
    )


def _validator(config: ValidatorConfig, base: Path, switch: StopSwitch) -> Validator:
    if config.python is not None:
        search = (base.resolve(),)
        return PythonValidator(config.name, config.python, search=search, timeout=config.timeout, stop=switch.immediate)
    return CommandValidator(
        config.name,
        config.command or "",
        timeout=config.timeout,
        baseline=config.baseline,
        junit=config.junit,
        failures=config.failures,
        known=config.known,
        stop=switch.immediate,
    )


def _scorer(config: ScorerConfig, runtime: ScorerRuntime) -> Scorer:
    kind = config.builtin or ("python" if config.python is not None else "command")
    given = config.model_dump(include={"command", "python", "timeout"}, exclude_unset=True, exclude_none=True)
    repeat = 1 if config.repeat is None else config.repeat
    if kind == "judge" and config.repeat is not None:  # readings of each item, by the judge itself
        given["repeat"], repeat = repeat, 1
    scorer = build_scorer(kind, {**given, **config.options}, dimension=config.dimension, runtime=runtime)
    return scorer if repeat == 1 else RepeatedScorer(scorer, repeat, stop=runtime.stop)


Embedder = Callable[[list[str]], Sequence[Sequence[float]]]

_WIDTH: Final = 1024
_WORD: Final = re.compile(r"[^\W_]+")


def build_memory(config: MemoryConfig, base: Path) -> Memory | None:
    """Return the memory of a loop, None when it is off. Errors: :class:`jumar.errors.ConfigError`."""
    if not config.enabled:
        return None
    if find_spec("numpy") is None:
        raise ConfigError("[memory] searches with numpy: pip install 'jumar[topk]', or set enabled = false")
    embed: Embedder = embed_words
    if config.embedder != "words":
        embed = load_function(config.embedder, base, key="[memory] embedder", takes="a list of texts and returns their vectors")
    return NoteMemory(embed=embed, config=config.retrieval(), everywhere=config.loops == "all")


@dataclass(frozen=True, slots=True)
class NoteMemory:
    """Finds notes by the cosine of their embeddings with the question's, and keeps those that the scores speak for.

    A text is embedded once, as long as it stays among the notes: a real model takes its time, or money.
    """

    embed: Embedder
    config: RetrievalConfig
    everywhere: bool = True
    _vectors: dict[str, Sequence[float]] = field(default_factory=dict[str, Sequence[float]], repr=False, compare=False)

    def recall(self, query: str, notes: Sequence[Note], *, turn: str) -> Sequence[Note]:
        """Return the notes that fit, best first; none without notes, and none that the embedder knows nothing of."""
        from jumar.topk.retrieval import retrieve_sync
        from jumar.topk.vector_store import NumpyVectorStore

        if not notes:
            return []
        new = list(dict.fromkeys(note.text for note in notes if note.text not in self._vectors))
        asked, *vectors = self.embed([query, *new])
        embedded = {**self._vectors, **dict(zip(new, vectors, strict=True))}
        self._vectors.clear()
        self._vectors.update((note.text, embedded[note.text]) for note in notes)
        known = [(note, self._vectors[note.text]) for note in notes if any(self._vectors[note.text])]
        if not known or not any(asked):
            return []
        store = NumpyVectorStore[Note]()
        store.add([note for note, _ in known], [list(vector) for _, vector in known])
        result = retrieve_sync("memory", asked, store, self.config, turn=turn)
        return [one.item for one in result.selected]


def embed_words(texts: list[str]) -> list[list[float]]:
    """Return vectors of hashed words and of the beginnings of long ones; a text without words is all zeros.

    No model and no meaning: "slow" and "takes long" have nothing in common. Enough where notes name the same checks and files.
    """
    vectors: list[list[float]] = []
    for text in texts:
        words = _WORD.findall(text.lower())
        counts = Counter([*words, *(f"{word[:5]}…" for word in words if len(word) > 5)])
        vector = [0.0] * _WIDTH
        for word, count in counts.items():
            vector[zlib.crc32(word.encode("utf-8", "surrogatepass")) % _WIDTH] += 1 + math.log(count)
        vectors.append(vector)
    return vectors
