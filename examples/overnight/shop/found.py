"""The scorer: the share of some questions whose article is found. It asks a few only, so its answer is noisy."""

import os
import random
import sys
from pathlib import Path

from search import best_article, questions

ASKED = 20

text = Path(sys.argv[1]).read_text()
draw = random.Random(f"{os.environ['JUMAR_SEED']} {os.environ['JUMAR_ITERATION']} {os.environ['JUMAR_REPEAT']}")
asked = draw.sample(questions(sys.argv[2]), ASKED)
print(sum(best_article(question, text) == title for title, question in asked) / ASKED)
