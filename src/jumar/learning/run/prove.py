"""``jumar prove``: the final set of a learning run against the held-out items, and the checks of a proof that is there."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from jumar.core.files import as_write_error, fsync_directory, make_directory, read_bytes, replace_file, wait_for_lock, write_all
from jumar.core.lock import LoopLock, who_holds
from jumar.core.text import escape, plural
from jumar.errors import (
    ConfigError,
    ConflictError,
    EvaluationUnreliableError,
    ItemError,
    JumarError,
    LockedError,
    NotFoundError,
    StoreDamagedError,
)
from jumar.judging.asking.call_log import FILE as CALLS
from jumar.judging.asking.call_log import CallLog
from jumar.judging.asking.settings import MAX_UNSCORED
from jumar.judging.dual import require_statistics
from jumar.judging.items.item import Item, digest_of, patterns_digest
from jumar.judging.items.records import read_items
from jumar.judging.judges import make_judge
from jumar.judging.patterns.models import PatternSet
from jumar.judging.patterns.storage import load_pattern_set, read_pattern_set
from jumar.judging.proofs import PLANNED_LOOKS, Proof, ProofJudge, ProofLooks, read_proof
from jumar.judging.rubric import StoryRubric, TextRubric, builtin_rubric, kind_of_items, load_rubric
from jumar.learning.proof.evidence import heldout_of
from jumar.learning.proof.make import Verification, look_at, make_proof, verify_proof
from jumar.learning.proof.split import Part, Split, tie_copies
from jumar.learning.run.request import LOOP, RESULT, ROOT, ProveRequest
from jumar.learning.run.verdicts import FILE as VERDICTS
from jumar.learning.run.verdicts import Hear, JudgeAccess, Verdicts, warn_of_unscored
from jumar.loop.store.layout import LoopPaths, loops_directory

LOOKS: Final = "looks.jsonl"
_FORMAT: Final = 1
_PATIENCE: Final = 10.0  # seconds; whoever holds the lock writes one line


@dataclass(frozen=True, slots=True)
class _Look:
    """``subject`` is the hash of what was looked at with what, ``at`` when; None of a line that a crash cut off: a look, too.

    ``seen`` is the hash of the verdicts that were seen, None while that was not written down.
    """

    subject: str | None
    at: datetime | None
    seen: str | None = None


def look_known(output: Path, subject: dict[str, Any]) -> int | None:
    """Return which look at the held-out items of ``output`` this one was, from 1; None where none was written down.

    Errors: :class:`jumar.errors.NotFoundError` where no look was.
    """
    try:
        known = _read_looks(read_bytes(output / LOOKS))
    except OSError as error:
        raise NotFoundError(f"{escape(str(output / LOOKS))} cannot be read ({error.strerror})") from error
    key = digest_of(subject)
    return max((number for number, one in enumerate(known, start=1) if one.subject == key), default=None)


def count_look(
    output: Path, subject: dict[str, Any], *, at: datetime, extra: bool = False, known: str | None = None, told: int = 0
) -> tuple[ProofLooks, datetime]:
    """Write a look down, and return which one it is and when the first was begun; only then may the held-out items be looked at.

    ``subject`` is all that decides what will be seen: patterns, split, judge, rubric. The same one again, as after a crash, shows
    nothing new and is the same look, unless what the judge said of the held-out items is not what was seen then: ``known`` is the
    hash of the verdicts that are on file, None when there are none. ``told`` is how many looks a proof tells of.

    Errors: :class:`jumar.errors.StoreDamagedError` when fewer than these are written down,
    :class:`jumar.errors.ConflictError` for one beyond the plan without ``extra``, :class:`jumar.errors.LockedError`,
    :class:`jumar.errors.StoreWriteError`.
    """
    path = output / LOOKS
    key = digest_of(subject)
    with as_write_error("write", path):
        make_directory(output)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            if not wait_for_lock(fd, _PATIENCE):
                raise LockedError(f"{escape(str(path))} is being written by another process; try again when it is done")
            return _counted(fd, path, key, subject, at, extra=extra, known=known, told=told)
        finally:
            os.close(fd)


def record_seen(output: Path, subject: dict[str, Any], verdicts: str) -> None:
    """Write down what was seen at the last look at ``subject``: the hash of the held-out items' verdicts.

    Errors: :class:`jumar.errors.StoreWriteError`.
    """
    path = output / LOOKS
    looks = _read_looks(read_bytes(path))
    key = digest_of(subject)
    if any(look.subject == key and look.seen == verdicts for look in looks):
        return
    with as_write_error("write", path):
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            write_all(fd, json.dumps({"format": _FORMAT, "of": key, "seen": verdicts}).encode() + b"\n")
            os.fsync(fd)
        finally:
            os.close(fd)


def _counted(
    fd: int, path: Path, key: str, subject: dict[str, Any], at: datetime, *, extra: bool, known: str | None, told: int
) -> tuple[ProofLooks, datetime]:
    data = read_bytes(path)
    looks = _read_looks(data)
    if len(looks) < told:
        raise StoreDamagedError(
            f"{escape(str(path))}: {plural(len(looks), 'evaluation')} written down, and proof.json beside it has number {told}; "
            "put the file back, or learn into another folder: nobody knows any more how often the held-out items were used"
        )
    first = min((look.at for look in looks if look.at is not None), default=at)
    for number, one in reversed(list(enumerate(looks, start=1))):
        if one.subject == key and one.seen in {None, known}:
            return look_at(number), first
    number = len(looks) + 1
    if number > PLANNED_LOOKS and not extra:
        raise ConflictError(
            f"{escape(str(path))}: the held-out items were used for {plural(len(looks), 'evaluation')}, and {PLANNED_LOOKS} were "
            "planned: each one more is another chance for luck. Learn from new items, or evaluate all the same with "
            "--extra-look, which the proof tells"
        )
    line = {"format": _FORMAT, "number": number, "at": at.isoformat(), "extra": number > PLANNED_LOOKS, "key": key, **subject}
    cut = b"\n" if data and not data.endswith(b"\n") else b""
    write_all(fd, cut + json.dumps(line, ensure_ascii=True).encode() + b"\n")
    os.fsync(fd)
    fsync_directory(path.parent)
    return look_at(number), first


def _read_looks(data: bytes) -> list[_Look]:
    looks: list[_Look] = []
    for line in data.split(b"\n"):
        if line.strip():
            try:
                found: Any = json.loads(line)
                if "of" in found:
                    looks = _with_seen(looks, str(found["of"]), str(found["seen"]))
                else:
                    looks.append(_Look(str(found["key"]), datetime.fromisoformat(found["at"])))
            except (ValueError, TypeError, KeyError):
                looks.append(_Look(None, None))
    return looks


def _with_seen(looks: list[_Look], key: str, seen: str) -> list[_Look]:
    """Return the looks, the last at ``key`` with what was seen then."""
    place = max((number for number, one in enumerate(looks) if one.subject == key), default=None)
    return [replace(one, seen=seen) if number == place else one for number, one in enumerate(looks)]


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
    unscored = verdicts.ask(*asked, max_cost=request.judge.settings.max_cost, hear=hear)
    targets = {part: verdicts.targets(one) for part, one in (("sealed", sealed), ("opened", opened))}
    for part, one in (("sealed", sealed), ("opened", opened)):
        if len(targets[part]) < (1 - min(MAX_UNSCORED, request.judge.settings.max_unscored)) * len(one):
            raise EvaluationUnreliableError(
                f"the judge scored {len(targets[part]):,} of {len(one):,} {part} items"
                f"{'' if verdicts.stopped is None else f' ({verdicts.stopped})'}; a proof would be of another kind of "
                "items. Run it again: what was answered is kept, and it is the same evaluation"
            )
    warn_of_unscored(unscored, "held-out" if parts == ("sealed",) else "judged", sum(map(len, asked)))
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
        return Split.from_json(read_bytes(path), str(path))
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
