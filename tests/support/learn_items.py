"""Items with a judge's scores of them, made so that it is known what the judge looks at."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

GOOD = ("measured twice", "for instance", "step by step")
BAD = ("as everybody knows", "needless to say")
WORDS = """
river window copper market garden letter bridge engine silver winter carpet harbour ladder paper signal basket mirror
anchor button candle desert feather hammer island jacket kettle lantern marble needle orchard pencil quarry ribbon saddle
timber valley wagon yarn zipper acorn barrel cabin dragon elbow fabric goblet helmet ivory jungle kitchen lemon magnet
""".split()  # noqa: SIM905 - words read better as words


def judged_items(
    groups: int = 60, each: int = 4, *, seed: int = 0, effect: float = 0.9, noise: float = 0.3, readings: int = 2
) -> list[dict[str, Any]]:
    """Return records with ``judge_scores``: 3, plus ``effect`` for each planted phrase that is good, less it for a bad one."""
    rng = random.Random(seed)
    found: list[dict[str, Any]] = []
    for group in range(groups):
        for number in range(each):
            planted = [phrase for phrase in (*GOOD, *BAD) if rng.random() < 0.25]
            words = [rng.choice(WORDS) for _ in range(rng.randint(15, 60))]
            for phrase in planted:
                words.insert(rng.randrange(len(words)), phrase)
            worth = 3.0 + effect * sum(1 if phrase in GOOD else -1 for phrase in planted)
            scores = [round(min(5.0, max(1.0, worth + rng.gauss(0, noise))), 2) for _ in range(readings)]
            reasons = [f'it says "{phrase}", which is {"good" if phrase in GOOD else "bad"}' for phrase in planted]
            found.append(
                {
                    "id": f"item-{group}-{number}",
                    "group": f"question {group}",
                    "prompt": f"Tell something about {WORDS[group % len(WORDS)]}.",
                    "text": " ".join(words) + ".",
                    "judge_scores": scores,
                    "judge_feedback": "; ".join(reasons) or "nothing stands out",
                }
            )
    return found


def write_items(path: Path, records: Sequence[dict[str, Any]]) -> Path:
    """Write records, which are items and a judge on file at once."""
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return path
