"""Ratings of the same items by several raters, read from files of items.

With two files or more each file is a rater, and a list of scores in one of them is a rater's repeats, of which the median counts.
With one file the scores are lists, and the raters are the places in them. A null in a list is a rating that was not given.
"""

from __future__ import annotations

import contextlib
import math
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from jumar.core.text import escape, plural
from jumar.errors import ConfigError, ItemError
from jumar.judging.asking.summary import JudgeNoise, judge_noise
from jumar.judging.items.sources import decode, named, read_chunks

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT_KEY: Final = "gestalt"
DEFAULT_GROUP: Final = "group"
RECORDED_KEY: Final = "judge_scores"
"""The key of recorded verdicts, which is looked at where no record has the default one."""
_SHOWN: Final = 5
_MOST_KEYS: Final = 20
_SCALES: Final = ((0.0, 1.0), (1.0, 5.0), (1.0, 10.0), (0.0, 100.0))


@dataclass(frozen=True, slots=True)
class Rating:
    """One rater's scores of an item, at least one, and the file's group and text of it."""

    scores: tuple[float, ...]
    group: str | None = None
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rater:
    """``ratings`` by the item's id, in the order of the file. ``single`` are their medians, which are what is compared."""

    name: str
    ratings: Mapping[str, Rating]
    scale: tuple[float, float] | None = None
    single: Mapping[str, float] = field(init=False)

    def __post_init__(self) -> None:
        medians = {item: statistics.median(rating.scores) for item, rating in self.ratings.items()}
        if self.scale is not None:
            low, high = self.scale
            medians = {item: 1 + 4 * (score - low) / (high - low) for item, score in medians.items()}
        object.__setattr__(self, "single", medians)

    @property
    def noise(self) -> JudgeNoise | None:
        """How far the repeats of an item are from each other, None where there are none; in points of the rater's own scale."""
        return judge_noise(rating.scores for rating in self.ratings.values())


def read_raters(
    files: Sequence[Path], *, keys: Sequence[str] = (), group: str = DEFAULT_GROUP, scales: Sequence[tuple[float, float]] = ()
) -> list[Rater]:
    """Return the raters of ``files``; each needs two items at least that another one has too.

    ``keys`` name the score in a record (a JMESPath expression: ``dimensions.fluency``), one for all files or one a file; by
    default ``gestalt``, or ``judge_scores`` in a file that has none. ``scales`` map each file's scores linearly onto 1 to 5.
    Records without a score are passed over. Errors: :class:`jumar.errors.ItemError` that names file and line, or says that two
    raters share no item or use different scales; :class:`jumar.errors.ConfigError` for scales that do not fit the files, and for
    a ``group`` that no record has.
    """
    for option, given, enough in (("--scale", scales, {0, len(files)}), ("--key", keys, {0, 1, len(files)})):
        if len(given) not in enough:
            times = f"{plural(len(given), 'time')} for {plural(len(files), 'file')}"
            raise ConfigError(f"{option} is given {times}; give it once for each file")
    named_keys: list[str | None] = [*keys] * (1 if len(keys) > 1 else len(files)) or [None] * len(files)
    names = _names(files, named_keys)
    columns = [_read(path, key, group) for path, key in zip(files, named_keys, strict=True)]
    if group != DEFAULT_GROUP and not any(rating.group for ratings in columns for rating in ratings.values()):
        raise ConfigError(f"--group {escape(group)}: no record that has a score has this key; check its spelling")
    mapped = list(scales) or [None] * len(files)
    for path, ratings, scale in zip(files, columns, scales, strict=False):
        _refuse_outside(path, ratings, scale)
    if len(files) == 1:
        return _places(columns[0], named(files[0]), mapped[0])
    raters = [
        Rater(name=name, ratings=_given(ratings), scale=scale)
        for name, ratings, scale in zip(names, columns, mapped, strict=True)
    ]
    _refuse_strangers(raters)
    if not scales:
        _refuse_scales(raters)
    return raters


def _refuse_outside(path: Path, ratings: Mapping[str, Rating], scale: tuple[float, float]) -> None:
    low, high = scale
    for item, rating in ratings.items():
        for score in rating.scores:
            if score < low or score > high:  # a rating that was not given is NaN, and neither
                raise ItemError(
                    f"{named(path)}: the score {score:g} of {escape(item)} is outside of {low:g},{high:g}, the --scale that is "
                    "given for this file; give the one that the rater used"
                )


def _names(files: Sequence[Path], keys: Sequence[str | None]) -> list[str]:
    """Return a short name for each file: its stem, else its path, its key, or both: the first that no other file has."""
    names = [path.stem for path in files]
    for longer in (
        list(map(str, files)),
        [key or str(path) for path, key in zip(files, keys, strict=True)],
        [f"{path.stem} {key}" if key else str(path) for path, key in zip(files, keys, strict=True)],
    ):
        counted = Counter(names)
        names = [name if counted[name] == 1 else other for name, other in zip(names, longer, strict=True)]
    for name, times in Counter(names).items():
        if times > 1:
            raise ConfigError(f"{escape(name)} is named twice; a rater agrees with itself")
    return names


def _read(path: Path, key: str | None, group: str) -> dict[str, Rating]:
    import jmespath
    from jmespath.exceptions import JMESPathError

    records = list(_records(path))
    wanted = key or (DEFAULT_KEY if any(DEFAULT_KEY in record for _, record in records) else RECORDED_KEY)
    try:
        score_of = cast("Callable[[Any], Any]", jmespath.compile(wanted).search)
    except JMESPathError as error:
        raise ConfigError(f"--key {escape(wanted)}: {escape(str(error).splitlines()[0])}") from None
    ratings: dict[str, Rating] = {}
    for where, record in records:
        item = record.get("id")
        if isinstance(item, bool) or not isinstance(item, str | int) or item == "":
            raise ItemError(f"{where}: 'id' should be a text or a whole number that tells which item was rated")
        scores = _scores(score_of(record), wanted, where)
        if all(map(math.isnan, scores)):
            continue
        if str(item) in ratings:
            raise ItemError(f"{where}: the id '{escape(str(item))}' is in the file twice; keep one of the two")
        of = record.get(group)
        text = record.get("text")
        ratings[str(item)] = Rating(scores, None if of is None else str(of), text if isinstance(text, str) else "")
    if not ratings:
        raise _no_scores(path, key, [record for _, record in records])
    return ratings


def _no_scores(path: Path, key: str | None, records: Sequence[Mapping[str, Any]]) -> ItemError:
    if not records:
        return ItemError(f"{named(path)}: there is no record in it; give one JSON object a line, with an id and a score")
    tried = f"'{escape(key)}'" if key else f"'{DEFAULT_KEY}' or '{RECORDED_KEY}'"
    there = ", ".join(escape(name) for name in list(records[0])[:_MOST_KEYS])
    once = "" if key is None else ", once for each file where they differ"
    return ItemError(f"{named(path)}: no record has a score under {tried}; name the key with --key{once}. There are: {there}")


def _records(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for chunk in read_chunks(path):
        if chunk.origin == "lines":
            raise ItemError(f"{chunk.file}: lines of text hold no scores; give JSON Lines, a JSON array, .csv, .tsv or .parquet")
        for number, record in chunk.records:
            where = chunk.where(number)
            yield where, decode(record, where) if isinstance(record, bytes) else record


def _scores(value: object, key: str, where: str) -> tuple[float, ...]:
    """Return the scores in their places, not a number where there is none."""
    listed = cast("list[object]", value) if isinstance(value, list) else [] if value == "" else [value]
    return tuple(math.nan if score is None else _number(score, key, where) for score in listed)


def _given(ratings: Mapping[str, Rating]) -> dict[str, Rating]:
    """Return the ratings without the places that hold no score."""
    return {
        item: replace(rating, scores=tuple(score for score in rating.scores if not math.isnan(score)))
        for item, rating in ratings.items()
    }


def _number(value: object, key: str, where: str) -> float:
    if isinstance(value, str):  # a cell of a table
        with contextlib.suppress(ValueError):
            value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= 1e300:
        raise ItemError(f"{where}: '{escape(key)}' should be a finite number or a list of them, not {escape(repr(value))[:80]}")
    return float(value)


def _places(ratings: Mapping[str, Rating], file: str, scale: tuple[float, float] | None) -> list[Rater]:
    """Return one rater for each place in the lists of scores of one file."""
    most = max(len(rating.scores) for rating in ratings.values())
    if most < 2:
        raise ItemError(
            f"{file} has one score an item, and agreement needs two raters: name a second file, or a --key whose scores are lists"
        )
    raters = [
        Rater(
            name=f"rater {place + 1}",
            ratings={
                item: Rating((rating.scores[place],), rating.group, rating.text)
                for item, rating in ratings.items()
                if len(rating.scores) > place and not math.isnan(rating.scores[place])
            },
            scale=scale,
        )
        for place in range(most)
    ]
    for rater, alone in zip(raters, left_out(raters).values(), strict=True):
        if len(alone) == len(rater.ratings):
            raise ItemError(
                f"{file}: no item that {rater.name} scored has a score of another rater, so there is nothing to compare"
            )
    return raters


def left_out(raters: Sequence[Rater]) -> dict[str, list[str]]:
    """Return for each rater the ids that only that one has."""
    times = Counter(item for rater in raters for item in rater.ratings)
    return {rater.name: [item for item in rater.ratings if times[item] == 1] for rater in raters}


def _refuse_strangers(raters: Sequence[Rater]) -> None:
    for rater, alone in zip(raters, left_out(raters).values(), strict=True):
        if len(rater.ratings) - len(alone) < 2:
            others = [other for other in raters if other is not rater]
            seen = "; ".join(f"{escape(each.name)}: {_first(list(each.ratings))}" for each in (rater, others[0]))
            raise ItemError(
                f"{escape(rater.name)} shares {plural(len(rater.ratings) - len(alone), 'item')} with "
                f"{', '.join(escape(other.name) for other in others)}: ids are compared as they are written ({seen})"
            )


def _first(ids: Sequence[str]) -> str:
    return ", ".join(map(escape, ids[:_SHOWN])) + (", …" if len(ids) > _SHOWN else "")


def unmatched_text(name: str, ids: Sequence[str]) -> str:
    """Return how many items only this rater has, and the first of them."""
    verb = "is" if len(ids) == 1 else "are"
    return f"{plural(len(ids), 'item')} of {escape(name)} {verb} rated by nobody else, and left out: {_first(ids)}"


def _refuse_scales(raters: Sequence[Rater]) -> None:
    """Refuse raters who cannot have meant one scale: one stays within a smaller usual scale, in the lower half of the other."""
    held = [(rater, min(rater.single.values()), max(rater.single.values())) for rater in raters]
    scales = [usual_scale(least, most) for _, least, most in held]
    (_, low, high), (_, other_low, other_high) = held[scales.index(min(scales))], held[scales.index(max(scales))]
    if min(scales) == max(scales) or high <= low or other_high <= other_low or high > other_high / 2:
        return
    uses = ", ".join(f"{escape(rater.name)} uses {least:g} to {most:g}" for rater, least, most in held)
    ways = " ".join("--scale {:g},{:g}".format(*_SCALES[scale]) for scale in scales)
    raise ItemError(f"these are different scales: {uses}. Say what each file's scale is, in their order: {ways}")


def usual_scale(low: float, high: float) -> int:
    """Return which of the usual scales is the smallest that holds both."""
    fitting = (place for place, (least, most) in enumerate(_SCALES) if least <= low and high <= most)
    return next(fitting, len(_SCALES) - 1)
