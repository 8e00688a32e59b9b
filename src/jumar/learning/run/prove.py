"""``jumar prove``: the final set of a learning run against the held-out items, and the checks of a proof that is there."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from jumar.core.files import as_write_error, replace_file
from jumar.core.lock import LoopLock, who_holds
from jumar.core.text import escape
from jumar.errors import ConfigError, ConflictError, EvaluationUnreliableError, ItemError, JumarError, LockedError, NotFoundError
from jumar.judging.asking.call_log import FILE as CALLS
from jumar.judging.asking.call_log import CallLog
from jumar.judging.asking.settings import MAX_UNSCORED
from jumar.judging.dual import require_statistics
from jumar.judging.items.item import Item, digest_of, patterns_digest
from jumar.judging.items.records import read_items
from jumar.judging.judges import make_judge
from jumar.judging.patterns.models import PatternSet
from jumar.judging.patterns.storage import load_pattern_set, read_pattern_set
from jumar.judging.proofs import Proof, ProofJudge, read_proof
from jumar.judging.rubric import StoryRubric, TextRubric, builtin_rubric, kind_of_items, load_rubric
from jumar.learning.proof.evidence import heldout_of
from jumar.learning.proof.make import Verification, make_proof, verify_proof
from jumar.learning.proof.split import Part, Split, tie_copies
from jumar.learning.run.holdout_access import FILE as LOOKS
from jumar.learning.run.holdout_access import count_look, look_known, record_seen
from jumar.learning.run.request import LOOP, RESULT, ROOT, ProveRequest
from jumar.learning.run.verdicts import FILE as VERDICTS
from jumar.learning.run.verdicts import Hear, JudgeAccess, Verdicts
from jumar.loop.store.layout import LoopPaths, loops_directory

PROOF: Final = "proof.json"
_SPLIT, _PATTERNS, _LOCK = "split.json", "patterns.json", ".prove.lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proving:
    """A proof that was made, where it is, and what the judge was paid for it; ``cost_usd`` is None when nobody knows."""

    proof: Proof
    path: Path
    calls: int
    cost_usd: float | None

    @property
    def heldout(self) -> dict[str, Any]:
        """What ``jumar learn --json`` calls so."""
        return heldout_of(self.proof.statistics)


def rubric_of_items(spec: str | None, items: Sequence[Item]) -> StoryRubric | TextRubric:
    """Return the rubric that ``spec`` names; for None the built-in one of the first item's kind. Errors: :class:`ConfigError`."""
    return load_rubric(spec) or builtin_rubric("story" if items and items[0].story is not None else "text")


def look_subject(patterns: str, split: str, judge: ProofJudge, rubric: str) -> dict[str, Any]:
    """Return all that decides what a look at the held-out items shows, by hashes."""
    return {"patterns": patterns, "split": split, "judge": digest_of(judge.model_dump(mode="json")), "rubric": rubric}


def prove(request: ProveRequest, now: datetime, hear: Hear | None = None, *, stop: Callable[[], bool] = lambda: False) -> Proving:
    """Count a look, judge the held-out items, and write ``proof.json``.

    Scores are those of ``verdicts.jsonl``; what is missing there is asked, and kept there. ``stop`` ends the asking. Errors:
    :class:`jumar.errors.ConfigError` of judge, rubric and files, :class:`ItemError` for other items than those that were split,
    :class:`jumar.errors.ConflictError` for a look beyond the plan, all before anything is asked; those of the judge.
    """
    require_statistics()
    split = _split(request.output)
    patterns = read_pattern_set(request.output / _PATTERNS)
    items = _items(request)
    split.check(items)
    judge = make_judge(request.judge.spec, max_tokens=request.judge.max_tokens)
    durable = not getattr(judge, "recorded", False)
    reserve = request.judge.settings.reserve_cost
    with _ended(request.output), CallLog(request.output / CALLS, "prove", reserve=reserve, durable=durable) as calls:
        asking = JudgeAccess(
            judge=judge,
            question=rubric_of_items(request.rubric, items).judge,
            settings=request.judge.settings,
            cache=request.judge.cache,
            prices=request.judge.prices,
            stop=stop,
            calls=calls,
        )
        proven = prove_set(request, patterns, split, items, Verdicts(request.output / VERDICTS, asking), now, hear)
        calls.done()
        return proven


def prove_set(
    request: ProveRequest,
    patterns: PatternSet,
    split: Split,
    items: Sequence[Item],
    verdicts: Verdicts,
    now: datetime,
    hear: Hear | None = None,
    *,
    parts: Sequence[Part] = ("open", "sealed"),
) -> Proving:
    """Do what :func:`prove` does, with what its caller has read already.

    Only items of these ``parts`` are asked about.
    """
    rubric = rubric_of_items(request.rubric, items)
    claims = verdicts.claims
    sealed, opened = split.part(items, "sealed"), split.part(items, "open")
    before = verdicts.targets(sealed)
    subject = look_subject(patterns_digest(patterns), digest_of(split.to_json()), claims, rubric.digest)
    looks, first = count_look(
        request.output,
        subject,
        at=now,
        extra=request.extra_look,
        known=verdicts.digest(sealed),
        told=_told(request.output / PROOF),
    )
    asked = [split.part(items, part) for part in parts]
    verdicts.ask(*asked, max_cost=request.judge.settings.max_cost, hear=hear)
    targets = {part: verdicts.targets(one) for part, one in (("sealed", sealed), ("opened", opened))}
    for part, one in (("sealed", sealed), ("opened", opened)):
        if len(targets[part]) < (1 - min(MAX_UNSCORED, request.judge.settings.max_unscored)) * len(one):
            raise EvaluationUnreliableError(
                f"the judge scored {len(targets[part]):,} of {len(one):,} {part} items"
                f"{'' if verdicts.stopped is None else f' ({verdicts.stopped})'}; a proof would be of another kind of "
                "items. Run it again: what was answered is kept, and it is the same evaluation"
            )
    record_seen(request.output, subject, verdicts.digest(sealed) or "")
    proof = make_proof(
        sealed=targets["sealed"],
        opened=targets["opened"],
        split=split,
        patterns=patterns,
        rubric=rubric,
        judge=claims,
        looks=looks,
        created_at=first if before else now,  # verdicts that were there are no younger for being looked at again
        seed=split.seed,
        unscored=len(sealed) - len(targets["sealed"]),
        unscored_open=len(opened) - len(targets["opened"]),
    )
    path = request.output / PROOF
    with as_write_error("write", path):
        replace_file(path, proof.to_bytes())
    return Proving(proof=proof, path=path, calls=verdicts.calls.calls, cost_usd=verdicts.calls.total_usd)


def _told(path: Path) -> int:
    """Return which look the last proof tells of, 0 where there is none that can be read."""
    try:
        return read_proof(path).looks.number
    except JumarError:
        return 0


@contextlib.contextmanager
def _ended(output: Path) -> Generator[None]:
    """Hold what keeps others from proving at the same time; of a run of learning, once it has ended.

    Errors: :class:`jumar.errors.LockedError`, :class:`jumar.errors.ConflictError` for a run that has not ended.
    """
    paths = LoopPaths(loops_directory(output / ROOT) / LOOP)
    shown = escape(str(output))
    if paths.loop_json.is_file():
        if who_holds(paths.lock) is not None:
            raise LockedError(f"{shown} is being learned into; `jumar learn` proves at its end")
        if not (output / RESULT).exists():
            raise ConflictError(
                f"the run of learning in {shown} has not ended, and an evaluation on the held-out items would be wasted: "
                "the same `jumar learn` command resumes it, and proves at its end"
            )
    with LoopLock(output.resolve() / _LOCK, what=f"the proof of {shown}"):
        yield


def _split(output: Path) -> Split:
    path = output / _SPLIT
    try:
        return Split.from_json(path.read_bytes(), str(path))
    except OSError as error:
        raise ConfigError(
            f"{escape(str(path))} cannot be read ({error.strerror}); name the folder that `jumar learn` wrote with -o"
        ) from error


def _items(request: ProveRequest) -> list[Item]:
    kind = kind_of_items(load_rubric(request.rubric))
    return list(tie_copies(list(read_items(request.items, request.fields, kind=kind))).items)


# --------------------------------------------------------------------------------------------------------- verification


def verify_file(
    path: Path,
    *,
    items: Path | None = None,
    patterns: Path | None = None,
    rubric: str | None = None,
    fields: Mapping[str, str] | None = None,
) -> tuple[Proof, Verification]:
    """Read a proof and verify it offline, with the items and the patterns where they are given.

    Errors: those of the files; :class:`jumar.errors.StoreDamagedError` for what is no proof.
    """
    require_statistics()
    proof = read_proof(path)
    known = None if patterns is None else load_pattern_set(patterns)
    chosen = load_rubric(rubric) or (builtin_rubric(proof.rubric.kind) if proof.rubric.name == proof.rubric.kind else None)
    if items is None:
        return proof, _with_looks(path, proof, verify_proof(proof, patterns=known, rubric=chosen))
    listed = list(read_items(items, fields or {}, kind="story" if proof.rubric.kind == "story" else None))
    if not listed:
        raise ItemError(f"{escape(str(items))}: there are no items in it; give the file that was learned from")
    if known is not None and chosen is None:
        raise ConfigError(f"the proof was made with the rubric '{escape(proof.rubric.name)}'; give its file with --rubric")
    return proof, _with_looks(path, proof, verify_proof(proof, items=listed, patterns=known, rubric=chosen))


def _with_looks(path: Path, proof: Proof, found: Verification) -> Verification:
    """Compare the number of the look with those that were written down, where their file lies beside the proof."""
    subject = look_subject(proof.patterns.hash, proof.split.hash, proof.judge, proof.rubric.hash)
    try:
        number = look_known(path.parent, subject)
    except NotFoundError:
        return replace(found, not_checked=(*found.not_checked, f"which evaluation it was: {LOOKS} is not beside the proof"))
    step = f"the number of the evaluation, in {LOOKS}"
    checked = replace(found, checked=(*found.checked, step))
    if number == proof.looks.number:
        return checked
    known = "none at this set with this judge" if number is None else f"number {number}"
    problem = f"looks.number: {proof.looks.number} in the proof; {LOOKS} beside it has {known}"
    return replace(checked, problems=(*found.problems, problem), differing=(*found.differing, step))
