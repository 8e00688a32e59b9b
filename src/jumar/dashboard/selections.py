"""The pages over files of rankings: which there are, and one query with every strategy's cut."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from jumar.errors import NotFoundError, UsageError
from jumar.topk.contract import SCALES, check_limits
from jumar.topk.rankings import read_rankings, read_runs
from jumar.topk.report.page import QueryScores, SelectionAsked, render_html

if TYPE_CHECKING:
    from jumar.dashboard.library import Library
    from jumar.dashboard.pages import PageFrame
    from jumar.topk.result import Scale
    from jumar.topk.tuning.metrics import Comparison

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LONGEST_LINE: Final = 1 << 20
_LARGEST: Final = 100_000_000
_MOST_COMPARED: Final = 5_000  # queries: the comparison resamples them


def selections(frame: PageFrame, library: Library, query: Mapping[str, str]) -> str:
    """Return the page of the file that an address asks for, or of the files that there are.

    Errors: :class:`NotFoundError` for a file or query that is not there, :class:`UsageError` for what cannot be read so.
    """
    file = query.get("file", "")
    if not file:
        rows = [
            (name, f"/topk?{urlencode({'file': name})}") for name in library.tables() if _holds_rankings(library.path_of(name))
        ]
        return frame.page("rankings.html.j2", {"files": rows})
    asked = _asked(file, query)
    queries, comparison = _read(library.path_of(file), asked)
    wanted = query.get("query")
    place = 0 if wanted is None else next((at for at, one in enumerate(queries) if one.query_id == wanted), None)
    if place is None:
        raise NotFoundError(f"{file} has no query '{wanted}'")
    return render_html(asked, queries, place, comparison, frame.layout())


def _asked(file: str, query: Mapping[str, str]) -> SelectionAsked:
    limits = [query.get(name) or usual for name, usual in (("max_k", "20"), ("min_k", "1"))]
    scale = query.get("scale", "similarity")
    if scale not in SCALES or not all(limit.isascii() and limit.isdigit() and len(limit) < 7 for limit in limits):
        raise UsageError(f"limits are whole numbers, and scores are one of {', '.join(SCALES)}")
    most, least = check_limits(int(limits[0]), int(limits[1]))
    return SelectionAsked(file=file, max_k=most, min_k=least, scale=scale)


def _read(path: Path, asked: SelectionAsked) -> tuple[Sequence[QueryScores], Comparison | None]:
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
        raise UsageError(f"{asked.file} is no file of at most {_LARGEST // 1_000_000} MB: `jumar topk` reads larger ones")
    if path.suffix == ".jsonl" and b'"relevant"' not in _first_line(path):
        rankings = read_rankings(path)
        if not rankings:
            raise UsageError(f"{asked.file} holds no ranking")
        unlabelled = [
            QueryScores(query_id=_in_address(str(one.query_id)), scores=_sorted(one.scores, asked.scale), relevant=None)
            for one in rankings
        ]
        return unlabelled, None
    return _compared(path, (status.st_mtime_ns, status.st_size), asked)


@lru_cache(maxsize=8)
def _compared(path: Path, _stamp: tuple[int, int], asked: SelectionAsked) -> tuple[Sequence[QueryScores], Comparison | None]:
    queries = read_runs(path, scale=asked.scale)
    found = [QueryScores(query_id=_in_address(one.query_id), scores=one.scores, relevant=one.relevant) for one in queries]
    if len(queries) > _MOST_COMPARED:
        return found, None
    from jumar.topk.tuning.metrics import compare

    return found, compare(queries, max_k=asked.max_k, min_k=asked.min_k, scale=asked.scale)


def _in_address(query_id: str) -> str:
    """Return a name as an address can hold it: half of a pair of surrogates, which JSON can write, stands for no letter."""
    return query_id.encode("utf-8", "backslashreplace").decode()


def _sorted(scores: Sequence[float], scale: Scale) -> tuple[float, ...]:
    return tuple(sorted(scores, reverse=scale != "distance"))


def _first_line(path: Path) -> bytes:
    """Return the first line of a regular file, empty where there is none; what lies there may have changed since."""
    with contextlib.suppress(OSError), os.fdopen(os.open(path, _READ), "rb") as stream:
        if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            return stream.readline(_LONGEST_LINE)
    return b""


def _holds_rankings(path: Path) -> bool:
    line = _first_line(path)
    return b'"scores"' in line if path.suffix == ".jsonl" else b"query_id" in line and b"score" in line
