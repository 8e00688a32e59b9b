"""A judge from what a person writes: ``--judge openai:MODEL``, ``http://HOST:PORT/v1#MODEL``, ``replay:FILE``, ``command:…``."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from jumar.core.text import escape, nearest
from jumar.errors import ConfigError
from jumar.model.judges import Judge

if TYPE_CHECKING:
    from jumar.judging.asking.settings import JudgeSettings
    from jumar.model.budget.pricing import Prices, PriceTable

__all__ = ["FORMS", "judge_price", "judge_settings", "make_judge"]

FORMS: Final = (
    "openai:MODEL",
    "anthropic:MODEL",
    "http://HOST:PORT/v1#MODEL",
    "replay:FILE",
    "command:PROGRAM …",
    "mock:",
)


def make_judge(spec: str | None, *, max_tokens: int = 2000, base: Path | None = None) -> Judge:
    """Return the judge that ``spec`` names. ``max_tokens`` bounds the answers of language models.

    ``base`` is where the path of ``replay:`` starts, and where a program of ``command:`` runs; None is the current directory.

    Errors: :class:`jumar.errors.ConfigError` for no judge, one that does not exist, an extra or a key that is missing, a program
    that is not found; :class:`jumar.errors.NotFoundError` and :class:`jumar.errors.ItemError` of a recorded one.
    """
    if spec is None or not spec.strip():
        raise ConfigError(f"no judge is configured; name one with --judge: {', '.join(FORMS)}")
    kind, _, rest = spec.strip().partition(":")
    if kind in {"http", "https"}:
        return _endpoint(spec.strip(), max_tokens)
    if kind == "openai":
        from jumar.judging.judges.openai import OpenAIJudge

        return OpenAIJudge(rest, max_tokens=max_tokens)
    if kind == "anthropic":
        from jumar.judging.judges.anthropic import AnthropicJudge

        return AnthropicJudge(rest, max_tokens=max_tokens)
    if kind == "replay":
        from jumar.judging.judges.replay import ReplayJudge

        if not rest:
            raise ConfigError("replay: names no file; write replay:FILE")
        return ReplayJudge(Path(rest) if base is None else base / rest)
    if kind == "command":
        return _command(rest, base)
    if kind == "mock":
        from jumar.judging.judges.mock import MockJudge

        return MockJudge.from_options(rest)
    known = ("openai", "anthropic", "http", "https", "replay", "command", "mock")
    raise ConfigError(f"there is no judge '{escape(kind)}'{nearest(kind, known)}; there are {', '.join(FORMS)}")


def _endpoint(spec: str, max_tokens: int) -> Judge:
    from jumar.judging.judges.openai import KEY_VARIABLE, OpenAIJudge

    address, _, model = spec.partition("#")
    try:
        parts = urlsplit(address)
        usable = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
        parts = urlsplit("")
    if not usable:
        raise ConfigError("the judge's address names no host; write http://HOST:PORT/v1#MODEL")
    if parts.username is not None or parts.password is not None or parts.query:
        # not shown: it is most likely a key
        raise ConfigError(f"the judge's address holds a user, a password or a query; a key belongs into {KEY_VARIABLE}")
    if not model:
        raise ConfigError(f"{escape(address)} names no model; write {escape(address)}#MODEL")
    return OpenAIJudge(model, base_url=address, max_tokens=max_tokens)


def _command(line: str, base: Path | None) -> Judge:
    from jumar.judging.judges.command import CommandJudge

    try:
        argv = shlex.split(line)
    except ValueError as error:
        raise ConfigError(f"command: cannot be split into words: {error}; check its quotes") from None
    judge = CommandJudge(argv, directory=base)
    program = argv[0] if base is None or "/" not in argv[0] else str((base / argv[0]).absolute())
    if shutil.which(program) is None:
        raise ConfigError(f"command: the program '{escape(argv[0])}' is not found, or not executable")
    return judge


def judge_settings(options: Mapping[str, Any], *, explain: bool = True) -> tuple[JudgeSettings, Prices | None]:
    """Return how a judge is asked, from the options that ``jumar evaluate`` and ``[evaluator]`` share, and what tokens cost.

    Errors: :class:`jumar.errors.ConfigError` for one that is out of range.
    """
    from jumar.judging.asking.settings import JudgeSettings
    from jumar.model.budget.pricing import Prices

    taken = ("repeat", "max_cost", "reserve_cost", "concurrency", "timeout", "max_retries", "backoff_base")
    low, high = options["judge_scale"] or (1.0, 5.0)
    settings = JudgeSettings(**{name: options[name] for name in taken}, scale=(low, high), explain=explain)
    price = options["price"]
    return settings, None if price is None else Prices(input_per_million=price[0], output_per_million=price[1])


def judge_price(spec: str | None, table: PriceTable | None) -> Prices | None:
    """Return what the tokens of the judge ``spec`` cost, where its provider's price for the model is in ``table``.

    Only for models at their provider: what another server asks for a model of the same name is not known.
    """
    kind, _, model = (spec or "").strip().partition(":")
    found = table.find(model) if table is not None and kind in {"openai", "anthropic"} else None
    return None if found is None else found[1].prices
