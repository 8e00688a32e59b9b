"""What the scorers of a text share: which files it is in, and what a missing or unreadable one means."""

from __future__ import annotations

from collections.abc import Callable

from jumar.core.files import UnreadableFileError
from jumar.loop.scorers.base import reading
from jumar.model.protocols import StepContext
from jumar.model.records import ScoreReading
from jumar.processes.values import ScoreValue
from jumar.processes.written_files import read_text

__all__ = ["TextScorer"]


class TextScorer:
    """Reads the files that ``paths`` (relative paths or globs) name, as one text, and gives it to ``measure``.

    A document that is missing is the candidate's doing: 0.0 with the reason "missing". One that may not be read (a link out of
    the working directory, no regular file, too large) has no measure: an invalid score.
    """

    def __init__(self, dimension: str, name: str, paths: tuple[str, ...], measure: Callable[[str], ScoreValue]) -> None:
        self.dimension = dimension
        self._name = name
        self._paths = paths
        self._measure = measure

    def score(self, context: StepContext) -> ScoreReading:
        """Read and measure."""
        try:
            text = read_text(context.workdir, self._paths, among=frozenset(context.artifacts))
        except UnreadableFileError as error:
            return reading(self.dimension, self._name, ScoreValue(score=None, invalid=str(error)))
        if text is None:
            return reading(self.dimension, self._name, ScoreValue(score=0.0, reason=f"missing: {', '.join(self._paths)}"))
        return reading(self.dimension, self._name, self._measure(text))
