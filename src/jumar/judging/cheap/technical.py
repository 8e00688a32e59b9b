"""Does the technical area name a place in the code?"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence

from jumar.judging.cheap.phrases import has_phrase
from jumar.judging.patterns.models import TechValidation
from jumar.judging.rubric import TechnicalRules

__all__ = ["file_pattern", "technical_scorer"]


def file_pattern(rules: TechnicalRules, known: TechValidation) -> re.Pattern[str]:
    r"""Return the expression for a path to a source file, ``\w+/\w+\.EXTENSION``; the extension has to end there.

    ``app/data.json`` is no ``.js`` file.
    """
    extensions = dict.fromkeys(one.lstrip(".") for one in (*rules.extensions, *known.valid_extensions))
    words = "|".join(re.escape(one) for one in extensions if one)
    return re.compile(rf"\w+/\w+\.(?:{words})(?!\w)" if words else r"(?!)")


def technical_scorer(rules: TechnicalRules, known: TechValidation) -> Callable[[str | None], float]:
    """Return the function that scores a technical area, from 0.0 (nothing said) to 1.0. Case counts.

    The first repository that the area names decides: ``known_path`` with one of its paths, else ``known_repository``. Both
    count only between word boundaries: ``aero`` is not in ``aerospace/packages/``.
    """
    first = known.valid_repo_paths
    repositories: dict[str, Sequence[str]] = {
        **first,
        **{name: one for name, one in rules.repositories.items() if name not in first},
    }
    named = [(name, tuple(paths)) for name, paths in repositories.items() if name]
    is_file = file_pattern(rules, known).search

    @functools.lru_cache(maxsize=4096)  # a product has few areas
    def score(area: str | None) -> float:
        if not area:
            return 0.0
        for name, paths in named:
            if name in area and has_phrase(area, name):
                return rules.known_path if any(has_phrase(area, path) for path in paths if path) else rules.known_repository
        return rules.file if is_file(area) else rules.other

    return score
