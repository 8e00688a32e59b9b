"""The shop's search: the article that shares the rarest words with the question, long articles marked down."""

import math
import re
from pathlib import Path

SMALL = {
    *("a an and are as at be by can do does for from have how i in is it me my of on or the".split()),
    *("to we what when where which who why will with you your".split()),
}


def stems(text: str) -> list[str]:
    return [word[:5] for word in re.findall(r"[a-z0-9.]*[a-z0-9]", text.lower()) if word not in SMALL]


def articles(text: str) -> dict[str, str]:
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def best_article(question: str, text: str) -> str:
    words = {title: stems(f"{title} {body}") for title, body in articles(text).items()}
    asked = set(stems(question))

    def relevance(title: str) -> float:
        shared = asked & set(words[title])
        rare = sum(math.log(1 + len(words) / sum(stem in one for one in words.values())) for stem in shared)
        return rare / math.sqrt(len(words[title]))

    return max(words, key=relevance) if any(map(relevance, words)) else ""


def questions(path: str) -> list[tuple[str, str]]:
    rows = (line.split("\t") for line in Path(path).read_text().splitlines())
    return [(title, question) for title, question in rows]
