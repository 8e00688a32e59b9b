"""A text as blocks, sentences and terms, whatever it is written in: what the demo's condenser and its measures have in common.

Markdown, reStructuredText, manual pages and plain text are read alike, block by block, and only as far as condensing needs it.
In scripts without spaces between words (Chinese, Japanese, Thai, …) each character counts as a term.
"""

from __future__ import annotations

import codecs
import itertools
import re
from collections.abc import Sequence
from typing import NamedTuple

FENCE = re.compile(r"\s*(`{3,}|~{3,})")
ITEM = re.compile(r"(\s*)(?:[-*+•]|(\d{1,3})[.)])\s+(?=\S)")
LINK = re.compile(r"\[([^\[\]\n]*)\]\(([^()\s]*)[^()\n]*\)")
_ATX = re.compile(r"#{1,6}\s+(.*?)[\s#]*$")
_UNDERLINE = re.compile(r"([=\-~^\"*+#])\1{2,}\s*$")
_COLUMNS = re.compile(r"\S {3,}\S|^\s*[|+<>]|^\.\. |^\s*\[[^\]]*\]:")
_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’»)\]*_]*\s+(?=[^\sa-z])|[。！？]+[」』”’）]*\s*")
_ABBREVIATION = re.compile(r"(?:^|[\s(])(?:\w|(?:\w\.)+\w|Mr|Mrs|Ms|Dr|Prof|St|No|Fig|vs|cf|etc|\d{1,3})$", re.IGNORECASE)
_UNSPACED = "\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_WORD = re.compile(rf"[{_UNSPACED}]|\d+(?:[.,:/\-]\d+)*%?|[^\W{_UNSPACED}]+(?:['’\-][^\W{_UNSPACED}]+)*")
_FUNCTION_WORDS = frozenset(
    """a about after all also an and any are as at back be because been before but by can could did do does down each either
    else even every first for from get go had has have he her here his how i if in into is it its itself just like made
    make many may might more most much must no nor not now of off on once one only or other our out over own per same say
    see she should since so some still such take than that the their them then there these they this those through to too
    two under until up us use used was way we were what when where whether which while who whole why will with without
    would yes yet you your""".split()  # noqa: SIM905  (a list of this length is read as prose)
)


class Block(NamedTuple):
    """Lines that belong together, and the empty lines before them.

    ``kind`` is ``heading``, ``text`` (paragraphs), ``item`` (of a list, with all that is indented below it) or ``whole`` (code,
    tables and whatever else is no prose). ``sentences`` are those of a paragraph; of the other kinds, the block as one.
    """

    kind: str
    gap: str
    raw: str
    sentences: tuple[str, ...]


def decode(data: bytes, *, cut: bool = False) -> tuple[str, str]:
    r"""Return the text of ``data``, line ends ``\n``, and its encoding. ``cut``: the last character may be there in part.

    UTF-8 or UTF-16 by its mark, else UTF-8, else Windows-1252, else Latin-1, which reads every byte.
    """
    utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    for encoding in ("utf-16" if utf16 else "utf-8-sig", "cp1252"):
        try:
            text = codecs.getincrementaldecoder(encoding)().decode(data, final=not cut)
            break
        except UnicodeDecodeError:
            continue
    else:
        encoding, text = "latin-1", data.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n"), encoding


def parse(text: str) -> list[Block]:
    r"""Return the blocks of ``text``, whose line ends are ``\n``; ``render`` gives the text back, character for character."""
    lines = text.split("\n")
    blocks: list[Block] = []
    at = start = 0
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        kind, end = _extent(lines, at)
        raw = "\n".join(lines[at:end])
        sentences = tuple(_sentences(raw)) if kind == "text" else (_heading(raw) if kind == "heading" else raw,)
        blocks.append(Block(kind, "".join(line + "\n" for line in lines[start:at]), raw, sentences))
        at = start = end
    if start < len(lines):
        blocks.append(Block("whole", "\n".join(lines[start:]), "", ("",)))
    return blocks


def render(blocks: Sequence[Block]) -> str:
    """Return the text of ``blocks``."""
    return "\n".join(block.gap + block.raw for block in blocks)


def _extent(lines: Sequence[str], at: int) -> tuple[str, int]:
    """Return the kind of the block that begins at line ``at``, and the line after its last."""
    line, end = lines[at], at + 1
    if fence := FENCE.match(line):
        closing = next((after for after in range(end, len(lines)) if lines[after].lstrip().startswith(fence[1])), end)
        return "whole", closing + 1 if closing < len(lines) else end
    if _ATX.match(line):
        return "heading", end
    if end < len(lines) and _UNDERLINE.match(lines[end]) and not line[0].isspace() and not ITEM.match(line):
        return "heading", end + 1
    item = ITEM.match(line)
    while end < len(lines) and (lines[end].strip() or (item and _depth(lines, end) >= item.end())):
        marker = ITEM.match(lines[end])
        if marker and (item is None or len(marker[1]) <= len(item[1])):
            break
        if item is None and (_ATX.match(lines[end]) or FENCE.match(lines[end])):
            break
        end += 1
    if item:
        return "item", end
    columns = sum(_COLUMNS.search(line) is not None for line in lines[at:end])
    prose = any(map(str.isalpha, "".join(lines[at:end]))) and not _COLUMNS.match(line) and 2 * columns <= end - at
    return ("text" if prose else "whole"), end


def _depth(lines: Sequence[str], at: int) -> int:
    """Return by how much the next line with words is indented."""
    following = next((line for line in lines[at:] if line.strip()), "")
    return len(following) - len(following.lstrip())


def _heading(raw: str) -> str:
    first = raw.partition("\n")[0]
    return atx[1] if (atx := _ATX.match(first)) else first.strip()


def _sentences(text: str) -> list[str]:
    """Split a paragraph; a code span, a link and an abbreviation are never cut in two."""
    text = " ".join(text.split())
    sentences: list[str] = []
    start = 0
    for match in _SENTENCE_END.finditer(text):
        sentence = text[start : match.end()]
        if sentence.count("`") % 2 or sentence.count("[") != sentence.count("]") or sentence.count("(") != sentence.count(")"):
            continue
        if text[match.start()] == "." and _ABBREVIATION.search(text[start : match.start()]):
            continue
        sentences.append(sentence.strip())
        start = match.end()
    return [*sentences, text[start:]] if start < len(text) else sentences


def terms_of(text: str) -> list[str]:
    """Return the terms of ``text`` in order: its words and numbers without case, plural and the commonest words of English."""
    words = (word.lower().removesuffix("'s") for word in _WORD.findall(LINK.sub(r"\1", text)))
    return [_singular(word) for word in words if word not in _FUNCTION_WORDS]


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 4 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def pairs_of(terms: Sequence[str]) -> set[tuple[str, ...]]:
    """Return the pairs of neighbouring ``terms``; a single term stands for itself."""
    return set(itertools.pairwise(terms)) or {(term,) for term in terms}


def anchor_of(heading: str) -> str:
    """Return the name under which a link leads to ``heading`` in rendered Markdown."""
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", LINK.sub(r"\1", heading).strip().lower()))
