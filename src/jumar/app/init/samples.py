"""Sample data that `jumar init` writes for judging, learning and top-k: made up here, with known effects, the same every time.

The judge of the help desk rewards two sentences and dislikes two others, a little noisily, so that there is something to be
found. The searches are drawn at random, with relevant passages only somewhat closer than the others.
"""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

__all__ = ["SAMPLES", "Sample"]

_THINGS: Final = (
    *("the parcel", "the invoice", "my password", "the refund", "a broken lamp", "the newsletter", "a second size"),
    *("the voucher", "a missing screw", "the delivery date", "a wrong colour", "the guarantee", "my old address"),
    *("a double payment", "the repair"),
)
_ASKED: Final = ("What do I do about {}?", "Who takes care of {}?", "Whom do I write to about {}?", "Where do I read about {}?")
_OPENINGS: Final = ("Thank you for writing about {}.", "This is about {}.", "We have looked at {}.", "You asked about {}.")
_PLAIN: Final = (
    "Several departments work on such cases.",
    "The warehouse is in the north of the town.",
    "Our office opens in the morning.",
    "The system shows an entry for it.",
    "Most orders leave the house on the same day.",
    "The season has been busy so far.",
    "A colleague has read your message too.",
)
_TELLING: Final = {
    "We will write to you by tomorrow noon.": (1.0, "It says by when an answer comes: tomorrow noon."),
    "As a next step, please send us a photo.": (0.8, "It names the next step, a photo."),
    "Please read the terms before you write.": (-1.0, "It sends the person away to read the terms."),
    "This is not our fault.": (-0.8, "It says whose fault it is not."),
}
"""Sentence → what the judge adds for it, and the reason that the judge gives."""

_OFTEN: Final = 0.35
_NOISE: Final = 0.2


def _help_desk(questions: int, each: int, seed: int) -> Mapping[str, str]:
    """Return ``each`` answers to each of ``questions`` questions, and what a judge says of them."""
    rng = random.Random(seed)  # noqa: S311 - sample data, nothing secret
    answers: list[dict[str, Any]] = []
    judged: list[dict[str, Any]] = []
    for number in range(1, questions + 1):
        thing = _THINGS[number % len(_THINGS)]
        prompt = _ASKED[number % len(_ASKED)].format(thing)
        for place in range(1, each + 1):
            told = [sentence for sentence in _TELLING if rng.random() < _OFTEN]
            sentences = [*told, *rng.sample(_PLAIN, rng.randint(1, 3))]
            rng.shuffle(sentences)
            name = f"q{number}" if each == 1 else f"q{number}-{place}"
            text = " ".join([rng.choice(_OPENINGS).format(thing), *sentences])
            worth = 3.0 + sum(_TELLING[sentence][0] for sentence in told)
            scores = [round(min(5.0, max(1.0, worth + rng.gauss(0, _NOISE))), 1) for _ in range(2)]
            reasons = {sign: [_TELLING[one][1] for one in told if (_TELLING[one][0] > 0) == sign] for sign in (True, False)}
            answers.append({"id": name, "group": f"question {number}", "prompt": prompt, "text": text})
            judged.append({"id": name, "judge_scores": scores, "strengths": reasons[True], "weaknesses": reasons[False]})
    return {"answers.jsonl": _lines(answers), "judged.jsonl": _lines(judged)}


def _searches() -> Mapping[str, str]:
    """Return 30 searches of 204 to 214 passages each: the 20 best scores, and which of these were relevant."""
    rng = random.Random(7)  # noqa: S311 - sample data, nothing secret
    runs: list[dict[str, Any]] = []
    for number in range(30):
        good, level = rng.randint(4, 14), rng.gauss(0.0, 0.05)  # some questions are closer to everything than others
        found = [(rng.gauss(0.42, 0.12) + level, 1) for _ in range(good)]
        found += [(rng.gauss(0.20, 0.09) + level, 0) for _ in range(200)]
        best = sorted(((round(max(0.0, score), 3), relevant) for score, relevant in found), reverse=True)[:20]
        runs.append(
            {
                "query_id": _ASKED[number % len(_ASKED)].format(_THINGS[number % len(_THINGS)]),
                "scores": [score for score, _ in best],
                "relevant": [relevant for _, relevant in best],
                "relevant_total": good,
            }
        )
    return {"runs.jsonl": _lines(runs)}


def _lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@dataclass(frozen=True, slots=True)
class Sample:
    """``files`` makes file names with their text; ``next_steps`` are commands that work on them, each with what it is for."""

    files: Callable[[], Mapping[str, str]]
    next_steps: tuple[tuple[str, str], ...]


_REPLAYED: Final = "answers.jsonl --judge replay:judged.jsonl"

SAMPLES: Final[Mapping[str, Sample]] = MappingProxyType(
    {
        "topk": Sample(
            _searches,
            (
                ("jumar topk compare runs.jsonl", "every strategy on 30 labelled searches"),
                ("jumar topk tune runs.jsonl -o topk.toml", "the one that suits them best"),
            ),
        ),
        "judge": Sample(
            functools.partial(_help_desk, questions=12, each=3, seed=4),
            ((f"jumar evaluate {_REPLAYED}", "what both judges say of 36 answers"),),
        ),
        "learn": Sample(
            functools.partial(_help_desk, questions=80, each=1, seed=2),
            ((f"jumar learn {_REPLAYED} -o outputs/", "a cheap judge from 80 recorded verdicts"),),
        ),
    }
)
"""What ``jumar init`` writes as data, by the name of the template."""
