"""What needs numpy says so, instead of failing with an import error of somebody else's."""

from __future__ import annotations

from importlib.util import find_spec

from jumar.errors import ConfigError

__all__ = ["MissingExtraError", "need_numpy"]


class MissingExtraError(ConfigError, ImportError):
    """An optional dependency is not installed; the message says which extra brings it."""


def need_numpy(what: str) -> None:
    """Return when numpy is installed. Errors: :class:`MissingExtraError` that names ``what`` and the extra."""
    if find_spec("numpy") is None:
        raise MissingExtraError(f"{what} needs numpy, which is not installed: pip install 'jumar[topk]'")
