r"""A text as a list of blocks: headings, paragraphs, list items, code, tables; and back again, character for character.

The reader takes markdown, reStructuredText, manual pages and plain text alike. It does not decide what a *file* is, because a
document that is being condensed may lose the marks that would say so: each block is known by its own lines and the one before it.
``render(parse(text)) == text`` for every text whose line ends are ``\n``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from jumar.demo.words import OPENS_A_BLOCK, UNSPACED, count_words, split_sentences

__all__ = ["Block", "Document", "parse", "pieces", "render", "rewrite", "visible"]


class Block(NamedTuple):
    """One block. ``raw`` are its lines as they stand; ``gap`` are the empty lines before it.

    ``kind`` is ``heading``, ``text``, ``item``, ``code``, ``table``, ``verbatim`` (kept whole, not prose), ``definition``
    (a link or footnote target), ``front`` (front matter) or ``rule``. ``level`` is a heading's level (1 is the highest),
    else the indentation in columns. ``first`` and ``rest`` are what stands before the first and the later lines of prose.
    ``sentences`` is empty for all but ``heading``, ``text`` and ``item``.
    """

    kind: str
    raw: tuple[str, ...]
    gap: tuple[str, ...]
    level: int = 0
    first: str = ""
    rest: str = ""
    sentences: tuple[str, ...] = ()

    @property
    def prose(self) -> bool:
        """Whether the block is made of sentences that can be taken one by one."""
        return self.kind in {"text", "item"}


class Document(NamedTuple):
    r"""Blocks in order, and what ``split("\n")`` leaves after the last one (``("",)`` after a closing line end)."""

    blocks: tuple[Block, ...]
    tail: tuple[str, ...]


_LONGEST_HEADING = 200  # characters; a longer line is a paragraph, whatever it begins with
_FENCE = re.compile(r"\s*(?:>\s?)*(?:[-*+]\s+)?(`{3,}|~{3,})[^`]*$")
_ATX = re.compile(r"(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
_BOLD_LINE = re.compile(r"(\*\*|__)([^*_`]{2,60})\1:?$")
_CAPITALS = re.compile(r"(?=(?:[^a-z]*[A-Z]){3})[A-Z0-9][A-Z0-9 ,/&()'\-]{2,59}$")
_CODE_LINE = re.compile(r"[{};(=,]\s*$|^\s*(?:import|from|def|class|export|return)\b|^\s*[\w.]+\s*\+?=")
_UNDERLINE = re.compile(r"([=\-~^\"'*+#:.`_])\1{2,}\s*$")
_RULE = re.compile(r"\s*([-*_=~#+.])(?:[ \t]*\1){2,}[ \t]*$")
_ITEM = re.compile(r"(\s*)((?:[-*+•·‣–—]|\(?\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?)(?=\S)")
_QUOTE = re.compile(r"\s{0,3}(?:>[ \t]?)+")
_DEFINITION = re.compile(r"\s{0,3}\[[^\]]+\]:\s*\S|\.\. (?:_[^:]+:|\[[^\]]+\]|\|[^|]+\|)")
_DELIMITER_ROW = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
_TABLE_BORDER = re.compile(r"\s*(?:\+[-=+]{3,}\+|=+(?: +=+)+|-+(?: +-+)+)\s*$")
_DIRECTIVE = re.compile(r"\.\. ")
_HTML = re.compile(r"\s{0,3}<(?:!--|/?[A-Za-z][\w-]*[\s/>])")
_COLUMNS = re.compile(r"\S(?: {3,}|\t+)\S")
_SPACE = re.compile(r"\s+")
_BETWEEN = re.compile(f"(?<=[{UNSPACED}\u3000-\u303f\uff00-\uff60]) (?=[{UNSPACED}\u3000-\u303f\uff00-\uff60])")
_BROKEN_WORD = re.compile("(?<=\\w)[\u2010\u00ad] (?=\\w)")
_TAG = re.compile(
    r"<!--.*?-->|<[a-z][a-z0-9+.\-]*://[^<>\s]*>|</?(?:a|abbr|b|br|center|code|dd|details|div|dl|dt|em|font|h[1-6]|hr|i|img|kbd|li|ol|p|picture|pre|s"
    r"|small|source|span|strong|sub|summary|sup|svg|table|tbody|td|th|thead|tr|u|ul|video)\b[^<>]*>",
    re.DOTALL | re.IGNORECASE,
)
_IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
_TARGET = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def parse(text: str) -> Document:
    """Read ``text``. Empty text and empty lines give no blocks."""
    lines = text.split("\n")
    blocks: list[Block] = []
    at = start = 0
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        block = _read(lines, at, tuple(lines[start:at]), blocks[-1] if blocks else None)
        blocks.append(block)
        at += len(block.raw)
        start = at
    return Document(tuple(blocks), tuple(lines[start:]))


def render(document: Document) -> str:
    """Return the text of ``document``."""
    lines: list[str] = []
    for block in document.blocks:
        lines += block.gap
        lines += block.raw
    lines += document.tail
    return "\n".join(lines)


def visible(block: Block) -> str:
    """Return what a reader sees of ``block``: no tags, no images, no link targets."""
    text = " ".join(block.sentences) if block.sentences else "\n".join(block.raw)
    if "<" in text:
        text = _TAG.sub(" ", text)
    return _TARGET.sub(r"\1", _IMAGE.sub(" ", text)) if "](" in text else text


def pieces(block: Block) -> tuple[str, ...]:
    """Return what a reader sees of ``block``, sentence by sentence; of what is no prose, the whole as one."""
    if not block.prose:
        return (visible(block),)
    if not any("](" in sentence or "<" in sentence for sentence in block.sentences):
        return block.sentences
    return tuple(visible(block._replace(sentences=(sentence,))) for sentence in block.sentences)


def rewrite(block: Block, sentences: Sequence[str]) -> Block:
    """Return ``block`` with other ``sentences``, filled to its own width; a block of one line stays one line.

    A line that a reader of markdown would take for a heading, an item or a quotation is not begun: such a paragraph
    becomes one line.
    """
    text = _join(sentences)
    width = max(len(line) for line in block.raw) if len(block.raw) > 1 else 0
    lines = [text]
    if width and " " in text:
        lines = _fill(text, max(20, width - len(block.rest.expandtabs())))
        if any(OPENS_A_BLOCK.match(line) for line in lines[1:]):
            lines = [text]
    shown = [block.first + lines[0], *(block.rest + line for line in lines[1:])]
    return block._replace(raw=tuple("\n".join(shown).split("\n")), sentences=tuple(sentences))


def _join(sentences: Sequence[str]) -> str:
    return _BETWEEN.sub("", " ".join(sentences))


def _fill(text: str, width: int) -> list[str]:
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line]


def _indent(line: str) -> int:
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip())


def _whole(kind: str, lines: Sequence[str], gap: tuple[str, ...]) -> Block:
    return Block(kind, tuple(lines), gap, _indent(lines[0]))


def _read(lines: Sequence[str], at: int, gap: tuple[str, ...], before: Block | None) -> Block:
    line = lines[at]
    if at == 0 and line.rstrip() == "---" and (end := _front_matter(lines)):
        return _whole("front", lines[:end], gap)
    marked = not line[0].isalpha()  # a quick way past the patterns that no ordinary line can match
    if marked and (fence := _FENCE.match(line)) and (end := _fence_end(lines, at, fence.group(1))):
        return _whole("code", lines[at:end], gap)
    apart = bool(gap) or before is None or before.kind in {"heading", "rule", "front"}
    if (block := _heading(lines, at, gap, apart=apart)) is not None:
        return block
    if marked and _RULE.match(line):
        return _whole("rule", [line], gap)
    if end := _table_end(lines, at):
        return _whole("table", lines[at:end], gap)
    if marked and (end := _marked_end(lines, at)):
        return _whole("definition" if _DEFINITION.match(line) else "verbatim", lines[at:end], gap)
    if gap and before is not None and _literal_follows(before, line):
        return _whole("code", lines[at : _indented_end(lines, at, blank=True, least=_indent(line))], gap)
    end = _chunk_end(lines, at)
    return _prose(lines[at:end], gap)


def _marked_end(lines: Sequence[str], at: int) -> int:
    """Return the end of the link definition, directive or HTML block at ``at``, 0 when it is none of them."""
    line = lines[at]
    if _DEFINITION.match(line):
        return _indented_end(lines, at, blank=False)
    if _DIRECTIVE.match(line) or line.rstrip() == "..":
        return _indented_end(lines, at, blank=True)
    return _html_end(lines, at) if _HTML.match(line) else 0


def _literal_follows(before: Block, line: str) -> bool:
    return before.prose and before.raw[-1].rstrip().endswith("::") and _indent(line) > _indent(before.raw[0])


def _front_matter(lines: Sequence[str]) -> int:
    for at in range(1, min(len(lines), 60)):
        if lines[at].rstrip() in {"---", "..."}:
            return at + 1 if any(":" in line for line in lines[1:at]) else 0
    return 0


def _fence_end(lines: Sequence[str], at: int, mark: str) -> int:
    """Return the end of the fenced code at ``at``: to the end when it is not closed, 0 when it may be a mere line of tildes."""
    closing = re.compile(rf"\s*(?:>\s?)*{mark[0]}{{{len(mark)},}}\s*$")
    for end in range(at + 1, len(lines)):
        if closing.match(lines[end]):
            return end + 1
    if mark[0] == "~" or len(mark) > 3:
        return 0
    return _without_empty_end(lines, at, len(lines))


def _without_empty_end(lines: Sequence[str], at: int, end: int) -> int:
    while end > at + 1 and not lines[end - 1].strip():
        end -= 1
    return end


def _heading(lines: Sequence[str], at: int, gap: tuple[str, ...], *, apart: bool) -> Block | None:
    line = lines[at]
    following = lines[at + 1] if at + 1 < len(lines) else ""
    if len(line) <= _LONGEST_HEADING and (atx := _ATX.match(line)) and atx.group(2) and (apart or len(atx.group(1)) > 1):
        same = (next_atx := _ATX.match(following)) and next_atx.group(1) == atx.group(1)
        if not same and not (len(atx.group(1)) == 1 and _CODE_LINE.search(following)):
            return Block("heading", (line,), gap, len(atx.group(1)), sentences=(atx.group(2),))
    if not apart or not line.strip():
        return None
    if _UNDERLINE.match(line) and at + 2 < len(lines) and lines[at + 2].rstrip() == line.rstrip() and following.strip():
        return Block("heading", tuple(lines[at : at + 3]), gap, 1, sentences=(following.strip(),))
    if line[0].isspace() or _ITEM.match(line):
        return None
    if (under := _UNDERLINE.match(following)) and len(following.rstrip()) * 2 >= len(line.rstrip()) and len(line) <= 120:
        level = {"=": 1, "-": 2}.get(under.group(1), 3)
        return Block("heading", (line, following), gap, level, sentences=(line.strip(),))
    if _CAPITALS.match(line.rstrip()) and (not following.strip() or following[0].isspace()):
        return Block("heading", (line,), gap, 2, sentences=(line.strip(),))
    if (bold := _BOLD_LINE.match(line.rstrip())) and not following.strip():
        return Block("heading", (line,), gap, 6, sentences=(bold.group(2).strip(),))
    return None


def _table_end(lines: Sequence[str], at: int) -> int:
    line = lines[at]
    following = lines[at + 1] if at + 1 < len(lines) else ""
    piped = "|" in line and "|" in following and "-" in following and _DELIMITER_ROW.match(following)
    if not piped and (line[0].isalpha() or not _TABLE_BORDER.match(line)):
        return 0
    end = at + 1
    while end < len(lines) and lines[end].strip() and (not piped or "|" in lines[end]):
        end += 1
    return end


def _indented_end(lines: Sequence[str], at: int, *, blank: bool, least: int = 1) -> int:
    """Return the end of the line ``at`` and the lines indented by ``least`` after it; ``blank``: across empty lines."""
    end = last = at + 1
    while end < len(lines):
        if lines[end].strip():
            if _indent(lines[end]) < least:
                break
            last = end + 1
        elif not blank:
            break
        end += 1
    return last


def _html_end(lines: Sequence[str], at: int) -> int:
    comment = lines[at].lstrip().startswith("<!--")
    end = at
    while end < len(lines) and (comment or lines[end].strip()):
        end += 1
        if comment and "-->" in lines[end - 1]:
            break
    return _without_empty_end(lines, at, end)


def _chunk_end(lines: Sequence[str], at: int) -> int:
    end = at + 1
    while end < len(lines) and lines[end].strip():
        line = lines[end]
        if _FENCE.match(line) or _ITEM.match(line) or _DEFINITION.match(line):
            break
        if _QUOTE.match(line) and not _QUOTE.match(lines[at]):
            break
        if line.startswith("##") and _heading(lines, end, (), apart=False):
            break
        end += 1
    return end


def _prose(lines: Sequence[str], gap: tuple[str, ...]) -> Block:
    item = _ITEM.match(lines[0])
    quote = _QUOTE.match(lines[0])
    term = item is None and quote is None and _is_term(lines)
    if item is None and quote is None and not _is_prose(lines[1:] if term else lines):
        return _whole("verbatim", lines, gap)
    body = list(lines)
    if item is not None:
        kind, first, level = "item", item.group(), _indent(lines[0])
        rest = " " * len(first.expandtabs(4)) if len(lines) == 1 else _leading(lines[1])
        body[0] = lines[0][len(first) :]
    elif quote is not None:
        kind, first, rest, level = "text", quote.group(), quote.group(), _indent(lines[0])
        body = [line[len(mark.group()) :] if (mark := _QUOTE.match(line)) else line for line in lines]
    elif term:
        kind, first, rest, level = "text", lines[0] + "\n" + _leading(lines[1]), _leading(lines[1]), _indent(lines[0])
        body = body[1:]
    else:
        kind, first, level = "text", _leading(lines[0]), _indent(lines[0])
        rest = _leading(lines[1]) if len(lines) > 1 else first
    text = _BETWEEN.sub("", _BROKEN_WORD.sub("", _SPACE.sub(" ", " ".join(body)).strip()))
    return Block(kind, tuple(lines), gap, level, first, rest, tuple(split_sentences(text)))


def _leading(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _is_term(lines: Sequence[str]) -> bool:
    """Whether the first line is a term or an option and the deeper lines below explain it."""
    if len(lines) < 2 or lines[0].rstrip().endswith((".", ":", ",", ";")) or len(lines[0]) > 70:
        return False
    depth = _indent(lines[1])
    return depth >= _indent(lines[0]) + 2 and all(_indent(line) >= depth for line in lines[1:])


def _is_prose(lines: Iterable[str]) -> bool:
    """Whether ``lines`` read as sentences: mostly letters, no columns, not a pile of short lines."""
    stripped = [line.strip() for line in lines]
    text = " ".join(stripped)
    if not any(map(str.isalpha, text)):
        return False
    if len(stripped) > 1 and 2 * sum(_COLUMNS.search(line) is not None for line in stripped) > len(stripped):
        return False
    bare = visible(Block("verbatim", (text,), ()))
    bare = re.sub(r"`[^`]*`|https?://\S+", "x", bare)
    if sum(map(str.isalpha, bare)) + sum(map(str.isspace, bare)) < 0.78 * len(bare):
        return bool(re.search(r"[.!?。！？:]\s*$", text)) and count_words(bare) >= 6 and not re.search(r"[{};=]\s*$", text)
    middle = sorted(len(line) for line in stripped)[len(stripped) // 2]
    return len(stripped) < 3 or middle >= 30 or bool(re.search(f"[{UNSPACED}]", text))
