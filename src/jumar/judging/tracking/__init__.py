"""Does the cheap judge track the expensive one? Item by item, with intervals, against what needs no judge at all. Pure."""

from __future__ import annotations

from importlib.util import find_spec

from jumar.errors import ConfigError

__all__ = ["require_statistics"]


def require_statistics() -> None:
    """Raise :class:`jumar.errors.ConfigError` where the packages that these statistics need are not installed."""
    missing = [name for name in ("numpy", "scipy") if find_spec(name) is None]
    if missing:
        raise ConfigError(f"the statistics of both judges need {' and '.join(missing)}: pip install 'jumar[judge]'")
