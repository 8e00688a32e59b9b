"""Write answers of a made-up help desk, and what a made-up judge says of them: what `jumar learn` learns from.

The judge likes answers that say when and what next, and that apologise; it dislikes blame and phrases without content. It reads
each answer twice and is not quite sure of itself.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

THINGS = "the parcel, the invoice, my password, the refund, a broken lamp, the newsletter, two sizes, the voucher".split(", ")
ASKED = "Where is {}?", "What do I do about {}?", "Who takes care of {}?", "Why does nobody answer about {}?"
GOOD = {
    "We will write to you by tomorrow noon.": 0.7,
    "As a next step, please send us a photo.": 0.6,
    "We are sorry for the trouble.": 0.4,
    "You will find the link in your account.": 0.4,
}
BAD = {
    "This is not our fault.": -0.9,
    "You should have read the terms.": -0.7,
    "Your call is important to us.": -0.5,
}
WORTH = {**GOOD, **BAD}
PLAIN = (
    "We have looked at {}.",
    "Thank you for your message about {}.",
    "There are several departments here.",
    "The warehouse is in the north of the town.",
    "Our office opens in the morning.",
    "Many people ask about {} these days.",
    "The system shows an entry for it.",
)


def answers(questions: int, each: int, *, seed: int) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Return ``each`` answers to each of ``questions`` questions, and the judge's scores of them."""
    rng = random.Random(seed)
    found: list[dict[str, object]] = []
    scores: list[dict[str, object]] = []
    for number in range(questions):
        thing = rng.choice(THINGS)
        for place in range(each):
            said = [one for one in (*GOOD, *BAD) if rng.random() < 0.3]
            sentences = said + [one.format(thing) for one in rng.sample(PLAIN, rng.randint(2, 5))]
            rng.shuffle(sentences)
            name, worth = f"{seed}-{number}-{place}", 3.0 + sum(WORTH[phrase] for phrase in said)
            one = {
                "id": name,
                "group": f"question {number}",
                "prompt": rng.choice(ASKED).format(thing),
                "text": " ".join(sentences),
            }
            readings = [round(min(5.0, max(1.0, worth + rng.gauss(0, 0.25))), 1) for _ in range(2)]
            reasons = "; ".join(f'it says "{phrase.lower()}"' for phrase in said) or "nothing stands out"
            found.append({**one})
            scores.append({"id": name, "text": one["text"], "judge_scores": readings, "judge_feedback": reasons})
    return found, scores


def write(name: str, rows: list[dict[str, object]]) -> None:
    """Write one JSON object a line."""
    Path(name).write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    print(f"{name}: {len(rows)} lines")


old, said_of_old = answers(60, 3, seed=1)
new, said_of_new = answers(40, 2, seed=2)
write("answers.jsonl", old)
write("new.jsonl", new)
write("scores.jsonl", said_of_old + said_of_new)
