"""What the cheap judge knows: patterns that fire on an item's text, where they come from, and how they are kept.

Everything named here is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from jumar.patterns.matcher import PatternMatcher
    from jumar.patterns.models import PatternProposal, PatternSet, PatternV1, PatternV2, TechValidation, ValuePhrase

__all__ = [
    "PatternMatcher",
    "PatternProposal",
    "PatternSet",
    "PatternV1",
    "PatternV2",
    "TechValidation",
    "ValuePhrase",
]

_ELSEWHERE = {
    "PatternMatcher": "matcher",
    "PatternProposal": "models",
    "PatternSet": "models",
    "PatternV1": "models",
    "PatternV2": "models",
    "TechValidation": "models",
    "ValuePhrase": "models",
}
"""Where a name is defined, below this package."""


if not TYPE_CHECKING:  # pragma: no branch - a type checker that saw this would believe in every name

    def __getattr__(name: str) -> object:
        """Load a public name when it is first used, and keep it."""
        if name not in _ELSEWHERE:
            raise AttributeError(f"module 'jumar.patterns' has no attribute {name!r}")
        value = getattr(import_module(f"jumar.patterns.{_ELSEWHERE[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """Return the public names, loaded or not."""
    return sorted({*globals(), *__all__})
