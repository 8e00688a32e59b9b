"""``topk.toml``: the selection that ``jumar topk tune`` found, and that ``jumar topk select --config`` reads.

format = 1
max_k = 20
min_k = 1

[selection]
strategy = "elbow"
drop_threshold = 0.1

[evidence]                 # where it comes from; for people, never read

TOML has no word for none: where a parameter may be none, the text "none" stands for it.

Or, with ``--table rule_selection``, as a layer of the settings that :mod:`jumar.topk.settings` loads: ``max_k`` and
``min_k`` in ``[pipeline.retrieval]``, the strategy in ``[pipeline.retrieval.rule_selection]``.
"""

from __future__ import annotations

import json
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jumar.core.text import escape, nearest
from jumar.errors import ConfigError, ExistsError, FormatTooNewError, JumarError, NotFoundError
from jumar.topk.base import SelectionStrategy
from jumar.topk.contract import check_limits, shown
from jumar.topk.settings import Selection, check_selection, load_selection, plain_value
from jumar.topk.strategies import create_selection_strategy

FORMAT = 1


_KEYS = ("format", "max_k", "min_k", "selection", "evidence")


def read_selection(path: Path, use: str | None = None) -> Selection:
    """Return what a ``topk.toml`` says, or the selection ``use`` of a file of settings with the environment over it.

    Errors: :class:`jumar.errors.NotFoundError`, :class:`jumar.errors.FormatTooNewError` for a newer format, and
    :class:`jumar.errors.ConfigError` that names the file and the key.
    """
    where = escape(str(path))
    try:
        document = tomllib.loads(path.read_bytes().decode("utf-8"))
    except (FileNotFoundError, IsADirectoryError) as error:
        raise NotFoundError(f"there is no file {where}; `jumar topk tune RUNS -o {where}` writes one") from error
    except OSError as error:
        raise NotFoundError(f"{where} cannot be read ({error.strerror}); name a file that can be") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{where}: not TOML ({error})") from error
    if "pipeline" in document and "selection" not in document:
        return load_selection(path, use)
    if use is not None:
        raise ConfigError(f"{where}: --use chooses among the selections of [pipeline.retrieval]; there is no such table in it")
    version = document.get("format", FORMAT)
    if isinstance(version, int) and version > FORMAT:
        raise FormatTooNewError(f"{where}: format {version} was written by a newer jumar; this one reads up to {FORMAT}")
    if "pipeline" in document:
        raise ConfigError(f"{where}: both [selection] and [pipeline] in one file: keep the one that is meant")
    for key in document:
        if key not in _KEYS:
            keys = (*_KEYS, "pipeline")
            raise ConfigError(f"{where}: unknown key '{escape(key)}'{nearest(key, keys)}; there are {', '.join(keys)}")
    if not isinstance(document.get("selection"), dict) or "strategy" not in document["selection"]:
        raise ConfigError(f"{where}: a table [selection] with a key 'strategy' is needed, or one of [pipeline.retrieval]")
    table: dict[str, Any] = {key: plain_value(value) for key, value in document["selection"].items()}
    try:
        max_k, min_k = check_limits(document.get("max_k", 20), document.get("min_k", 1))
        return Selection(strategy=create_selection_strategy(table), max_k=max_k, min_k=min_k)
    except JumarError as error:
        raise ConfigError(f"{where}: {error}") from error


def check_replaceable(path: Path, table: str | None) -> None:
    """Refuse to replace a file that is anything else than what ``tune`` wrote before, for ``table`` or as a ``topk.toml``.

    Errors: :class:`jumar.errors.ExistsError` that names what would be lost.
    """
    try:
        mode = path.lstat().st_mode
        # a link would be replaced by a file, and what is write-protected is meant to stay
        ours = stat.S_ISREG(mode) and mode & 0o222
        document: Any = tomllib.loads(path.read_bytes().decode("utf-8")) if ours else {}
    except FileNotFoundError:
        return
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError):
        document = {}
    if table is None:
        if _more(document, _KEYS, "") or document.get("format") != FORMAT or not isinstance(document.get("selection"), dict):
            raise ExistsError(
                f"-o {escape(str(path))}: exists already, and is no file that `jumar topk tune` wrote, or none to write to; it "
                "would be lost: write to another file, or delete this one first"
            )
        return
    more = _more(document, ("format", "pipeline", "evidence"), "")
    more += _more(document.get("pipeline"), ("retrieval",), "pipeline.")
    more += _more(_below(document, "pipeline", "retrieval"), ("max_k", "min_k", table), "pipeline.retrieval.")
    if more or not document:
        lost = f" and holds {', '.join(map(escape, more))}" if more else ""
        raise ExistsError(
            f"{escape(str(path))}: exists already{lost}, which would be lost; write to another file: settings are loaded from "
            "several, and later ones go before earlier ones"
        )


def _below(document: Any, *names: str) -> Any:
    for name in names:
        document = document.get(name) if isinstance(document, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return document  # pyright: ignore[reportUnknownVariableType]


def _more(table: Any, known: tuple[str, ...], before: str) -> list[str]:
    """Return the keys of a table that are not among ``known``."""
    return [f"{before}{key}" for key in table if key not in known] if isinstance(table, dict) else []  # pyright: ignore[reportUnknownVariableType]


def render_selection(selection: Selection, evidence: Mapping[str, Any], comment: str = "", *, table: str | None = None) -> str:
    """Return the text of a ``topk.toml``, or of a layer of settings whose ``table`` is one of ``SELECTIONS``.

    ``comment`` stands at the top, a line each. A parameter that is None is left out where that is its default and ``"none"``
    elsewhere, because TOML has no word for it. Errors: :class:`jumar.errors.ConfigError` for what settings cannot hold.
    """
    head = [f"# {escape(line)}".rstrip() for line in comment.splitlines()]
    limits = [f"max_k = {selection.max_k}", f"min_k = {selection.min_k}", ""]
    params = {"strategy": selection.strategy.name, **_written(selection.strategy)}
    if table is None:
        lines = [*head, f"format = {FORMAT}", *limits, "[selection]"]
    else:
        try:
            check_selection(params)
        except ValueError as error:
            raise ConfigError(
                f"[pipeline.retrieval.{table}] cannot hold what was found: {error}; write without --table"
            ) from error
        lines = [*head, "[pipeline.retrieval]", *limits, f"[pipeline.retrieval.{table}]"]
    lines += _pairs(params)
    if evidence:
        lines += ["", "[evidence]", *_pairs(evidence)]
    return "\n".join(lines) + "\n"


def _written(strategy: SelectionStrategy) -> dict[str, Any]:
    """Return the parameters as TOML can hold them: none that is no default as ``"none"``, none that is one not at all."""
    params = strategy.params()
    told = {name: value for name, value in params.items() if value is not None}
    left = create_selection_strategy({"strategy": strategy.name, **told}).params()
    return {name: "none" if value is None else value for name, value in params.items() if value != left[name] or name in told}


def _pairs(values: Mapping[str, Any]) -> list[str]:
    return [f"{name} = {_value(value)}" for name, value in values.items() if value is not None]


def _value(value: Any) -> str:
    """Return ``value`` as TOML. JSON's texts, numbers, booleans and lists are TOML, but for escapes of half characters."""
    if isinstance(value, str | bool | int | float | list | tuple):
        return json.dumps(value, allow_nan=False, ensure_ascii=False)
    raise TypeError(f"{shown(value)} has no place in a topk.toml")
