"""What a judge wrote: scores by JMESPath, the size of a diff, and the built-in step ``feedback`` that is made from them.

Whatever is wrong with the file is a problem in the result, not an error. A disk that refuses to read it says nothing about the
judge: that is raised, as ``OSError``, and the file is read again later.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

from jumar.cases.ranking import thresholds_reached
from jumar.cases.records import CaseLimits
from jumar.core.codec import FORMAT, is_finite
from jumar.core.files import read_bytes
from jumar.core.leftovers import is_of_the_machine
from jumar.core.text import escape
from jumar.errors import ConfigError
from jumar.model.ordering import shown
from jumar.model.pipeline import DEFAULT_DIFF, DEFAULT_KEYS, CaseStepContext, Scale

if TYPE_CHECKING:
    from jmespath.parser import ParsedResult

_LONGEST_REASON: Final = 60
_NAMED: Final = 8
NO_SCALES: Final[Mapping[str, Scale]] = MappingProxyType({})
_LARGEST: Final = 64 << 20
_DEEPEST: Final = 100
_OVERALL: Final = ("composite_score", "grade", "summary")
_DIMENSION: Final = ("name", "score", "weight", "explanation", "matched_elements", "missing_elements")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseJudgement:
    """Scores by the name of their key; None where there is no usable one, and ``problems`` says why for each of those."""

    values: Mapping[str, float | None]
    problems: Mapping[str, str]


@functools.lru_cache(maxsize=256)
def _compiled(expression: str) -> ParsedResult:
    import jmespath

    return jmespath.compile(expression)


def check_expression(expression: str, *, where: str) -> str:
    """Return ``expression`` when it is JMESPath. Errors: :class:`jumar.errors.ConfigError`."""
    from jmespath.exceptions import JMESPathError

    try:
        _compiled(expression)
    except JMESPathError as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"{where}: {escape(repr(expression))} is no JMESPath expression: {escape(reason)}") from None
    return expression


def read_judgement(path: Path, keys: Mapping[str, str], scales: Mapping[str, Scale] = NO_SCALES) -> CaseJudgement:
    """Read the judge's file and find each of ``keys`` in it by its JMESPath expression.

    A score is a finite number, on any scale where ``scales`` has none for its key; a bool, a string of digits, NaN or an infinity
    is none.
    A file that is missing, or closed to its reader, is a problem. Errors: ``OSError`` of the machine, such as an input/output
    error or too many open files.
    """
    document, problem = _document(path)
    if problem is not None:
        return CaseJudgement(
            values=MappingProxyType(dict.fromkeys(keys)), problems=MappingProxyType(dict.fromkeys(keys, problem))
        )
    values: dict[str, float | None] = {}
    problems: dict[str, str] = {}
    for name, expression in keys.items():
        value, wrong = _evaluated(document, expression, path.name)
        if value is not None and name in scales and value not in scales[name]:
            value, wrong = None, f"{name} is {shown(value)} in {escape(path.name)}, outside of its scale: {scales[name]}"
        values[name] = value
        if wrong is not None:
            problems[name] = wrong
    return CaseJudgement(values=MappingProxyType(values), problems=MappingProxyType(problems))


def diff_size(path: Path | None, expressions: Sequence[str] = DEFAULT_DIFF) -> float | None:
    """Return the sum of ``expressions`` over a diff file; None when there is none, or a part of it is no finite number.

    Errors: as :func:`read_judgement`.
    """
    if path is None:
        return None
    document, problem = _document(path)
    if problem is not None:
        return None
    parts = [_evaluated(document, expression, path.name)[0] for expression in expressions]
    return None if None in parts else sum(part for part in parts if part is not None)


def _document(path: Path) -> tuple[Any, str | None]:
    name = escape(path.name)
    try:
        if path.stat().st_size > _LARGEST:
            return None, f"{name} is larger than {_LARGEST >> 20} MB"
        content = read_bytes(path, links=True)
    except OSError as error:
        if is_of_the_machine(error) and not path.is_symlink():  # /proc has files that refuse every reader
            raise
        return None, f"{name} cannot be read: {error.strerror}"
    try:
        document = json.loads(content)
        return (None, f"{name} is nested too deeply") if _is_deep(document) else (document, None)
    except UnicodeDecodeError as error:
        return None, f"{name} is not UTF-8 at byte {error.start}"
    except json.JSONDecodeError as error:
        return None, f"{name} is not JSON: {error.msg} in line {error.lineno}" if content.strip() else f"{name} is empty"
    except RecursionError:
        return None, f"{name} is nested too deeply"
    except ValueError:  # Python refuses to read integers of more than some thousand digits
        return None, f"{name} holds a number of thousands of digits"


def _is_deep(document: Any) -> bool:
    """Whether a document has more levels than any judge writes: what goes through it level by level has an end."""
    level = [document]
    for _ in range(_DEEPEST):
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in cast("Iterable[Any]", each.values() if isinstance(each, dict) else each)
        ]
    return bool(level)


def _evaluated(document: Any, expression: str, name: str) -> tuple[float | None, str | None]:
    from jmespath.exceptions import JMESPathError

    where = f"{escape(expression)} in {escape(name)}"
    try:
        value: object = _compiled(expression).search(document)
    except JMESPathError as error:
        return None, f"{where} cannot be evaluated: {escape(' '.join(str(error).split()))[:_LONGEST_REASON]}"
    if value is None:
        return None, f"there is no {where}{_there(document, expression)}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None, f"{where} is {shown(value)}, not a number"
    return (value, None) if is_finite(value) else (None, f"{where} is {shown(value)}, not a finite number")


def _there(document: Any, expression: str) -> str:
    """Return the names of the dimensions that there are: a judge often calls them otherwise than the default keys do.

    Nothing where one of them is asked for: then it has no score, and its name is not the matter.
    """
    listed: object = cast("dict[str, Any]", document).get("dimensions") if isinstance(document, dict) else None
    items = cast("list[object]", listed) if isinstance(listed, list) else []
    names = [str(cast("dict[str, Any]", item).get("name")) for item in items if isinstance(item, dict)]
    if any(name in expression for name in names):
        return ""
    return f" (its dimensions are called {escape(', '.join(names[:_NAMED]))})" if names else ""


def write_feedback(context: CaseStepContext, limits: CaseLimits, keys: Mapping[str, str] = DEFAULT_KEYS) -> None:
    """Write the role ``feedback`` from the role ``judge``, in the original orchestrator's fields.

    ``stop_reached`` says whether every threshold holds. A judge's file that cannot be used is said under ``problems``, and its
    scores are null: that is for the iteration's record to judge, and no failure of this step.
    """
    judgement = read_judgement(context.inputs["judge"], keys, limits.scales)
    document, _ = _document(context.inputs["judge"])
    judged = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
    listed = judged.get("dimensions")
    items = cast("list[object]", listed) if isinstance(listed, list) else []
    dimensions = [_picked(cast("dict[str, Any]", item), _DIMENSION) for item in items if isinstance(item, dict)]
    feedback = {
        "format": FORMAT,
        "run_id": context.run_id,
        "iter_num": context.iteration,
        "average_score": judgement.values.get("overall"),
        "accuracy_score": judgement.values.get("accuracy"),
        "scores": dict(judgement.values),
        "problems": sorted(set(judgement.problems.values())),
        "per_case": {context.case_id: {**_picked(judged, _OVERALL), "dimensions": dimensions}},
        "stop_reached": thresholds_reached(judgement.values, limits.thresholds, limits.at_most),
        "stop": {f"{'max' if name in limits.at_most else 'min'}_{name}": limit for name, limit in limits.thresholds.items()},
    }
    context.outputs["feedback"].write_bytes(_encoded(_finite(feedback)))


def _encoded(document: Any) -> bytes:
    """Return JSON that people can read, whatever their language; a text that is no Unicode is escaped instead."""
    try:
        return (json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
    except UnicodeEncodeError:
        return (json.dumps(document, indent=2, allow_nan=False) + "\n").encode("ascii")


def _finite(value: Any) -> Any:
    """Return a document in which NaN and infinities are null: JSON has neither, and ``1e999`` is read as an infinity."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_finite(item) for item in cast("list[Any]", value)]
    return value


def _picked(item: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: item[name] for name in names if name in item}


@dataclass(frozen=True, slots=True)
class Builtin:
    """One of them. ``write`` gets the step's context, the limits of the case, and where its judge writes each key."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    write: Callable[[CaseStepContext, CaseLimits, Mapping[str, str]], None]


BUILTINS: Final[Mapping[str, Builtin]] = MappingProxyType(
    {"feedback": Builtin(inputs=("judge",), outputs=("feedback",), write=write_feedback)}
)
