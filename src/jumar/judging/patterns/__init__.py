"""What the cheap judge knows: patterns that fire on an item's text, where they come from, and how they are kept.

Everything named here is loaded when it is first used.
"""

from __future__ import annotations

from jumar.core.lazy import loader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from jumar.judging.patterns.matcher import PatternMatcher
    from jumar.judging.patterns.merging import MergedPatterns, MergedProposals, merge_patterns, merge_proposals
    from jumar.judging.patterns.migrate import migrate_existing_patterns
    from jumar.judging.patterns.models import PatternProposal, PatternSet, PatternV1, PatternV2, TechValidation, ValuePhrase
    from jumar.judging.patterns.phrases import extract_keywords
    from jumar.judging.patterns.proposed import ValidationRule, validate_provisional_patterns
    from jumar.judging.patterns.reading import parse_patterns
    from jumar.judging.patterns.storage import (
        PatternStore,
        load_pattern_set,
        load_patterns_safely,
        save_patterns_safely,
        update_calibration_history,
    )

__all__ = [
    "MergedPatterns",
    "MergedProposals",
    "PatternMatcher",
    "PatternProposal",
    "PatternSet",
    "PatternStore",
    "PatternV1",
    "PatternV2",
    "TechValidation",
    "ValidationRule",
    "ValuePhrase",
    "extract_keywords",
    "load_pattern_set",
    "load_patterns_safely",
    "merge_patterns",
    "merge_proposals",
    "migrate_existing_patterns",
    "parse_patterns",
    "save_patterns_safely",
    "update_calibration_history",
    "validate_provisional_patterns",
]

_ELSEWHERE = {
    "MergedPatterns": "merging",
    "MergedProposals": "merging",
    "PatternMatcher": "matcher",
    "PatternProposal": "models",
    "PatternSet": "models",
    "PatternStore": "storage",
    "PatternV1": "models",
    "PatternV2": "models",
    "TechValidation": "models",
    "ValidationRule": "proposed",
    "ValuePhrase": "models",
    "extract_keywords": "phrases",
    "load_pattern_set": "storage",
    "load_patterns_safely": "storage",
    "merge_patterns": "merging",
    "merge_proposals": "merging",
    "migrate_existing_patterns": "migrate",
    "parse_patterns": "reading",
    "save_patterns_safely": "storage",
    "update_calibration_history": "storage",
    "validate_provisional_patterns": "proposed",
}
"""Where a name is defined, below this package."""

if not TYPE_CHECKING:  # pragma: no branch - a type checker that saw this would believe in every name
    __getattr__ = loader(globals(), _ELSEWHERE)


def __dir__() -> list[str]:
    """Return the public names, loaded or not."""
    return sorted({*globals(), *__all__})
