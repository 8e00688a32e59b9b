"""How the blocks of a document hang together: its title, its sections, what belongs below what, what links where."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jumar.demo.blocks import Block, visible
from jumar.demo.words import count_words

__all__ = ["anchors", "empty_sections", "holders", "internal_links", "introduces", "numbered_lists", "targets", "title_of"]

_EXPLICIT_ANCHOR = re.compile(r"<[A-Za-z][^>]*\b(?:id|name)\s*=\s*[\"']?([^\"'\s>]+)|\{#([^}\s]+)\}")
_INTERNAL = re.compile(r"\]\(#([^)\s]+)\)")
_INLINE = re.compile(r"\]\(\s*<?([^)\s>]+)|<([a-z][a-z0-9+.\-]*:[^>\s]+)>|(?<![(<\w])(https?://[^\s<>)\]\"'`]+)")
_NUMBER = re.compile(r"\s*\(?(\d{1,3})[.)]")
_NOT_IN_A_SLUG = re.compile(r"[^\w\- ]")


def title_of(blocks: Sequence[Block]) -> int | None:
    """Return the index of the first block that says something: links, badges, comments, rules and front matter don't."""
    for at, block in enumerate(blocks):
        if block.kind not in {"rule", "front", "definition"} and count_words(visible(block)):
            return at
    return None


def introduces(block: Block) -> bool:
    """Whether ``block`` ends by announcing what follows it ("the following steps:")."""
    return block.prose and bool(block.sentences) and block.sentences[-1].rstrip("*_ ").endswith((":", "："))


def holders(blocks: Sequence[Block]) -> list[int | None]:
    """Return for each block the index of the block that it makes no sense without, or None.

    A deeper block below a list item belongs to the item; what follows an announcement belongs to the announcement, and so do the
    further items of the same list; paragraphs below a short item that stands alone ("3. Definitions.") belong to it.
    """
    found: list[int | None] = []
    items: list[int] = []
    announced: int | None = None
    for at, block in enumerate(blocks):
        while items and (block.kind == "heading" or block.level <= blocks[items[-1]].level):
            items.pop()
        if items:
            found.append(items[-1])
        elif block.kind == "heading" or at == 0:
            announced = None
            found.append(None)
        else:
            announced = _holder_beside(blocks, at, announced)
            found.append(announced)
        if block.kind == "item":
            items.append(at)
    return found


def _holder_beside(blocks: Sequence[Block], at: int, announced: int | None) -> int | None:
    block, before = blocks[at], blocks[at - 1]
    if introduces(before) and (block.kind in {"code", "table", "verbatim"} or (block.kind == "item" and before.kind == "text")):
        return at - 1
    if block.kind == "text" and block.gap and before.kind == "item" and before.gap and len("".join(before.raw)) <= 70:
        return at - 1
    if announced is not None and block.kind == blocks[announced + 1].kind and block.kind in {"item", "text"}:
        return announced
    return None


def empty_sections(blocks: Sequence[Block]) -> list[int]:
    """Return the indices of headings with nothing below them: no block and no deeper heading before the next of their level."""
    found: list[int] = []
    for at, block in enumerate(blocks):
        if block.kind != "heading":
            continue
        below = at + 1
        while below < len(blocks) and blocks[below].kind in {"rule", "definition"}:
            below += 1
        if below == len(blocks) or (blocks[below].kind == "heading" and blocks[below].level <= block.level):
            found.append(at)
    return found


def anchors(blocks: Sequence[Block]) -> set[str]:
    """Return the names that ``#name`` links can reach: the headings' (as GitHub makes them) and the explicit ones."""
    names: set[str] = set()
    for block in blocks:
        if block.kind == "heading":
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", block.sentences[0])
            slug = _NOT_IN_A_SLUG.sub("", plain.lower()).replace(" ", "-")
            count = 0
            while (name := f"{slug}-{count}" if count else slug) in names:
                count += 1
            names.add(name)
        for line in block.raw:
            if "<" in line or "{#" in line:
                names.update(one or other for one, other in _EXPLICIT_ANCHOR.findall(line))
    return names


def numbered_lists(blocks: Sequence[Block]) -> list[list[tuple[int, int]]]:
    """Return the numbered lists as lists of (block index, number): items of one depth that count up.

    Deeper blocks and code may stand between them; a paragraph of their own depth ends a list, so numbered sections are no list.
    """
    lists: list[list[tuple[int, int]]] = []
    running: dict[int, list[tuple[int, int]]] = {}
    for at, block in enumerate(blocks):
        ended = {"heading": -1, "code": block.level, "item": block.level}.get(block.kind, block.level - 1)
        for level in [level for level in running if level > ended]:
            del running[level]
        if block.kind != "item" or (match := _NUMBER.match(block.first)) is None:
            continue
        number = int(match.group(1))
        current = running.get(block.level)
        if current is None or current[-1][1] + 1 != number:
            current = running[block.level] = []
            lists.append(current)
        current.append((at, number))
    return lists


def internal_links(text: str) -> list[str]:
    """Return the names that ``[words](#name)`` links of ``text`` point to, in order."""
    return _INTERNAL.findall(text)


def targets(text: str) -> list[str]:
    """Return every link target of ``text``, relative ones and bare addresses included, in order, without closing punctuation."""
    return [(inline or auto or bare).rstrip(".,;:!?") for inline, auto, bare in _INLINE.findall(text)]
