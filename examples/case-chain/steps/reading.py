"""What can be read from a text by rules alone: terms, figures, causes, what was ruled out, what was confirmed, what helps.

The rules know shapes (`cart-db`, `NODE_7`, `250ms`) and cue words of two languages, nothing of a domain. They err at times.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

CJK = r"\u4e00-\u9fff"
FIGURE = r"\d+(?:\.\d+)?(?:%|[A-Za-z]{1,3}(?![A-Za-z]))"
WORD = r"(?<![A-Za-z0-9_-])[A-Za-z][A-Za-z0-9]*(?:[_-][A-Za-z0-9]+)*"
TOKEN = re.compile(rf"(?P<figure>(?<![A-Za-z0-9_-]){FIGURE})|(?P<term>{WORD}|[{CJK}]{{2}}(?=\s*\d+(?:\.\d+)?[A-Za-z]))")
SENTENCE_END = re.compile(r"[.。．;；!?？](?![A-Za-z0-9])")  # not the point in 12.5%

ACTIVE = r"caused?s?|led to|leads to|exhausted|filled|slowed|blocked|starved|broke|delayed|stopped"
GAP = r"[^<>]*?"
RULED_OUT = (r"rules out(?: the)? ?<(\d+)>", r"<(\d+)>[^<>]*(?:is|was) not the cause", r"不是[^<>]{0,6}<(\d+)>")
FORWARD = (rf"<(\d+)>{GAP}(?:\b(?:{ACTIVE})(?! by)\b|造成|影響){GAP}<(\d+)>",)
BACKWARD = (
    rf"<(\d+)>{GAP}\b(?:(?:{ACTIVE}) by|because of|due to|c[oa]mes? from|points? to|is a sign of)\b{GAP}<(\d+)>",
    rf"<(\d+)>{GAP}因為{GAP}<(\d+)>",
    rf"<(\d+)>{GAP}(?:代表|跟|與){GAP}<(\d+)>[^<>]{{0,6}}相關",
)
CONFIRMED = re.compile(r"(?i:root cause|confirmed)|確認|確定|是因為")
ABOUT_THE_ONE_BEFORE = re.compile(r"\s*(?:This|That|It|代表|這)")
ACTION = re.compile(r"\s*(?:Fix:|Next time|建議)")


@dataclass
class Sentence:
    text: str
    masked: str
    terms: list[str]
    ruling_out: bool = False

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(self.terms))


@dataclass
class Reading:
    """Everything with the number of the sentence that it is from. A link is (cause, effect), a ruled-out pair (state, term)."""

    sentences: list[Sentence] = field(default_factory=list)
    links: dict[tuple[str, str], int] = field(default_factory=dict)
    confirmed: dict[str, int] = field(default_factory=dict)
    ruled_out: dict[tuple[str, str], int] = field(default_factory=dict)
    actions: dict[str, int] = field(default_factory=dict)

    @property
    def subject(self) -> str:
        return next((term for sentence in self.sentences for term in sentence.terms), "")

    @property
    def roots(self) -> set[str]:
        """What was confirmed; in a text that confirms nothing, the causes that have no cause themselves."""
        effects = {effect for _, effect in self.links}
        return set(self.confirmed) or {cause for cause, _ in self.links if cause not in effects}


def is_term(word: str) -> bool:
    return sum(letter.isupper() for letter in word) >= 2 or any(not letter.isalpha() for letter in word) or not word.isascii()


def terms(text: str) -> list[str]:
    """Return the technical names of a text in order, each time that they are named."""
    return [found["term"] for found in TOKEN.finditer(text) if found["term"] and is_term(found["term"])]


def figures(text: str) -> set[str]:
    return {found["figure"].lower() for found in TOKEN.finditer(text) if found["figure"]}


def names(text: str, term: str) -> bool:
    """Tell whether a text names a term: `DISK2` does not name `DISK`."""
    return term in terms(text) if term.isascii() else term in text


def sentences(text: str) -> Iterator[Sentence]:
    flat = re.sub(rf"(?<=[{CJK}])\s+(?=[{CJK}])", "", " ".join(text.split()))
    before = ""
    for part in SENTENCE_END.split(flat.replace("<", " ").replace(">", " ")):
        found: list[str] = []
        if before and ABOUT_THE_ONE_BEFORE.match(part):
            found.append(before)

        def mask(match: re.Match[str], found: list[str] = found) -> str:
            if match["figure"]:
                return "#"
            if not is_term(match["term"]):
                return match["term"]
            found.append(match["term"])
            return f"<{len(found) - 1}>"

        prefix = "<0>" if found else ""
        masked = prefix + TOKEN.sub(mask, part)
        if part.strip():
            yield Sentence(part.strip(), masked, found)
        before = found[-1] if found else ""


def read(text: str) -> Reading:
    reading = Reading()
    for number, sentence in enumerate(sentences(text)):
        reading.sentences.append(sentence)
        if ACTION.match(sentence.text):
            reading.actions.setdefault(sentence.text, number)
            continue
        if not read_ruled_out(reading, sentence, number):
            read_links(reading, sentence, number)
    return reading


def read_ruled_out(reading: Reading, sentence: Sentence, number: int) -> bool:
    """A term is ruled out by the state that is named before: `CDN … GREEN … not the CDN`."""
    for match in (found for pattern in RULED_OUT for found in re.finditer(pattern, sentence.masked)):
        sentence.ruling_out = True
        index = int(match[1])
        term = sentence.terms[index]
        state = next((other for other in reversed(sentence.terms[:index]) if other != term), None)
        if state:
            reading.ruled_out.setdefault((state, term), number)
    return sentence.ruling_out


def read_links(reading: Reading, sentence: Sentence, number: int) -> None:
    found = sorted(
        (match.end(), sentence.terms[int(match[cause])], sentence.terms[int(match[effect])])
        for patterns, cause, effect in ((FORWARD, 1, 2), (BACKWARD, 2, 1))
        for pattern in patterns
        for match in re.finditer(pattern, sentence.masked)
    )
    for _, cause, effect in found:
        if cause != effect:
            reading.links.setdefault((cause, effect), number)
    confirmation = CONFIRMED.search(sentence.masked)
    if confirmation and sentence.terms:
        linked = [cause for end, cause, _ in found if end > confirmation.start()]
        after = re.search(r"<(\d+)>", sentence.masked[confirmation.start() :])
        for term in linked or [sentence.terms[int(after[1])] if after else sentence.terms[-1]]:
            reading.confirmed.setdefault(term, number)


def read_json(path: str | None) -> dict:
    return json.loads(Path(path).read_text(encoding="utf-8")) if path else {}


def write_json(path: str, content: dict) -> None:
    Path(path).write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
