"""The hold-out: questions that no iteration has seen, all of them."""

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path.cwd()))  # the shop, for its search
search = importlib.import_module("search")

text = Path(sys.argv[1]).read_text()
asked = search.questions(str(Path(__file__).with_name("questions.tsv")))
print(sum(search.best_article(question, text) == title for title, question in asked) / len(asked))
