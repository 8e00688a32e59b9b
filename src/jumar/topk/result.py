"""What goes into a selection, what comes out of it, and why: the rule, the cut, the runner-up, what truncated it.

Items and results are plain classes, not frozen ones: a frozen dataclass takes three times as long to make, and a search makes
thirty of them a query. Both compare by identity, because an item may be anything, an array too, and jumar never compares or
hashes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from jumar.core.text import plural

T = TypeVar("T")

_BAR = 32
_SHOWN = 30

Scale = Literal["similarity", "distance", "bm25", "rrf", "logit"]
"""What the scores are. ``similarity``: cosine or the like, about 0–1, a hair outside is fine; ``bm25``: 0 or more, no upper end;
``rrf``: sums of 1/(60 + rank); ``logit``: any number; ``distance``: 0 or more, and the smallest is best."""

Ties = Literal["split", "keep"]
"""What becomes of items with the score of one that is kept: ``split`` cuts where the rule says, ``keep`` keeps them too, up to
``max_k``."""

OnInvalid = Literal["raise", "drop"]
"""What becomes of scores that are NaN or infinite: an error that names the first, or the item is left out."""


class CutEvidence(NamedTuple):
    """What a rule looked at, for an explanation: one number for each place where the ranking could be cut.

    ``rule`` is a sentence for people. ``values[k]`` is how much speaks for keeping exactly ``k``, in the rule's own unit; more is
    stronger. ``threshold`` is what it is compared with, None where the largest wins; ``at_least`` says that everything from the
    threshold up is kept, instead of cutting at the first above it.
    """

    rule: str
    unit: str = ""
    values: Mapping[int, float] = MappingProxyType({})
    threshold: float | None = None
    at_least: bool = False


@dataclass(frozen=True)
class Stage:
    """What a stage did: how many it was given and how many it let through."""

    name: str
    given: int
    kept: int
    reason: str


@dataclass(frozen=True)
class Explanation:
    """Why so many. ``str()`` is for a terminal, :meth:`as_dict` is plain JSON.

    ``by_rule`` is how many the rule keeps without ``min_k`` and ties. ``truncated_by`` names what made it another number: with a
    larger ``max_k`` or without ``min_score`` more would be kept, with ``min_k`` 0 or ``ties="split"`` fewer; and ``budget`` and
    ``gate``. ``runner_up`` is the number that the rule would keep next, ``margin`` (0 or more) how far it was from that, in
    ``unit``; both None where there is no second, or where something else than the rule decided. ``scores`` are all that there
    were and ``kept_positions`` those kept; ``by_rule`` is None where only these are known.
    """

    method: str
    rule: str
    kept: int
    cutoff_score: float
    by_rule: int | None
    runner_up: int | None
    margin: float | None
    unit: str
    truncated_by: tuple[str, ...]
    scores: tuple[float, ...]
    kept_positions: tuple[int, ...]
    stages: tuple[Stage, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        found: dict[str, Any] = asdict(self)
        for name in ("truncated_by", "scores", "kept_positions", "stages"):
            found[name] = list(found[name])
        return found

    def __str__(self) -> str:
        of = f" of {plural(len(self.scores), 'item')}" if self.by_rule is not None else ""  # else nobody knows of how many
        lines = [f"{self.method} keeps {self.kept}{of}: {self.rule}"]
        if self.runner_up is not None and self.margin is not None:
            lines.append(f"runner-up: {self.runner_up}, a margin of {self.margin:.4g} in {self.unit}")
        if self.by_rule is not None and self.by_rule != self.kept:
            lines.append(f"the rule alone: {self.by_rule}")
        if self.truncated_by:
            lines.append(f"truncated by: {', '.join(self.truncated_by)}")
        lines += [f"{stage.name}: {stage.given} → {stage.kept}, {stage.reason}" for stage in self.stages]
        return "\n".join([*lines, *self.chart()])

    def chart(self) -> list[str]:
        """Return one line a score, the first 30 of them: a full bar is kept, a light one is not."""
        shown = self.scores[:_SHOWN]
        if not shown:
            return []
        low, high = min(0.0, *shown), max(0.0, *shown)
        kept = set(self.kept_positions)
        lines: list[str] = []
        for position, score in enumerate(shown):
            width = round((score - low) / (high - low) * _BAR) if high > low else 0
            bar = ("█" if position in kept else "░") * max(width, 1)
            lines.append(f"{position + 1:>4}  {score:>9.4f}  {bar}")
            if kept and position == max(kept) and position + 1 < len(self.scores):
                lines.append(f"{'':>4}  {'─' * 9}  {'─' * _BAR}")
        if len(self.scores) > _SHOWN:
            lines.append(f"      … and {len(self.scores) - _SHOWN} more")
        return lines


@dataclass(frozen=True)
class StagedBasis:
    """What a result of several stages was made from: the selector's own, and which of its items went on."""

    chosen: Any
    stages: tuple[Stage, ...]
    fitting: tuple[int, ...]


@dataclass(slots=True, eq=False)
class ScoredItem(Generic[T]):
    """An item with its score. The item is never looked at."""

    item: T
    score: float


@dataclass(slots=True, eq=False)
class SelectionResult(Generic[T]):
    """What was kept, best first, and why.

    ``cutoff_score`` is the worst kept score, 0.0 when nothing is kept. ``method`` is the strategy's name. ``metadata`` is plain
    JSON, with the keys that the strategy's page lists.
    """

    selected: list[ScoredItem[T]]
    cutoff_score: float
    method: str
    metadata: dict[str, Any]
    _basis: Any = field(default=None, repr=False)

    @property
    def abstained(self) -> bool:
        """True when nothing is kept: there was nothing, or ``min_k`` is 0 and nothing was good enough."""
        return not self.selected

    def explain(self) -> Explanation:
        """Return which rule made the cut, the runner-up, the margin and what truncated it; ``str()`` of it is for a terminal."""
        return _explain(self, self._basis)


# ------------------------------------------------------------------------------------------------------- explaining


def _explain(result: SelectionResult[Any], basis: Sequence[Any] | StagedBasis | None) -> Explanation:
    """Return the explanation of ``result``, made from ``basis``: strategy, scores, limits, ties and, if any, positions.

    What limits and minimum did is found by selecting again without each of them, never by guessing from the numbers.
    """
    if isinstance(basis, StagedBasis):
        return _explain_stages(result, basis)
    if basis is None:
        return _unknown(result)
    strategy, scores, max_k, min_k, ties, *rest = basis
    kept = len(result.selected)
    again = _Again(strategy, scores, max_k, min_k, ties)
    positions: tuple[int, ...] = tuple(rest[0]) if rest else tuple(range(kept))
    evidence = strategy.evidence(scores, max_k, 0)
    truncated_by = again.truncated(kept)
    by_rule = again.count(min_k=0, ties="split", max_k=len(scores) if "max_k" in truncated_by else max_k)
    runner_up, margin = (None, None) if evidence is None or by_rule != kept else _runner_up(evidence, kept, again)
    return Explanation(
        method=result.method,
        rule=_rule(result, evidence, again, kept, truncated_by),
        kept=kept,
        cutoff_score=result.cutoff_score,
        by_rule=by_rule,
        runner_up=runner_up,
        margin=margin,
        unit="" if evidence is None else evidence.unit,
        truncated_by=truncated_by,
        scores=tuple(float(again.sign * score) for score in scores),
        kept_positions=positions,
    )


@dataclass(frozen=True)
class _Again:
    """The selection that is explained, to be made again with one thing changed. ``scores`` descend, distances negated."""

    strategy: Any
    scores: Sequence[float]
    max_k: int
    min_k: int
    ties: Ties

    @property
    def sign(self) -> int:
        return -1 if self.strategy.scale == "distance" else 1

    @property
    def floor(self) -> float | None:
        """The lowest score that ``min_score`` lets through; None without a minimum."""
        least = getattr(self.strategy, "min_score", None)
        return self.sign * least if isinstance(least, (int, float)) else None

    @property
    def valid(self) -> int:
        """How many scores ``min_score`` lets through."""
        floor = self.floor
        return len(self.scores) if floor is None else sum(score >= floor for score in self.scores)

    def count(self, **changed: Any) -> int:
        """Return how many are kept with ``changed`` limits, ties or strategy."""
        now: dict[str, Any] = {"strategy": self.strategy, "max_k": self.max_k, "min_k": self.min_k, "ties": self.ties, **changed}
        items = [ScoredItem(None, self.sign * score) for score in self.scores]
        return len(now.pop("strategy").select(items, **now).selected)

    def truncated(self, kept: int) -> tuple[str, ...]:
        """Return what made the answer another one than the rule's: what would change it if it were not there."""
        found: list[str] = []
        if len(self.scores) > self.max_k and self.count(max_k=len(self.scores)) > kept:
            found.append("max_k")
        if self.valid < len(self.scores) and self.count(strategy=replace(self.strategy, min_score=None)) > kept:
            found.append("min_score")
        if self.count(min_k=0) != kept:
            found.append("min_k")
        if self.ties == "keep" and self.count(ties="split") < kept:
            found.append("ties")
        return tuple(found)


def _unknown(result: Any) -> Explanation:
    """Return what can be said of a result that does not know what it was selected from, as that of a strategy of your own."""
    scores = tuple(float(one.score) for one in result.selected)
    kept, by_rule = len(scores), None if scores else 0
    rule = f"{_words(result)}; what was left out is not known" if kept else "there was nothing to choose from"
    return Explanation(result.method, rule, kept, result.cutoff_score, by_rule, None, None, "", (), scores, tuple(range(kept)))


def _explain_stages(result: Any, basis: StagedBasis) -> Explanation:
    inner: Explanation = basis.chosen.explain()
    cutting = tuple(stage.name for stage in basis.stages if stage.name != "selector" and stage.kept < stage.given)
    same = len(result.selected) == inner.kept  # else the rule did not decide, and there is no number that came second
    return replace(
        inner,
        kept=len(result.selected),
        runner_up=inner.runner_up if same else None,
        margin=inner.margin if same else None,
        cutoff_score=result.cutoff_score,
        truncated_by=(*inner.truncated_by, *cutting),
        kept_positions=tuple(inner.kept_positions[position] for position in basis.fitting) if result.selected else (),
        stages=basis.stages,
    )


def _words(result: Any) -> str:
    reason = result.metadata.get("reason", "the strategy says no more")
    return str(reason).replace("_", " ")


def _rule(result: Any, evidence: CutEvidence | None, again: _Again, kept: int, truncated_by: tuple[str, ...]) -> str:
    """Return the rule that fired: the strategy's own, or the minimum where that came first."""
    valid, floor = again.valid, again.floor
    if floor is not None and valid < min(len(again.scores), again.max_k):
        least = f"min_score {again.sign * floor:g}"
        word = "at most" if again.sign < 0 else "at least"
        if evidence is None or not valid:
            who = f"only {valid} of {len(again.scores)} scores {'is' if valid == 1 else 'are'}" if valid else "no score is"
            end = f"; min_k {again.min_k} is kept all the same" if valid < kept else ", which leaves nothing to compare"
            return f"{who} {word} {least}{end}"
        if "min_score" in truncated_by and kept == valid and not _fired(evidence, kept):
            return f"scores of {word} {least}, which came before {evidence.rule}"
    return _words(result) if evidence is None else evidence.rule


def _fired(evidence: CutEvidence, kept: int) -> bool:
    """Return whether the rule itself cuts there."""
    value = evidence.values.get(kept)
    return evidence.threshold is None or evidence.at_least or (value is not None and value > evidence.threshold)


def _runner_up(evidence: CutEvidence, kept: int, again: _Again) -> tuple[int | None, float | None]:
    """Return the number that would have been kept next, and how far away it was; both None where there is none.

    ``kept`` is what the rule itself says. A margin is never below 0.
    """
    least, most = again.min_k, min(again.max_k, len(again.scores))
    threshold = evidence.threshold
    values = {k: value for k, value in evidence.values.items() if least <= k <= most}
    if evidence.at_least and threshold is not None:
        near: dict[int, float] = {}
        if kept in values and kept > least:  # it might have failed to reach the threshold
            near[kept - 1] = values[kept] - threshold
        if kept + 1 in values:  # it might have reached it
            near[kept + 1] = threshold - values[kept + 1]
        if not near:
            return None, None
        closest = min(near, key=near.__getitem__)
        return closest, near[closest]
    decisive = values.pop(kept, None)
    if not values:
        return None, None
    second = max(values, key=values.__getitem__)
    if threshold is None:
        return (None, None) if decisive is None else (second, decisive - values[second])
    # nothing was large enough to cut: how far the largest was from it
    margin = threshold - values[second] if decisive is None else decisive - threshold
    return (second, margin) if margin >= 0 and (decisive is None or margin) else (None, None)
