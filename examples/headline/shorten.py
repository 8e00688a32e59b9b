"""The generator: drops the word that carries least, a few times an iteration. It has no idea when to stop."""

from pathlib import Path

FILLER = "really quite actually many old".split()
WEAK = "in what have been calling a the of has on to for".split()


def weight(word: str) -> int:
    plain = word.strip(",.").lower()
    return 0 if plain in FILLER else 1 if plain in WEAK else len(plain)


path = Path("headline.txt")
words = path.read_text().split()
for _ in range(4):
    if len(words) > 1:
        words.remove(min(words, key=weight))
path.write_text(" ".join(words) + "\n")
