"""What ``jumar evaluate --mode auto`` is asked, what came out and what it writes; the audits of all evaluations so far."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, cast

from jumar.core import __version__
from jumar.core.files import as_write_error, read_bytes, write_named
from jumar.core.lock import writing
from jumar.core.text import escape, json_rows, json_text
from jumar.errors import StoreDamagedError, StoreWriteError, UsageError
from jumar.judging.asking.summary import Evaluation, Result
from jumar.judging.auto.escalation import AutoOutcome, AutoRules, Decided, Planned, SealedCheck
from jumar.judging.component_health import check_expensive_evaluator, check_patterns, every_component
from jumar.judging.dual import cheap_document, evaluation_document
from jumar.judging.expensive import JudgedRequest, row_of, write_rows
from jumar.judging.files import item_rows, sources_of, write_folder
from jumar.judging.gap import QUALITY_TARGET
from jumar.judging.items.item import Item, item_digest
from jumar.judging.models import CheapModeResult, ExpensiveModeResult, Unscored
from jumar.judging.patterns.models import PatternSet
from jumar.judging.proofs import Proof, audit_evidence

PATIENCE: Final = 10.0
"""Seconds to wait for another evaluation that writes its audits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """An item that was drawn, and what both judges said of it. ``item`` is its hash, ``patterns`` that of the set.

    ``group`` None: the item by itself, as in files that were written before groups were.
    """

    id: str
    item: str
    patterns: str
    cheap: float
    expensive: float
    group: str | None = None


@dataclass(frozen=True, slots=True)
class AuditLog:
    """What is in the file, and which audits are of this set."""

    audits: tuple[Audit, ...] = ()
    patterns: str = ""

    @property
    def pairs(self) -> list[tuple[float, float]]:
        """Cheap and expensive score of each audit of this set, in their order."""
        return [(one.cheap, one.expensive) for one in self._own]

    @property
    def groups(self) -> list[str | None]:
        """Group of each of :attr:`pairs`."""
        return [one.group for one in self._own]

    @property
    def _own(self) -> list[Audit]:
        return [audit for audit in self.audits if audit.patterns == self.patterns]

    def evidence(self, proof: Proof) -> float:
        """Return how strongly the audits of this set say that errors have grown since its proof."""
        errors = [abs(row.cheap - row.score) for row in proof.rows]
        return audit_evidence(errors, self.pairs, groups=[row.group for row in proof.rows], audit_groups=self.groups)

    def added(self, new: Sequence[Audit]) -> AuditLog:
        """Return the log with those that are not in it: an item that is evaluated again is no new evidence."""
        known = {(audit.item, audit.patterns) for audit in self.audits}
        return replace(self, audits=(*self.audits, *(one for one in new if (one.item, one.patterns) not in known)))


def new_audits(items: Sequence[Item], planned: Sequence[Planned], judged: dict[str, float], patterns: str) -> list[Audit]:
    """Return the items that were drawn and judged, escalated or not: a random sample of all."""
    return [
        Audit(id=one.id, item=item_digest(item), patterns=patterns, cheap=one.cheap, expensive=judged[one.id], group=item.group)
        for item, one in zip(items, planned, strict=True)
        if one.drawn and one.cheap is not None and one.id in judged
    ]


def read_audits(path: Path | None, patterns: str) -> AuditLog:
    """Return what earlier evaluations found, nothing where there is no file yet.

    Errors: :class:`jumar.errors.StoreDamagedError` that names file and line, :class:`jumar.errors.UsageError` for a file that
    could not be written.
    """
    if path is not None and not path.absolute().parent.is_dir():
        raise UsageError(f"--audits {escape(str(path))}: its folder does not exist; make it first")
    try:
        lines = [] if path is None else read_bytes(path, links=True).splitlines()
    except FileNotFoundError:
        lines = []
    except OSError as error:
        raise StoreDamagedError(f"--audits {escape(str(path))} cannot be read ({error.strerror}); name another file") from error
    found: list[Audit] = []
    for number, line in enumerate(lines, start=1):
        try:
            found.append(_audit(json.loads(line)))
        except (ValueError, TypeError) as error:
            raise StoreDamagedError(
                f"{escape(str(path))}:{number}: not an audit ({escape(str(error))[:80]}); take the line out, or name a new file"
            ) from None
    return AuditLog(tuple(found), patterns)


def _audit(given: Any) -> Audit:
    one = Audit(**cast("dict[str, Any]", given))
    if one.group is not None and not isinstance(cast("object", one.group), str):
        raise TypeError("a group is a text or null")
    if not all(1.0 <= score <= 5.0 for score in (one.cheap, one.expensive)):
        raise ValueError("a score is from 1 to 5")
    return one


def write_audits(path: Path, log: AuditLog) -> None:
    """Write all audits, whole: those that are in the file by now, and those of ``log`` that are not.

    Another evaluation may have written since the log was read; ``path`` with ``.lock`` added, which stays there, keeps two from
    writing at once. Errors: :class:`jumar.errors.StoreWriteError`, :class:`jumar.errors.LockedError` where another process holds
    it for :data:`PATIENCE`, :class:`jumar.errors.StoreDamagedError` for what is no audit by now.
    """
    if path.exists() and not path.is_file():  # a device or a pipe keeps nothing, and is no place for a lock
        _write(path, log)
        return
    with as_write_error("write", path), writing(path, patience=PATIENCE, error=StoreWriteError):
        _write(path, read_audits(path, log.patterns).added(log.audits))


def _write(path: Path, log: AuditLog) -> None:
    lines = [json.dumps(asdict(audit), ensure_ascii=False, allow_nan=False) + "\n" for audit in log.audits]
    with as_write_error("write", path):
        write_named(path, "".join(lines).encode("utf-8", "surrogatepass"))


CheapResult = CheapModeResult | Unscored


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoRequest:
    """What to evaluate: as with an expensive judge, with a proof of the patterns and the rules of escalation.

    ``audits`` is the file of all audits so far, None for those of this evaluation alone.
    """

    judged: JudgedRequest
    patterns: Path
    proof: Path
    rules: AutoRules
    audits: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """What the proof allows. ``reasons`` are why the cheap judge decides nothing, empty where it may.

    ``intervals`` says what the intervals were made of; ``check`` is None where that is the held-out items themselves.
    ``judge_known`` is False where one of the two judges is a file of recorded verdicts, which does not say whose they are.
    """

    proof: Proof
    intervals: Literal["open", "sealed"]
    check: SealedCheck | None
    judge_known: bool
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoEvaluation:
    """What came out. ``expensive`` is of the items that were asked about; ``rest_asked``: failed audits led to all the others.

    ``evidence`` is that of the audits (:func:`jumar.judging.proofs.audit_evidence`) in ``log``, which has those of earlier
    evaluations, too. ``learned_from`` is how many of the items the set was learned from. ``directory`` is where ``-o`` wrote to.
    """

    items: tuple[Item, ...]
    rules: AutoRules
    trust: Trust
    planned: tuple[Planned, ...]
    cheap: tuple[CheapResult, ...]
    expensive: Evaluation
    outcome: AutoOutcome
    evidence: float
    rest_asked: bool
    patterns: PatternSet
    log: AuditLog
    learned_from: int = 0
    directory: Path | None = None

    @property
    def scored(self) -> int:
        """Items with a score of the judge that decided."""
        return len(self.items) - self.outcome.undecided

    @property
    def not_asked(self) -> int:
        """Items about which the expensive judge was not asked."""
        return 0 if self.rest_asked else sum(not one.asked for one in self.planned)

    @property
    def calls_saved(self) -> int:
        """Questions that the expensive judge was not asked: readings an item, for the items that it was not asked about."""
        return self.not_asked * self.expensive.repeat

    @property
    def cost_saved_usd(self) -> float | None:
        """What these would have cost at the average of those that were paid for; None where nobody knows."""
        if not self.not_asked:
            return 0.0
        paid = [
            result.cost_usd for result in self.expensive.results if isinstance(result, ExpensiveModeResult) and not result.cached
        ]
        known = [cost for cost in paid if cost is not None]
        return None if not known or len(known) < len(paid) else self.not_asked * sum(known) / len(known)

    @property
    def pattern_match(self) -> float | None:
        """The share of items that the cheap judge scored on which at least one pattern fired; None without any."""
        scored = [one for one in self.cheap if isinstance(one, CheapModeResult)]
        return sum(bool(one.patterns_matched) for one in scored) / len(scored) if scored else None

    def document(self) -> dict[str, Any]:
        """Return what ``--json`` prints: the figures without the single items."""
        cheap = cheap_document(self.cheap, self.pattern_match)
        average = cheap["gestalt_avg"]
        health = {
            "expensive_evaluator": check_expensive_evaluator(self.expensive.results),
            "pattern_migration": check_patterns(self.patterns),
        }
        output = None if self.directory is None else str(self.directory.absolute())
        found = evaluation_document(
            "auto",
            len(self.items),
            self.scored,
            health=every_component(**health),
            cheap={key: value for key, value in cheap.items() if key in _CHEAP},
            expensive=self.expensive.figures(),
            quality={"cheap_avg": average, "met": None if average is None else average >= QUALITY_TARGET},
            auto=self.figures(),
        )
        return {**found, "learned_from": self.learned_from, "output": output}

    def figures(self) -> dict[str, Any]:
        """Return what is particular to this mode."""
        found, errors = self.outcome, self.outcome.errors
        return {
            "decision_line": self.rules.line,
            "confidence": self.rules.confidence,
            "audit": self.rules.audit,
            "seed": self.rules.seed,
            "cheap": found.cheaply,
            "audited": found.audited,
            "escalated": found.escalated,
            "undecided": found.undecided,
            "above": found.above,
            "below": found.below,
            "calls_saved": self.calls_saved,
            "saved_share": self.not_asked / len(self.items) if self.items else None,
            "cost_saved_usd": self.cost_saved_usd,
            "average": None if found.average is None else found.average.to_json(),
            "audits": {
                "items": len(errors),
                "mean_error": sum(errors) / len(errors) if errors else None,
                "mean_abs_error": sum(map(abs, errors)) / len(errors) if errors else None,
                "of_all_evaluations": len(self.log.pairs),
                "evidence": self.evidence,
                "rest_asked": self.rest_asked,
            },
            "guarantee": found.guarantee.to_json(),
            "proof": {
                "trusted": not self.trust.reasons,
                "reasons": list(self.trust.reasons),
                "verdict": self.trust.proof.verdict,
                "created_at": self.trust.proof.created_at.isoformat(),
                "judge_known": self.trust.judge_known,
                "intervals": self.trust.intervals,
                "sealed": None if self.trust.check is None else self.trust.check.to_json(),
            },
        }


_CHEAP = frozenset({"gestalt_avg", "story_count", "scored", "unscored", "pattern_match"})


def write_auto_rows(path: Path, found: AutoEvaluation) -> None:
    """Write ``--per-item``: whole, or not at all."""
    write_rows(path, _rows(found))


def auto_documents(found: AutoEvaluation) -> dict[str, str]:
    """Return what is written about an evaluation, by the names of the files."""
    return {
        "cheap_eval.json": json_rows(cheap_document(found.cheap, found.pattern_match)),
        "expensive_eval.json": json_rows(found.expensive.to_json()),
        "auto_eval.json": json_rows({**found.figures(), "items": [item.to_json() for item in found.outcome.items]}),
    }


def write_auto(output: Path, request: AutoRequest, found: AutoEvaluation) -> AutoEvaluation:
    """Write ``iteration_N`` below ``output``, whole, and return the evaluation with its folder."""

    def documents(_number: int, directory: Path) -> dict[str, str]:
        nonlocal found
        found = replace(found, directory=directory)
        made_of = {
            "sources": sources_of(request.judged.items),
            "patterns": sources_of(request.patterns),
            "proof": sources_of(request.proof),
            "judge": found.expensive.judge,
            "settings": found.expensive.settings,
        }
        manifest = {**found.document(), "output": None, "jumar": __version__, **made_of}
        stories = {"stories.json": item_rows(found.items)}
        return {**stories, **auto_documents(found), "manifest.json": json_text(manifest)}

    write_folder(output, documents)
    return found


def _rows(found: AutoEvaluation) -> list[dict[str, Any]]:
    asked = {result.story_id: result for result in found.expensive.results}
    return [_row(asked.get(decided.id), cheap, decided) for cheap, decided in zip(found.cheap, found.outcome.items, strict=True)]


def _row(expensive: Result | None, cheap: CheapResult, decided: Decided) -> dict[str, Any]:
    """Return an item's line: what every mode has, with the score that counts, who decided it, and why that one."""
    given = expensive or Unscored(story_id=decided.id, kind="missing", message="")
    row = row_of(given, cheap)
    if expensive is None:  # not asked, which is no failure
        row["unscored"] = None
        row["cost_usd"] = 0.0
    return {
        "id": row.pop("id"),
        "score": decided.score,
        "decided_by": decided.judge,
        "why": decided.why,
        "decision": decided.decision,
        "interval": None if decided.interval is None else list(decided.interval),
        "cheap_was_wrong": decided.wrong,
        **row,
    }
