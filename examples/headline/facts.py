"""The scorer: the share of the facts that are still there. One number on standard output is all that it takes."""

from pathlib import Path

FACTS = ("council", "Elmswick", "voted", "reopen", "railway", "bridge", "walkers")

text = Path("headline.txt").read_text()
print(sum(fact in text for fact in FACTS) / len(FACTS))
