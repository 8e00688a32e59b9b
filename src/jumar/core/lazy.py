"""Public names of a package that are loaded when they are first used."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
