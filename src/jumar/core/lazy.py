"""What is loaded when it is first used: public names of a package, and libraries that only an extra brings.

Where such a library is missing, the error says how to get it, and is not somebody else's import error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from jumar.errors import MissingExtraError

_ROOT = "jumar."


def loader(namespace: dict[str, object], elsewhere: Mapping[str, str]) -> Callable[[str], object]:
    """Return a package's ``__getattr__``: it loads a name from the module that ``elsewhere`` says, and keeps it in ``namespace``.

    ``namespace`` is the package's ``globals()``; modules are named below the package, those of other packages from the root
    (``jumar.judging.history``). Other names are an ``AttributeError``.
    """
    package = str(namespace["__name__"])

    def load(name: str) -> object:
        if name not in elsewhere:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = elsewhere[name]
        value = getattr(import_module(module if module.startswith(_ROOT) else f"{package}.{module}"), name)
        namespace[name] = value
        return value

    return load


_PACKAGES: Final = frozenset(
    {"ahocorasick_rs", "numpy", "rapidfuzz", "re2", "scipy", "sklearn", "snowballstemmer", "symspellpy", "threadpoolctl", "yake"}
)
_COMMANDS: Final = {"learn": "learn", "topk": "topk"}  # all others that compute ask for the extra of the judges


def need_extra(extra: str, what: str, *modules: str) -> None:
    """Return when all ``modules`` can be imported. Errors: :class:`MissingExtraError` that names ``what`` and the extra."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise MissingExtraError(f"{what} needs {' and '.join(missing)}, not installed here: pip install 'jumar[{extra}]'")


class LazyPackage:
    """Stands for a package that is imported when something of it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)


def extra_of_command(error: ModuleNotFoundError, arguments: Sequence[str]) -> MissingExtraError | None:
    """Return the error that says how to get what a command could not import; None for a package that no extra brings.

    ``arguments`` are those of ``jumar``, the command first.
    """
    package = (error.name or "").partition(".")[0]
    if package not in _PACKAGES:
        return None
    command = arguments[0] if arguments else ""
    extra = _COMMANDS.get(command, "judge")
    return MissingExtraError(f"jumar {command} needs {package}, not installed here: pip install 'jumar[{extra}]'")
