"""Is the title short, and does it say what is to be done?"""

from __future__ import annotations

import re
from collections.abc import Callable

from jumar.judging.rubric import TitleRules

__all__ = ["title_scorer"]


def title_scorer(rules: TitleRules) -> Callable[[str], float]:
    """Return the function that scores a title: 1.0 or 0.0.

    An action word may be inflected by ``s``, ``es``, ``d``, ``ed`` or ``ing`` (adds, fixes, updated, adding) and then has to end:
    ``Address`` does not begin with ``add``. An empty title gives 0.0.
    """
    words = "|".join(re.escape(word.lower()) for word in rules.action_words)
    begins = re.compile(rf"(?:{words})(?:s|es|d|ed|ing)?(?!\w)").match if words else None
    longest = rules.longest

    def score(title: str) -> float:
        return 1.0 if begins is not None and title and len(title) <= longest and begins(title.lower()) else 0.0

    return score
