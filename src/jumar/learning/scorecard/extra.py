"""What needs the libraries of learning says so, instead of failing with an import error of somebody else's."""

from __future__ import annotations

from importlib.util import find_spec

from jumar.patterns.extra import MissingExtraError

__all__ = ["MissingExtraError", "need_learn"]


def need_learn(what: str, *modules: str) -> None:
    """Return when all ``modules`` can be imported. Errors: :class:`MissingExtraError` that names ``what`` and the extra."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise MissingExtraError(f"{what} needs {' and '.join(missing)}, not installed here: pip install 'jumar[learn]'")
