"""A function of the person's own, named in the configuration as ``module:function``."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from jumar.core.text import escape
from jumar.errors import ConfigError

__all__ = ["load_function"]


def load_function(reference: str, base: Path, *, key: str, takes: str) -> Any:
    """Return the function ``module:function``, which is looked for in ``base``, the configuration's directory, first.

    ``key`` is what the configuration calls it, ``takes`` completes "it takes". Errors: :class:`ConfigError` when the module
    cannot be imported, has no such name, or what it has is no function.
    """
    module, _, name = reference.partition(":")
    directory = str(base.resolve())
    sys.path.insert(0, directory)
    try:
        found: Any = getattr(importlib.import_module(module), name)
    except Exception as error:
        why = escape(f"{type(error).__name__}: {error}")
        raise ConfigError(f"{key} '{escape(reference)}' cannot be loaded: {why}") from error
    finally:
        sys.path.remove(directory)
    if not callable(found):
        raise ConfigError(f"{key} '{escape(reference)}' is no function: it takes {takes}")
    return found
