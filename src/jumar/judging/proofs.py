"""A proof that a set of patterns tracks a judge, as it is on disk, and when it is too old to be believed.

``proof.json`` holds everything that the figures in it are computed from, so that anybody computes them again, without a judge and
without the texts; ``jumar prove --verify`` does. Making one and verifying it is learning's business.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Final, Literal, cast

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from jumar.core.text import escape
from jumar.errors import FormatTooNewError, NotFoundError, StoreDamagedError
from jumar.judging.digests import canonical, digest_of
from jumar.judging.staleness import AUDITS_FAIL, DRIFT, audit_evidence, drift

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
    """``proof.json``. ``statistics`` is what :meth:`jumar.learning.proof.evidence.ProofEvidence.to_json` gives of the rows.

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
    seed: int
    baselines: dict[str, Annotated[float, Field(allow_inf_nan=False)]]
    statistics: dict[str, Any]
    looks: ProofLooks
    rows: tuple[ProofRow, ...]
    opened: tuple[OpenRow, ...]
    content_hash: Hash = "0" * 64

    def computed_hash(self) -> str:
        """Return the hash that ``content_hash`` should be."""
        return digest_of(self.model_dump(mode="json", exclude={"content_hash"}))

    def hashed(self) -> Proof:
        """Return the proof with the hash of its content."""
        return self.model_copy(update={"content_hash": self.computed_hash()})

    def to_bytes(self) -> bytes:
        """Return what the file holds: JSON in ASCII, a row a line."""
        document = self.model_dump(mode="json")
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
        found = json.loads(data, object_pairs_hook=_once)
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
        data = path.read_bytes()
    except OSError as error:
        raise NotFoundError(
            f"{escape(str(path))} cannot be read ({error.strerror}); `jumar prove OUT` writes OUT/proof.json"
        ) from error
    return parse_proof(data, str(path))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"'{next(name for name in names if names.count(name) > 1)}' is there twice")
    return found


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
