"""Learning, proving and mode auto for Python programs: what the commands do, with their options as keywords."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

from jumar.core.text import escape
from jumar.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from jumar.judging.asking.settings import JudgeConfig
    from jumar.judging.auto.results import AutoEvaluation
    from jumar.judging.proofs import Proof
    from jumar.learning.proof.make import Verification
    from jumar.learning.proposals import ProposerName
    from jumar.learning.run.prove import Proving
    from jumar.learning.run.request import LearnResult

AnyPath = str | PathLike[str]


class Asking(TypedDict, total=False):
    """How the expensive judge is asked, as the options of ``jumar evaluate``.

    ``price`` is of a million tokens, in and out; ``cache`` the folder of replies (none are kept without one); without ``reasons``
    the score alone is asked for.
    """

    repeat: int | None
    max_cost: float | None
    reserve_cost: float | None
    price: tuple[float, float] | None
    concurrency: int
    timeout: float
    max_retries: int
    backoff_base: float
    max_unscored: float
    judge_scale: tuple[float, float] | None
    max_tokens: int
    reasons: bool
    cache: AnyPath | None


def learn(
    items: AnyPath,
    judge: str,
    output: AnyPath,
    *,
    group: str | None = None,
    fields: Mapping[str, str] | None = None,
    rubric: str | None = None,
    patterns: AnyPath | None = None,
    heldout: float = 0.4,
    seed: int = 0,
    max_iterations: int = 10,
    min_iterations: int = 2,
    profile: Literal["evidence", "seed"] = "evidence",
    propose: ProposerName = "terms",
    robust: bool = False,
    **asking: Unpack[Asking],
) -> LearnResult:
    """Learn a cheap judge as ``jumar learn`` does: until it has arrived, within the budget, into ``output``.

    ``judge`` is a spec such as ``openai:MODEL``; ``group`` the key of what belongs together, ``fields`` our names to the records'
    keys. ``robust`` is for a set that a loop optimises against. Called again it resumes. ``document()`` of the result
    is what ``--json`` prints; ``summary`` is None where there is no verdict.

    Not to be called where an event loop is running. Errors: those of :func:`jumar.learning.run.learn.learn`,
    :class:`jumar.errors.ConfigError` for an option that is out of range.
    """
    from jumar.learning.run.learn import learn as run
    from jumar.learning.run.request import LearnRequest
    from jumar.processes.control import StopSwitch

    reasons = asking.get("reasons", True)
    _refuse("profile", profile, allowed=profile in {"evidence", "seed"}, wanted="'evidence' or 'seed'")
    _refuse("propose", propose, allowed=propose in {"terms", "judge"}, wanted="'terms' or 'judge'")
    _refuse("propose", propose, allowed=reasons or propose == "terms", wanted="'terms' where the judge gives no reasons")
    _refuse("heldout", heldout, allowed=0.1 <= heldout <= 0.9, wanted="a share from 0.1 to 0.9")
    _refuse("max_iterations", max_iterations, allowed=max_iterations >= 1, wanted="1 or more")
    fits = 2 <= min_iterations <= max(2, max_iterations)
    _refuse("min_iterations", min_iterations, allowed=fits, wanted="from 2 to max_iterations")
    request = LearnRequest(
        items=Path(items),
        output=Path(output),
        judge=judge_config(judge, asking),
        fields=named_fields({**(fields or {}), **({} if group is None else {"group": group})}),
        patterns=None if patterns is None else Path(patterns),
        rubric=rubric,
        heldout=heldout,
        seed=seed,
        max_iterations=max_iterations,
        min_iterations=min_iterations,
        profile=profile,
        proposer=propose,
        robust=robust,
    )
    return run(request, switch=StopSwitch())


def prove(output: AnyPath, *, max_cost: float | None = None, extra_look: bool = False) -> Proving:
    """Hold the set in ``output`` against its held-out items, with the judge and options of the learning run: a counted look.

    ``proof`` of the result has the verdict and its figures; ``proof.json`` is written. Not to be called where an event loop is
    running. Errors: those of :func:`jumar.learning.run.prove.prove`, :class:`jumar.errors.UsageError` for a folder of
    something else.
    """
    from jumar.judging.asking.settings import JudgeConfig
    from jumar.learning.run.prove import prove as run
    from jumar.learning.run.request import ProveRequest, recall, recorded_options

    known = recall(Path(output))
    if not known:
        raise UsageError(f"{escape(str(output))} does not say what it was learned from; name the folder that learn() wrote")
    asked = {**recorded_options(known), "max_cost": max_cost}
    request = ProveRequest(
        output=Path(output),
        items=Path(known["items"]),
        judge=JudgeConfig.of(known["judge"], asked, explain=known["explain"], cache=known.get("cache")),
        fields=known["fields"],
        rubric=known.get("rubric"),
        extra_look=extra_look,
    )
    return run(request, datetime.now(UTC))


def verify_proof(
    proof: AnyPath,
    *,
    items: AnyPath | None = None,
    patterns: AnyPath | None = None,
    rubric: str | None = None,
    fields: Mapping[str, str] | None = None,
) -> tuple[Proof, Verification]:
    """Compute everything in a proof again, offline; with ``items`` and ``patterns`` also what follows from the texts.

    ``holds`` of the verification says whether it all agrees, ``problems`` what does not. Errors: those of
    :func:`jumar.learning.run.prove.verify_file`.
    """
    from jumar.learning.run.prove import verify_file

    return verify_file(
        Path(proof),
        items=None if items is None else Path(items),
        patterns=None if patterns is None else Path(patterns),
        rubric=rubric,
        fields=fields,
    )


def evaluate_auto(
    items: AnyPath,
    judge: str,
    *,
    patterns: AnyPath,
    proof: AnyPath,
    decision_line: float,
    confidence: float = 0.9,
    audit: float = 0.05,
    audit_seed: int = 0,
    audits: AnyPath | None = None,
    fields: Mapping[str, str] | None = None,
    rubric: str | None = None,
    **asking: Unpack[Asking],
) -> AutoEvaluation:
    """Decide about every item as ``jumar evaluate --mode auto`` does: cheaply where that is proven and certain.

    ``outcome`` of the result has each item's decision, the corrected average and the guarantee; ``document()`` is what
    ``--json`` prints. Not to be called where an event loop is running. Errors: those of
    :func:`jumar.learning.run.auto.evaluate_auto`, :class:`jumar.errors.ConfigError` for a line or share that is out of range.
    """
    from jumar.judging.auto.escalation import AutoRules
    from jumar.judging.auto.results import AutoRequest
    from jumar.judging.expensive import JudgedRequest
    from jumar.learning.run.auto import evaluate_auto as run

    judged = JudgedRequest(
        items=Path(items),
        mode="expensive",
        judge=judge_config(judge, asking),
        fields=named_fields(fields),
        patterns=Path(patterns),
        rubric=rubric,
    )
    rules = AutoRules(line=decision_line, confidence=confidence, audit=audit, seed=audit_seed)
    log = None if audits is None else Path(audits)
    request = AutoRequest(judged=judged, patterns=Path(patterns), proof=Path(proof), audits=log, rules=rules)
    return run(request, datetime.now(UTC))


def named_fields(fields: Mapping[str, str] | None) -> Mapping[str, str]:
    """Return our names to the records' keys, checked. Errors: :class:`ConfigError`."""
    from jumar.judging.items.records import field_map

    return field_map([f"{name}={key}" for name, key in (fields or {}).items()])


def _refuse(name: str, value: object, *, allowed: bool, wanted: str) -> None:
    if not allowed:
        raise ConfigError(f"{name} = {value!r} should be {wanted}")


def judge_config(spec: str, asking: Asking) -> JudgeConfig:
    """Return the judge, and how it is asked. Errors: ``TypeError`` for another keyword, :class:`ConfigError`."""
    from jumar.judging.asking.settings import JudgeConfig

    unknown = [name for name in asking if name not in Asking.__annotations__]
    if unknown:
        raise TypeError(f"there is no keyword '{unknown[0]}'; of the judge there are {', '.join(Asking.__annotations__)}")
    cache = asking.get("cache")
    return JudgeConfig.of(spec, asking, explain=asking.get("reasons", True), cache=None if cache is None else Path(cache))
