"""Every error that jumar raises on purpose, and the exit code that the command line gives for it.

    JumarError                      1   something failed that is not the caller's mistake
    ├── UsageError                  2   the caller asked for something that cannot be done
    │   ├── ConfigError             2   a configuration file, an option or an environment variable
    │   │   └── MissingExtraError   2   a package that only an extra brings (also an ImportError)
    │   ├── ScoreError              2   a score, dimension or weight that is missing or not usable (also a ValueError)
    │   ├── StrategyError           2   a selection strategy that does not exist, or a parameter out of range (also a ValueError)
    │   ├── ArtifactError           2   a path that is missing, leaves the root or is over the quota
    │   ├── DuplicateIterationError 2   the same iteration number twice
    │   ├── NotFoundError           2   no such loop, iteration or decision
    │   ├── BrokenStartError        2   a check or scorer can say nothing of the state before the loop, so that nothing is begun
    │   ├── LoopFinishedError       2   a finished loop was run again
    │   ├── ConflictError           2   the target changed since it was looked at
    │   ├── ExistsError             2   what would be written is there already (also a FileExistsError)
    │   ├── ItemError               2   an item to be judged, or the file that it is read from, is not usable
    │   └── PatternLoadError        2   a patterns file that is missing, damaged, too new or out of bounds
    ├── NothingEvaluatedError      12   there is no iteration with a valid score
    ├── LockedError                13   another process is writing this loop
    ├── StoreDamagedError          14   what is on disk is not what was written
    │   ├── ForgedError             14   a file of a loop that jumar did not write
    │   ├── OtherKeyError           14   a file that bears another key's mark, in a loop of this user
    │   └── FormatTooNewError      14   written by a newer jumar
    ├── StoreWriteError             1   the disk refused (full, read-only, input/output error)
    ├── PatternSaveError            1   patterns that would not be readable again; the file is as it was
    └── EvaluationUnreliableError   1   too many items could not be judged to say anything about the rest

Messages are for the person who reads them: they name the file, the field and what to do next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "ArtifactError",
    "BrokenStartError",
    "ConfigError",
    "ConflictError",
    "DuplicateIterationError",
    "EvaluationUnreliableError",
    "ExistsError",
    "ForgedError",
    "FormatTooNewError",
    "ItemError",
    "JumarError",
    "LockedError",
    "LoopFinishedError",
    "MissingExtraError",
    "NotFoundError",
    "NothingEvaluatedError",
    "OtherKeyError",
    "PatternLoadError",
    "PatternSaveError",
    "ScoreError",
    "StoreDamagedError",
    "StoreWriteError",
    "StrategyError",
    "UsageError",
]


class JumarError(Exception):
    """Root of the tree. ``exit_code`` is what the command line ends with."""

    exit_code: ClassVar[int] = 1


class UsageError(JumarError):
    """The caller asked for something that cannot be done; nothing was changed."""

    exit_code: ClassVar[int] = 2


class ConfigError(UsageError):
    """A configuration file, an option or an environment variable is wrong."""


class MissingExtraError(ConfigError, ImportError):
    """An optional dependency is not installed; the message says which extra brings it."""


class ScoreError(UsageError, ValueError):
    """A score, dimension or weight is missing, unknown, not finite or out of range."""


class StrategyError(UsageError, ValueError):
    """A selection strategy does not exist, or a parameter or a limit of it is out of range."""


class ArtifactError(UsageError):
    """An artifact is missing, lies outside the root, or is over the quota."""


class DuplicateIterationError(UsageError):
    """An iteration with this number is already recorded; records are written once."""


class NotFoundError(UsageError):
    """There is no such loop, iteration or decision."""


class BrokenStartError(UsageError):
    """A check or scorer can say nothing of the state before the loop, and so of no iteration; nothing was paid for."""


class LoopFinishedError(UsageError):
    """The loop has ended; running it again would pay for nothing that was asked for."""


class ConflictError(UsageError):
    """The target is not what the plan was made for; nothing was overwritten."""


class ExistsError(UsageError, FileExistsError):
    """A run or a best bundle is there already; nothing is ever overwritten."""


class ItemError(UsageError):
    """An item to be judged, or the file that it is read from, is not usable; the message names the line and the field."""


class PatternLoadError(UsageError):
    """A patterns file is missing, damaged beyond its backup, written by a newer version, or has a value out of bounds."""


class NothingEvaluatedError(JumarError):
    """No iteration has a valid score, so there is nothing to choose from."""

    exit_code: ClassVar[int] = 12


class LockedError(JumarError):
    """Another process holds the lock; the message says which."""

    exit_code: ClassVar[int] = 13


class StoreDamagedError(JumarError):
    """A file of the store is missing, cut off, altered or not what its format says."""

    exit_code: ClassVar[int] = 14


class ForgedError(StoreDamagedError):
    """A file of the store was not written by jumar. ``path`` is where it lies, ``way`` what to do about it."""

    def __init__(self, path: Path, way: str = "the next `jumar run` sets it aside and says so") -> None:
        super().__init__(f"{path} was not written by jumar, or was changed since; {way}")
        self.path = path


class OtherKeyError(StoreDamagedError):
    """A file bears the mark of a key that is not here, in a loop that was begun with the one that is."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} bears the mark of another machine or user, and anybody can write such a mark. If the loop was gone on with "
            "there, `jumar repair --believe` takes all that does as it lies; else `jumar repair -y` sets it aside"
        )
        self.path = path


class FormatTooNewError(StoreDamagedError):
    """A file of the store was written by a newer version of jumar."""


class StoreWriteError(JumarError):
    """The disk refused a write: full, read-only, or an input/output error."""


class PatternSaveError(JumarError):
    """The patterns to be saved would not be readable again; the file was not touched."""


class EvaluationUnreliableError(JumarError):
    """More items than allowed could not be judged: what the others say would mislead.

    ``evaluation`` holds the results that there are, where the judge was asked by :mod:`jumar.judging`.
    """

    evaluation: Any = None
