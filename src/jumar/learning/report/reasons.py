"""The learned set as a list of reasons: features with their steps, then phrases, each with its points of the scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

from jumar.core.text import escape, plural
from jumar.learning.report.view import SMALL, LearningReport, is_small, points_text

_WORDS: Final = {
    "distinct_ratio": "share of different words",
    "marks": "punctuation marks a word",
    "names": "capitalised words",
    "code": "backticks",
    "ends_whole": "ends as a sentence does",
    "sentence_length": "words a sentence",
    "word_length": "letters a word",
    "long_words": "share of words of 8 letters or more",
    "short_words": "share of words of 3 letters or fewer",
    "capitals": "share of capital letters",
    "repeated_pairs": "share of repeated word pairs",
    "repeated_triples": "share of repeated word triples",
}

_RELATED: Final = {
    "characters": "characters of the SOURCE",
    "length_ratio": "times as long as the SOURCE",
    "overlap": "share of its content words that are the SOURCE's",
    "covered": "share of the SOURCE's content words that occur",
    "shared": "content words of the SOURCE",
    "novel": "content words that the SOURCE lacks",
    "novel_numbers": "numbers that the SOURCE lacks",
    "novel_ratio": "share of words that are not the SOURCE's",
    "copied_pairs": "share of word pairs that are the SOURCE's",
    "copied_triples": "share of word triples that are the SOURCE's",
    "longest_copy": "words in a row that are the SOURCE's",
    "longest_copy_ratio": "share of the longest passage of the SOURCE",
    "position": "where in the SOURCE its words stand",
    "opening": "share of the SOURCE's first line that occurs",
    "ending": "share of the SOURCE's last line that occurs",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureReason:
    """A feature: ``steps`` say from which value on how many points are added; ``total`` is what all of them come to.

    ``reach`` is the most that it moves a score by, whatever its value.
    """

    name: str
    steps: tuple[str, ...]
    total: float
    fired: int
    reach: float

    @property
    def points(self) -> str:
        return points_text(self.total)


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseReason:
    """A pattern of words. ``seen`` says what it did on the held-out items, ``standing`` what is known of it."""

    id: str
    says: str
    value: float
    fired: int
    seen: str
    standing: str

    @property
    def points(self) -> str:
        return points_text(self.value)


def _value(one: Mapping[str, Any], unit: float | None) -> float:
    return float(one["weight"]) * (1.0 if unit is None else unit) * (1 if one["type"] == "good" else -1)


def features(report: LearningReport) -> list[FeatureReason]:
    """Return the set's features, those that can move a score most first."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for pattern in report.patterns:
        if pattern.get("feature") is not None:
            found.setdefault(str(pattern["feature"]), []).append(pattern)
    made: list[FeatureReason] = []
    for name, steps in found.items():
        ordered = sorted(steps, key=lambda step: float(step["at_least"]))
        values = [_value(one, report.unit) for one in ordered]
        told = [f"from {_edge(one)} on {points_text(value)}" for one, value in zip(ordered, values, strict=True)]
        if name == "ends_whole":
            told = [f"where it does {points_text(values[-1])}"]
        made.append(
            FeatureReason(
                name=feature_words(name),
                steps=tuple(told),
                total=sum(values),
                fired=max(int(one["times_fired"]) for one in ordered),
                reach=max(abs(moved) for moved in accumulate(values)),
            )
        )
    return sorted(made, key=lambda one: (-one.reach, one.name))


def feature_words(feature: str) -> str:
    """Return what a feature measures, in words."""
    source, _, rest = feature.partition("_")
    if source in {"prompt", "context"} and rest in _RELATED:
        return _RELATED[rest].replace("SOURCE", source)
    return _WORDS.get(feature, feature.replace("_", " "))


def _edge(one: Mapping[str, Any]) -> str:
    return f"{float(one['at_least']):,.4g}"


def phrases(report: LearningReport) -> list[PhraseReason]:
    """Return the set's patterns of words, those that move a score most first."""
    made: list[PhraseReason] = []
    for pattern in report.patterns:
        if pattern.get("feature") is not None:
            continue
        known = report.members.get(str(pattern["id"]))
        seen = standing = "—"
        if known is not None:
            right = "" if known["precision"] is None else f", {known['precision']:.0%} of these on its side"
            seen, standing = f"{known['coverage']:.0%} of them{right}", str(known["role"])
        made.append(
            PhraseReason(
                id=str(pattern["id"]),
                says=escape(str(pattern["description"])),
                value=_value(pattern, report.unit),
                fired=int(pattern["times_fired"]),
                seen=seen,
                standing=standing,
            )
        )
    return sorted(made, key=lambda one: (-abs(one.value), one.says))


def shown_phrases(report: LearningReport) -> tuple[list[PhraseReason], str]:
    """Return the phrases that move a score, and in words how many more there are that hardly do."""
    found = phrases(report)
    if report.calibration is None:
        return found, ""
    told = [one for one in found if not is_small(one.value)]
    return told, _more(len(found) - len(told), len(told))


def shown_features(report: LearningReport) -> tuple[list[FeatureReason], str]:
    """Return the features that move a score, and in words how many more there are that hardly do."""
    found = features(report)
    if report.calibration is None:
        return found, ""
    told = [one for one in found if one.reach >= SMALL]
    return told, _more(len(found) - len(told), len(told))


def _more(count: int, beside: int) -> str:
    return f"{count:,}{' more' if beside else ''} that move a score by less than {SMALL} points each" if count else ""


def set_text(report: LearningReport) -> list[str]:
    """Return how the set makes a score, in sentences."""
    if not report.patterns:
        return [f"The set is empty: no pattern has earned a place, and {report.empty_means}."]
    steps, said = len(report.steps), len(report.patterns) - len(report.steps)
    members = " and ".join(
        part for part in (plural(said, "phrase") if said else "", plural(steps, "step") + " of features" if steps else "") if part
    )
    if report.calibration is None:
        return [
            f"The rubric's score of an item is moved by {members}; what counts is weights, not points of the scale.",
            *([_STANDING] if said else []),
        ]
    base, curve = float(report.calibration["base"]), report.calibration["curve"]
    total = sum(abs(_value(pattern, report.unit)) for pattern in report.patterns)
    if report.orders_only:
        told = (
            f"A score begins at {base:.2f}, and the {members} move it by {total:.2f} points if all of them are added up without "
            "their signs: enough to order items, and no more. So none is listed here; they are in `patterns.json`."
        )
        return [told]
    first = (
        f"A score begins at {base:.2f} points. Of {members}, each that is found in an item adds its points or takes them away; "
        f"added up without their signs all of them come to {total:.2f}."
    )
    lines = [first]
    then = next((iteration.patterns for iteration in report.iterations if iteration.iteration == report.best), None)
    if report.summary is not None and then not in {None, len(report.patterns)}:
        lines.append(
            f"Iteration {report.best} had {then:,} of them: at the end the set was fitted once more, on all open items at once."
        )
    if any(abs(x - y) > 1e-9 for x, y in zip(curve["x"], curve["y"], strict=True)):
        ends = f"{curve['x'][0]:.2f} becomes {curve['y'][0]:.2f}, {curve['x'][-1]:.2f} becomes {curve['y'][-1]:.2f}"
        lines.append(f"The sum is then brought to the judge's scale: {ends}.")
    if steps:
        lines.append(
            "A feature is something that can be measured of an item, such as its length; each step is a value from which on "
            "points are added, so that the steps of one feature add up."
        )
    return [*lines, *([_STANDING] if said else [])]


_STANDING: Final = (
    "“Supported” is a phrase that was proven by itself, all proposals ever made being counted; a “member” is believed as "
    "far as the set is. “On its side” are items that the judge puts above the middle for a good one, below it for a bad one."
)
