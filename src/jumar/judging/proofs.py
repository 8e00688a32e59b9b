"""A proof that a set of patterns tracks a judge, as it is on disk, and when it is too old to be believed.

``proof.json`` holds everything that the figures in it are computed from, so that anybody computes them again, without a judge and
without the texts; ``jumar prove --verify`` does. Making one and verifying it is learning's business.
"""

from __future__ import annotations

import json
import math
import statistics
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Final, Literal, cast

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from jumar.core.files import read_bytes
from jumar.core.text import escape, once
from jumar.errors import FormatTooNewError, NotFoundError, StoreDamagedError
from jumar.judging.items.item import canonical, digest_of

FORMAT: Final = 1
PLANNED_LOOKS: Final = 3
"""So often the held-out items may be looked at; each look is another chance for luck."""

MAX_AGE: Final = timedelta(days=90)
"""An older proof is stale: judges are replaced without a word, and what is written about changes."""

_CLOCKS: Final = timedelta(days=1)  # so far apart may be those of two machines
Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]
Score = Annotated[float, Field(ge=1.0, le=5.0, allow_inf_nan=False)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class OpenRow(_Part):
    """An item that was learned from or tested on: ``length`` of its text in characters, ``hash`` of all that judges see of it."""

    id: str
    group: str | None
    hash: Hash
    readings: Annotated[tuple[Score, ...], Field(min_length=1)]
    length: Count

    @property
    def score(self) -> float:
        """Median of the readings."""
        return statistics.median(self.readings)


class ProofRow(OpenRow):
    """A held-out item with the cheap score that the set gave to it."""

    cheap: Score


class ProofItems(_Part):
    """How many items there are, and their hashes in any order.

    ``unscored`` counts what is left out: held-out ones by the ``judge`` or by the ``cheap`` judge, ``open`` ones by the judge.
    """

    sealed: Count
    sealed_hash: Hash
    opened: Count
    opened_hash: Hash
    unscored: dict[Literal["judge", "cheap", "open"], Count]


class ProofSplit(_Part):
    """What was held out: ``hash`` is of ``split.json``'s content."""

    seed: int
    heldout: Annotated[float, Field(ge=0.0, lt=1.0)]
    hash: Hash
    sealed_groups: Count
    open_groups: Count


class ProofJudge(_Part):
    """The expensive judge: who it is, what it was asked (hash of the rubric's question, version of the template), and how."""

    identity: str
    question_hash: Hash
    template: int
    settings: dict[str, Any]


class ProofRubric(_Part):
    """The rubric of the cheap judge."""

    name: str
    kind: Literal["story", "text"]
    hash: Hash


class ProofPatterns(_Part):
    """The set that was proven: its hash without what is only counted, how many patterns, how many of them active."""

    hash: Hash
    patterns: Count
    active: Count


class ProofLooks(_Part):
    """Which look at the held-out items this is, of how many that were planned. ``extra`` is a look beyond the plan.

    ``false_tracks`` bounds the chance that one of the looks so far said ``tracks`` of a set that does not: 2.5 % a look.
    """

    number: Annotated[int, Field(ge=1)]
    planned: Count
    extra: bool
    false_tracks: Annotated[float, Field(ge=0.0, le=1.0)]


class Proof(_Part):
    """``proof.json``. ``robust`` is that of the set, None where it does not say.

    ``statistics`` is what :meth:`jumar.learning.proof.evidence.ProofEvidence.to_json` gives of the rows.

    ``content_hash`` is the SHA-256 of everything else.
    """

    format: Literal[1] = FORMAT
    created_at: AwareDatetime
    jumar: str
    verdict: Literal["tracks", "not_proven", "fails"]
    items: ProofItems
    split: ProofSplit
    judge: ProofJudge
    rubric: ProofRubric
    patterns: ProofPatterns
    robust: bool | None = None
    seed: int
    baselines: dict[str, Annotated[float, Field(allow_inf_nan=False)]]
    statistics: dict[str, Any]
    looks: ProofLooks
    rows: tuple[ProofRow, ...]
    opened: tuple[OpenRow, ...]
    content_hash: Hash = "0" * 64

    def _document(self) -> dict[str, Any]:
        """Return plain JSON; proofs of before sets said whether they are robust have no such key."""
        document = self.model_dump(mode="json")
        if self.robust is None:
            del document["robust"]
        return document

    def computed_hash(self) -> str:
        """Return the hash that ``content_hash`` should be."""
        return digest_of({name: value for name, value in self._document().items() if name != "content_hash"})

    def hashed(self) -> Proof:
        """Return the proof with the hash of its content."""
        return self.model_copy(update={"content_hash": self.computed_hash()})

    def to_bytes(self) -> bytes:
        """Return what the file holds: JSON in ASCII, a row a line."""
        document = self._document()
        lines: list[bytes] = []
        for name, value in document.items():
            shown = canonical(value)
            if name in {"rows", "opened"} and value:
                shown = b"[\n    " + b",\n    ".join(canonical(row) for row in value) + b"\n  ]"
            lines.append(b"  " + canonical(name) + b": " + shown)
        return b"{\n" + b",\n".join(lines) + b"\n}\n"


def parse_proof(data: str | bytes, where: str = "the proof") -> Proof:
    """Return the proof that a file's content is; whether its figures are right is not looked at.

    Errors: :class:`jumar.errors.StoreDamagedError` that names ``where`` and the field, :class:`jumar.errors.FormatTooNewError`.
    """
    try:
        found = json.loads(data, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise StoreDamagedError(f"{escape(where)}: not a proof: {escape(str(error))[:200]}") from None
    known = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    version = known.get("format")
    if isinstance(version, int) and version > FORMAT:
        raise FormatTooNewError(f"{escape(where)}: a proof of format {version}; this jumar reads up to {FORMAT}, update it")
    try:
        return Proof.model_validate_json(json.dumps(found), strict=True)
    except (ValidationError, ValueError) as error:
        said = str(error)
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False)[0]
            said = f"{'.'.join(str(part) for part in first['loc']) or 'it'}: {first['msg']}"
        raise StoreDamagedError(f"{escape(where)}: not a proof: {escape(said)[:200]}") from None


def read_proof(path: Path) -> Proof:
    """Return the proof of a file. Errors: :class:`jumar.errors.NotFoundError`, and those of :func:`parse_proof`."""
    try:
        data = read_bytes(path, links=True)
    except OSError as error:
        raise NotFoundError(
            f"{escape(str(path))} cannot be read ({error.strerror}); `jumar prove OUT` writes OUT/proof.json"
        ) from error
    return parse_proof(data, str(path))


# ------------------------------------------------------------------------------------------------------------ staleness


def stale_reasons(
    proof: Proof,
    now: datetime,
    scores: Sequence[float] = (),
    audits: Iterable[tuple[float, float]] = (),
    *,
    groups: Sequence[str | None] | None = None,
    audit_groups: Sequence[str | None] | None = None,
    max_age: timedelta = MAX_AGE,
) -> list[str]:
    """Return why a proof is not to be believed any more, in words; empty while it is.

    ``scores`` are cheap scores of new items, ``audits`` pairs of cheap and expensive scores of new items in the order in which
    they came, with the groups of either (None: each item by itself). The rules: an age over ``max_age``, or a date that has not
    come yet; a distribution of cheap scores that is another one, which :func:`drift` says; and audits whose errors are larger
    than those of the held-out items, which :func:`audit_evidence` says.
    """
    reasons: list[str] = []
    age = now - proof.created_at
    if age > max_age:
        reasons.append(f"it is {age.days} days old, and {max_age.days} are allowed")
    if age < -_CLOCKS:
        reasons.append(f"it is dated {proof.created_at:%Y-%m-%d}, which has not come yet")
    sealed = [row.group for row in proof.rows]
    moved = drift([row.cheap for row in proof.rows], scores, known_groups=sealed, new_groups=groups)
    if moved is not None and moved[1]:
        reasons.append(
            f"the cheap scores of the new items are spread otherwise: population stability index {moved[0]:.2f}, "
            f"{DRIFT} is the limit"
        )
    errors = [abs(row.cheap - row.score) for row in proof.rows]
    value = audit_evidence(errors, audits, groups=sealed, audit_groups=audit_groups)
    if value >= AUDITS_FAIL:
        reasons.append(
            f"audited items are missed by more than the held-out ones were: evidence {value:.0f} to 1, "
            f"{AUDITS_FAIL:.0f} is the limit"
        )
    return reasons


DRIFT: Final = 0.25
"""Population stability index from which a distribution of scores is another one, as is usual."""

AUDITS_FAIL: Final = 100.0
"""Evidence from which audits say that the errors have grown: a proof that holds gets there with a chance of 1 in 100."""

_BINS: Final = 10
_SAME: Final = 0.01  # points; a smaller move is none
_CHANCE: Final = 0.001
_FEWEST: Final = 30
_AUDIT_SHARE: Final = 0.1
_OTHERS: Final = tuple(tenth / 10 for tenth in range(2, 10))
_CLOSE: Final = 1e-9


def drift(
    known: Sequence[float],
    new: Sequence[float],
    *,
    known_groups: Sequence[str | None] | None = None,
    new_groups: Sequence[str | None] | None = None,
) -> tuple[float, bool] | None:
    """Return the population stability index of ``new`` against ``known``, and whether it is drift; None below 30 of either.

    The bins are tenths of the known scores; a score that fills more than one of them has its own, and so has what is beyond all
    known ones. It is drift from 0.25 on, and only where chance gives as much in less than one of a thousand samples, which whole
    groups say that are dealt out anew (:mod:`jumar.judging.exchange`; None: an item by itself). With fewer than three groups of
    either that cannot be said, and it is no drift.
    """
    if len(known) < _FEWEST or len(new) < _FEWEST:
        return None
    keys = _keys(len(known), known_groups), _keys(len(new), new_groups)
    cuts = _cuts(known)
    old, now = _shares(known, cuts), _shares(new, cuts)
    index = math.fsum((after - before) * math.log(after / before) for before, after in zip(old, now, strict=True))
    if index < DRIFT:
        return index, False
    from jumar.judging.exchange import beyond_chance  # it takes numpy, which reading a proof does not need

    return index, beyond_chance(known, new, *keys, _cuts([*known, *new]), chance=_CHANCE)


def _keys(count: int, groups: Sequence[str | None] | None) -> list[Any]:
    names = [None] * count if groups is None else groups
    if len(names) != count:
        raise ValueError(f"{count} items and {len(names)} groups: give as many of each")
    return [place if name is None else name for place, name in enumerate(names)]


def _cuts(scores: Sequence[float]) -> list[float]:
    """Return where bins begin, rising: at tenths, around what fills more than one of them, and beyond the lowest and highest."""
    ordered = sorted(scores)
    runs: list[list[float]] = []
    for tenth in range(1, _BINS):
        score = ordered[len(ordered) * tenth // _BINS]
        if runs and score - runs[-1][-1] < _SAME:
            runs[-1].append(score)
        else:
            runs.append([score])
    cuts = {ordered[0] - _SAME, ordered[-1] + _SAME}
    for run in runs:
        cuts.update(run if len(run) == 1 else (run[0] - _SAME, run[-1] + _SAME))
    return sorted(cuts)


def _shares(scores: Sequence[float], cuts: Sequence[float]) -> list[float]:
    counts = [0.5] * (len(cuts) + 1)  # so that an empty bin is no infinity
    for score in scores:
        counts[bisect_right(cuts, score)] += 1
    return [count / (len(scores) + 0.5 * len(counts)) for count in counts]


def audit_evidence(
    errors: Sequence[float],
    audits: Iterable[tuple[float, float]],
    *,
    groups: Sequence[str | None] | None = None,
    audit_groups: Sequence[str | None] | None = None,
) -> float:
    """Return how strongly audits say that errors have grown, at its highest so far: a likelihood ratio, 1 without any.

    ``errors`` are absolute ones of the held-out items, ``groups`` theirs; ``audits`` are pairs of a cheap and an expensive score,
    in their order (None: an item by itself). Each group counts as one, shared by its items. An audit fails when its error is
    larger than those of all but a tenth of the held-out groups. Of ``n`` groups, held out or audited, of which ``k`` failed, a
    new one fails with a chance of (k + 1) / (n + 1) at most while nothing has changed, since its error has the same chance of
    each rank (online conformal prediction: Vovk, Gammerman and Shafer 2005); so it does not matter how few of them there are.

    A group is one bet, at the place of its first audit. The value is an e-process: the mean of the likelihood ratios of higher
    shares of failures against that chance; by Ville's inequality it ever reaches 100 with a chance of 1 in 100. Where a group
    comes back later, its bet is settled anew on all of its audits, and that chance is of each look by itself.
    """
    found = [abs(cheap - expensive) for cheap, expensive in audits]
    by_group: dict[Any, list[float]] = {}
    for name, error in zip(_keys(len(found), audit_groups), found, strict=True):
        by_group.setdefault(name, []).append(error)
    limit, failed, count = _largest_tenth(errors, _keys(len(errors), groups))
    logs = [0.0] * len(_OTHERS)
    highest = 1.0
    for own in by_group.values():
        chance = (failed + 1.0) / (count + 1.0)
        share = sum(error > limit for error in own) / len(own)
        for place, other in enumerate(_OTHERS):
            if other > chance:
                logs[place] += math.log(share * other / chance + (1.0 - share) * (1.0 - other) / (1.0 - chance))
        failed, count = failed + share, count + 1
        highest = max(highest, math.fsum(math.exp(min(log, 600.0)) for log in logs) / len(logs))
    return highest


def _largest_tenth(errors: Sequence[float], keys: Sequence[Any]) -> tuple[float, float, int]:
    """Return an error that at most a tenth of the groups are beyond, how many are, and of how many."""
    sizes = Counter(keys)
    weights: dict[float, float] = {}
    for error, key in zip(errors, keys, strict=True):
        weights[error] = weights.get(error, 0.0) + 1.0 / sizes[key]
    limit, beyond = math.inf, 0.0
    for error in sorted(weights, reverse=True):
        if limit < math.inf:
            if beyond + weights[limit] > _AUDIT_SHARE * len(sizes) + _CLOSE:
                break
            beyond += weights[limit]
        limit = error
    return limit + _CLOSE, beyond, len(sizes)
