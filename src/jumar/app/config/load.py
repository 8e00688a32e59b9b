"""Finding and reading `jumar.toml` and `cases.toml`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumar.core.toml import parse_model, read_toml
from jumar.errors import ConfigError

if TYPE_CHECKING:
    from jumar.app.config.cases import CasesConfig
    from jumar.app.config.config import JumarConfig

DEFAULT_NAME = "jumar.toml"


def find_config(given: Path | None) -> Path | None:
    """Return the configuration file to use: the given one, else ``jumar.toml`` here, else None."""
    if given is not None:
        return given / DEFAULT_NAME if given.is_dir() else given
    default = Path(DEFAULT_NAME)
    return default if default.is_file() else None


def load_config(path: Path) -> JumarConfig:
    """Read and check ``path``. Errors: :class:`ConfigError`."""
    data, text = read_toml(path, "jumar init")
    if "cases" in data and "generator" not in data:
        raise ConfigError(f"{path}: this configures cases, not a loop: `jumar cases run {path}`")
    return parse_config(data, str(path), text)


def parse_config(data: dict[str, Any], where: str, text: str = "") -> JumarConfig:
    """Check ``data``; ``text`` is its source, from which line numbers are found."""
    from jumar.app.config.config import JumarConfig

    return parse_model(JumarConfig, data, where, text, {} if "validators" in data else {"validators": "checks"})


def load_cases_config(path: Path) -> CasesConfig:
    """Read and check a ``cases.toml``. Errors: :class:`ConfigError`."""
    from jumar.app.config.cases import CasesConfig

    data, text = read_toml(path, "jumar init --template cases")
    if "generator" in data and "cases" not in data:
        raise ConfigError(f"{path}: this configures a loop, not cases: `jumar run {path}`")
    return parse_model(CasesConfig, data, str(path), text)
