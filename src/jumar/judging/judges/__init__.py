"""The expensive judge's providers, one a file: ``--judge openai:MODEL`` is ``openai.py``.

A provider says in ``FORM`` how its judges are written (empty: nobody is shown it), and in ``judge_of`` how one is made;
``LISTED`` where a model's name alone says what it costs, in the table of prices or in ``[budget.price]``. Nothing else has to
know of it.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, cast

from jumar.core.text import nearest
from jumar.errors import ConfigError
from jumar.judging.asking.settings import MAX_TOKENS
from jumar.model.protocols import Judge

if TYPE_CHECKING:
    from jumar.model.budget.pricing import Prices, PriceTable

__all__ = ["JudgeSpec", "forms", "judge_price", "kind_of", "make_judge"]

_ALSO: Final[Mapping[str, str]] = {"https": "http"}


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSpec:
    """What a person wrote, ``kind:rest``, with what bounds the answers of language models.

    ``base`` is where a relative path starts and a program runs, None is the current directory.
    """

    kind: str
    rest: str
    max_tokens: int = MAX_TOKENS
    base: Path | None = None


class _Provider(Protocol):
    FORM: str

    def judge_of(self, spec: JudgeSpec) -> Judge: ...


def _kinds() -> list[str]:
    names = [found.name for found in pkgutil.iter_modules(__path__) if not found.name.startswith("_")]
    return sorted([*names, *_ALSO])


def _provider(kind: str) -> _Provider:
    return cast("_Provider", import_module(f"{__name__}.{_ALSO.get(kind, kind)}"))


def forms() -> list[str]:
    """Return how judges are written, for people, such as ``openai:MODEL`` and ``replay:FILE``."""
    return [form for kind in _kinds() if kind not in _ALSO and (form := _provider(kind).FORM)]


def kind_of(spec: str | None) -> str:
    """Return what is before the colon of a judge.

    Errors: :class:`jumar.errors.ConfigError` for no judge, and for one that does not exist.
    """
    if spec is None or not spec.strip():
        raise ConfigError(f"no judge is configured; name one with --judge: {', '.join(forms())}")
    kind, colon, _ = spec.strip().partition(":")
    known = _kinds()
    if kind not in known or not colon:
        # only a word is shown: it may be an address with somebody's password
        named = f" '{kind}'{nearest(kind, known)}" if re.fullmatch(r"[a-z]{1,12}", kind) else " of this form"
        file = "; verdicts in a file are read with replay: before its name" if _is_file(spec.strip()) else ""
        raise ConfigError(f"there is no judge{named}; there are {', '.join(forms())}{file}")
    return kind


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except OSError:  # a name that is too long, or a place that may not be looked into
        return False


def make_judge(spec: str | None, *, max_tokens: int = MAX_TOKENS, base: Path | None = None) -> Judge:
    """Return the judge that ``spec`` names. ``max_tokens`` bounds the answers of language models.

    ``base`` is where the path of ``replay:`` starts, and where a program of ``command:`` runs; None is the current directory.

    Errors: :class:`jumar.errors.ConfigError` for no judge, one that does not exist, an extra or a key that is missing, a program
    that is not found; :class:`jumar.errors.NotFoundError` and :class:`jumar.errors.ItemError` of a recorded one.
    """
    kind = kind_of(spec)
    rest = (spec or "").strip().partition(":")[2]
    return _provider(kind).judge_of(JudgeSpec(kind=kind, rest=rest, max_tokens=max_tokens, base=base))


def judge_price(spec: str | None, table: PriceTable | None) -> Prices | None:
    """Return what the tokens of the judge ``spec`` cost, where its provider's price for the model is in ``table``.

    Only for models at their provider: what another server asks for a model of the same name is not known.
    """
    kind, _, model = (spec or "").strip().partition(":")
    listed = table is not None and kind in _kinds() and getattr(_provider(kind), "LISTED", False)
    found = table.find(model) if table is not None and listed else None
    return None if found is None else found[1].prices
