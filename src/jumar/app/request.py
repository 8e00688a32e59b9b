"""From command-line options to a configuration: laid over a file, or standing alone."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jumar.app.config import JumarConfig
from jumar.app.limits import OPTIONS, GivenLimits, limits_in
from jumar.app.load import find_config, load_config, parse_config, read_toml
from jumar.errors import ConfigError

__all__ = ["command_line_config", "configured", "given_limits"]

_PLACES = {
    "objective": ("loop", "objective"),
    "loop_id": ("loop", "id"),
    "isolation": ("loop", "isolation"),
    "continue_from": ("loop", "continue_from"),
    "candidates": ("loop", "candidates"),
    "workers": ("loop", "workers"),
    "threshold": ("selection", "threshold"),
    "mode": ("selection", "mode"),
    "timeout": ("generator", "timeout"),
    "max_cost": ("budget", "max_cost_usd"),
    "max_tokens": ("budget", "max_tokens"),
    "max_seconds": ("budget", "max_seconds"),
}
_LISTS = {
    "include": ("artifacts", "include"),
    "exclude": ("artifacts", "exclude"),
    "environment": ("loop", "env"),
    "protect": ("loop", "protect"),
}


def command_line_config(command: Sequence[str], given: Mapping[str, Any]) -> JumarConfig:
    """Return the configuration of ``jumar run [options] -- COMMAND``. Errors: :class:`ConfigError`."""
    return parse_config(_overlaid({"generator": {"command": list(command)}}, given), "the command line")


def configured(given: Mapping[str, Any]) -> tuple[JumarConfig, Path]:
    """Return the configuration file's content with the options laid over it, and the file.

    Errors: :class:`ConfigError`, also when there is neither a file nor a command.
    """
    path = find_config(given["config"])
    if path is None:
        raise ConfigError(
            "there is no jumar.toml here and no command after --; `jumar init` writes a configuration, or try\n"
            "  jumar run -n 5 --check 'pytest -q' -- AGENT -p 'make the tests pass'"
        )
    config = load_config(path)
    data = config.model_dump(mode="json", exclude_unset=True)
    changed = _overlaid(data, given)
    where = f"{path} with the command line's options"
    return (config if changed == data else parse_config(changed, where)), path


def given_limits(given: Mapping[str, Any], path: Path | None) -> GivenLimits:
    """Return which limits the options gave, and which the configuration in ``path`` says without them."""
    options = {key: given.get(option.removeprefix("--").replace("-", "_")) for key, option in OPTIONS.items()}
    return GivenLimits(
        command_line={key: value for key, value in options.items() if value is not None},
        file={} if path is None else limits_in(read_toml(path, "jumar init")[0]),
    )


def _overlaid(data: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    merged: dict[str, Any] = copy.deepcopy(dict(data))
    for option, (table, key) in _PLACES.items():
        if given.get(option) is not None:
            merged.setdefault(table, {})[key] = given[option]
    for option, (table, key) in _LISTS.items():
        if given.get(option):
            section: dict[str, Any] = merged.setdefault(table, {})
            section[key] = [*section.get(key, []), *given[option]]
    if given.get("max_iterations") is not None:
        merged.get("stop", {}).pop("max_iterations", None)
        merged.setdefault("loop", {})["max_iterations"] = given["max_iterations"]
    if given.get("max_seconds") is not None:
        merged.get("stop", {}).pop("max_seconds", None)
    if given.get("checks"):
        merged["validators"] = [*merged.get("validators", []), *_validators(given["checks"])]
    return merged


def _validators(checks: Sequence[str]) -> list[dict[str, Any]]:
    return [{"name": check, "command": check} for check in dict.fromkeys(checks)]
