"""What needs the libraries of the cheap judge says so, instead of failing with an import error of somebody else's."""

from __future__ import annotations

from importlib.util import find_spec

from jumar.topk.extra import MissingExtraError

__all__ = ["MissingExtraError", "need_judge"]


def need_judge(what: str, *modules: str) -> None:
    """Return when all ``modules`` can be imported. Errors: :class:`MissingExtraError` that names ``what`` and the extra."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise MissingExtraError(f"{what} needs {' and '.join(missing)}, not installed here: pip install 'jumar[judge]'")
