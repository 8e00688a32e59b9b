"""A judge on record: verdicts that somebody gave before, read from a file (``replay:FILE``).

JSON, one object a line: ``id``, ``judge_scores`` (a number, or a list of them: several readings, of which the median counts), and
optionally ``judge_feedback`` (a text about them all, or a list in their order), ``strengths`` and ``weaknesses``. Other keys are
not looked at. An item that the file does not have, or has without scores, is unscored (``missing``).
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any, Final, cast

from jumar.core.text import escape, once
from jumar.errors import ConfigError, ItemError, NotFoundError
from jumar.judging.judges import JudgeSpec
from jumar.model.protocols import JudgeFailure, JudgeReply, JudgeRequest
from jumar.model.records import Usage

FORM: Final = "replay:FILE"


def judge_of(spec: JudgeSpec) -> ReplayJudge:
    """Return the judge on record in a file. Errors: as of :class:`ReplayJudge`, :class:`jumar.errors.ConfigError` for no file."""
    if not spec.rest:
        raise ConfigError("replay: names no file; write replay:FILE")
    return ReplayJudge(Path(spec.rest) if spec.base is None else spec.base / spec.rest)


class ReplayJudge:
    """Answers from ``path``. Errors: :class:`jumar.errors.NotFoundError`, :class:`jumar.errors.ItemError` with the line."""

    recorded = True

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)
        self._verdicts, digest = _read(self._path)
        self.identity = f"replay:{self._path.name}@{digest[:12]}"

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        readings = self._verdicts.get(request.item_id)
        if not readings:
            raise JudgeFailure("missing", f"{escape(str(self._path))} has no score of {escape(request.item_id)}")
        return JudgeReply(text=json.dumps({"readings": readings}), usage=Usage(token_cost_usd=0.0))

    async def aclose(self) -> None:
        """Nothing is open."""


def _read(path: Path) -> tuple[dict[str, list[dict[str, Any]]], str]:
    where = escape(str(path))
    verdicts: dict[str, list[dict[str, Any]]] = {}
    digest = hashlib.sha256()
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                digest.update(line)
                if line.strip():
                    name, readings = _verdict(line, f"{where}:{number}")
                    if name in verdicts:
                        raise ItemError(
                            f"{where}:{number}: the id '{escape(name)}' is in the file twice; keep one of the two lines"
                        )
                    verdicts[name] = readings
    except (FileNotFoundError, IsADirectoryError) as error:
        raise NotFoundError(f"there is no file {where}; replay:FILE names one with recorded verdicts") from error
    except OSError as error:
        raise NotFoundError(f"{where} cannot be read ({error.strerror}); name a file that can be") from error
    if not any(verdicts.values()):
        raise ItemError(f'{where}: no line has \'judge_scores\'; a recorded verdict is {{"id": "…", "judge_scores": [4, 5]}}')
    return verdicts, digest.hexdigest()


def _verdict(line: bytes, where: str) -> tuple[str, list[dict[str, Any]]]:
    try:
        found: object = json.loads(line, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise ItemError(f"{where}: not JSON ({escape(str(error))[:200]})") from None
    if not isinstance(found, dict):
        raise ItemError(f"{where}: a line should be a JSON object with 'id' and 'judge_scores'")
    row = cast("dict[str, Any]", found)
    name = row.get("id")
    if isinstance(name, int) and not isinstance(name, bool):
        name = str(name)
    if not isinstance(name, str) or not name:
        raise ItemError(f"{where}: 'id' should be a text that is not empty")
    scores = row.get("judge_scores")
    listed = cast("list[object]", scores) if isinstance(scores, list) else [] if scores is None else [scores]
    for score in listed:
        if isinstance(score, bool) or not isinstance(score, int | float) or not -math.inf < score < math.inf:
            raise ItemError(f"{where}: 'judge_scores' holds {escape(repr(score))[:80]}, which is no finite number")
    feedback = _texts(row, "judge_feedback", where)
    if isinstance(row.get("judge_feedback"), str):  # one text is about all readings
        feedback *= len(listed)
    strengths, weaknesses = _texts(row, "strengths", where), _texts(row, "weaknesses", where)
    return name, [
        {
            "gestalt": score,
            "reasoning": feedback[place] if place < len(feedback) else "",
            "strengths": strengths,
            "weaknesses": weaknesses,
        }
        for place, score in enumerate(listed)
    ]


def _texts(row: dict[str, Any], name: str, where: str) -> list[str]:
    value: object = row.get(name)
    if value is None:
        return []
    listed = [value] if isinstance(value, str) else value
    if isinstance(listed, list) and all(isinstance(one, str) for one in cast("list[object]", listed)):
        return cast("list[str]", listed)
    raise ItemError(f"{where}: '{name}' should be a text or a list of texts")
