"""Plays the agent: it adds customers' words to articles, and when it finds none that are missing it goes on "improving".

What happens to real agents at night happens to it as well: two rate limits, one crash, one idle iteration, one report that
never came, and one attempt to make a check easier. It draws by JUMAR_SEED, so every night is the same.
"""

import json
import os
import random
import re
import sys
import time
from pathlib import Path

from search import articles, best_article, questions, stems

HELP = Path("help.md")
ITERATION = int(os.environ["JUMAR_ITERATION"])
DRAW = random.Random(int(os.environ["JUMAR_SEED"]))
PRICE = 12e-6  # dollars a token

REFUSED = (5, 11)
CRASHED, SILENT, IDLE, CHEATING = 3, 8, 9, 13


def first_time(what: str) -> bool:
    """The provider's memory, not the agent's: it refuses or fails an iteration once."""
    mark = Path(f".{what}-{ITERATION}")
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def report(**fields: object) -> None:
    Path(os.environ["JUMAR_USAGE_FILE"]).write_text(json.dumps(fields))


def report_tokens() -> None:
    read, written = 1800 + DRAW.randrange(1500), 2500 + DRAW.randrange(2500)
    report(input_tokens=read, output_tokens=written, token_cost_usd=round((read + written) * PRICE, 4), model="pretend-1")


def write(parts: dict[str, str]) -> None:
    HELP.write_text("\n".join(f"## {title}\n{body.strip()}\n" for title, body in parts.items()))


def learn_words(parts: dict[str, str], missed: list[tuple[str, str]]) -> None:
    """Add a word of each of some questions that lead to the wrong article."""
    for title, question in DRAW.sample(missed, min(8, len(missed))):
        known = set(stems(parts[title]))
        new = [word for word in re.findall(r"[A-Za-z]{4,}", question) if stems(word) and stems(word)[0] not in known]
        if new:
            word = max(new, key=len).lower()
            head, also, words = parts[title].strip().partition(" See also: ")
            parts[title] = f"{head} See also: {words.rstrip('.') + ', ' if also else ''}{word}."


def shorten(parts: dict[str, str]) -> None:
    """Drop the last sentence of the longest article: shorter, and wrong when a fact stood there."""
    title = max(parts, key=lambda one: len(parts[one]))
    parts[title] = re.split(r"(?<=\.) ", parts[title].strip())[0]


def embellish(parts: dict[str, str]) -> None:
    """Friendly words for every article, the same ones, of which none helps anybody."""
    for title in DRAW.sample(sorted(parts), 4):
        parts[title] = (
            "Dear customer, whatever you need, our friendly team is here to help with your order, bike, card or parcel. "
            + parts[title]
        )


def main() -> None:
    if ITERATION in REFUSED and first_time("refused"):
        report(rate_limited=True, retry_after=2.5)
        sys.exit("429 Too Many Requests")
    time.sleep(0.2 + DRAW.random() * 0.2)
    if ITERATION == CRASHED and first_time("crashed"):
        report_tokens()
        sys.exit("connection reset by peer")
    if ITERATION != SILENT:
        report_tokens()
    if ITERATION == IDLE:
        print("Nothing comes to mind.")
        return
    if ITERATION == CHEATING:
        Path("checks/short.py").write_text("print('fine')\n")
    text = HELP.read_text()
    parts = articles(text)
    missed = [(title, question) for title, question in questions("questions.tsv") if best_article(question, text) != title]
    if len(missed) > 8:
        learn_words(parts, missed)
    else:
        DRAW.choice((shorten, embellish))(parts)
    write(parts)
    print(f"{len(missed)} of 40 questions led to the wrong article.")


main()
