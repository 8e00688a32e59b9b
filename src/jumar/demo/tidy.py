"""Putting a document in order after pieces of it were taken out.

Nothing may be left that points at what is gone: announcements without their list, headings without a section, links to
such headings, numbers that skip, link definitions that nobody uses, rules with nothing between them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from jumar.demo.blocks import Block, rewrite
from jumar.demo.outline import anchors, empty_sections, holders, internal_links, introduces, numbered_lists

__all__ = ["tidy"]

_INTERNAL = re.compile(r"(?<!!)\[((?:[^\[\]]|!?\[[^\[\]]*\](?:\([^()]*\))?)*)\]\(#([^)\s]+)\)")
_WORD_OUTSIDE = re.compile(r"\w")
_LABEL = re.compile(r"\s*(?:\[([^\]]+)\]:|\.\. (?:_([^:]+):|\[([^\]]+)\]|\|([^|]+)\|))")


def tidy(blocks: Sequence[Block], kept: list[Block | None], title: int | None) -> list[Block]:
    """Return ``kept`` in order. It is ``blocks`` with None for what went whole; the block ``title`` stays whatever happens."""
    below: defaultdict[int, list[int]] = defaultdict(list)
    for at, holder in enumerate(holders(blocks)):
        if holder is not None:
            below[holder].append(at)
    before = anchors(blocks)
    while True:
        changed = _drop_announcements(blocks, kept, below, title)
        changed |= _drop_headings(kept, title)
        changed |= _drop_links(kept, before - anchors(_left(kept)), title)
        if not changed:
            break
    _drop_definitions(kept)
    _drop_rules(kept)
    _renumber(blocks, kept)
    return _close_gaps(blocks, kept)


def _left(kept: Sequence[Block | None]) -> list[Block]:
    return [block for block in kept if block is not None]


def _drop_announcements(
    blocks: Sequence[Block], kept: list[Block | None], below: Mapping[int, Sequence[int]], title: int | None
) -> bool:
    """Drop announcements of which everything announced is gone, or which now stand at the end of their section."""
    changed = False
    following: Block | None = None
    for at in reversed(range(len(kept))):  # inner lists before the list that they stand in
        block = kept[at]
        if block is None:
            continue
        if introduces(block) and not (at == title and len(block.sentences) == 1):
            alone = at in below and introduces(blocks[at]) and all(kept[other] is None for other in below[at])
            if alone or (_ends(following) and not _ends(blocks[at + 1] if at + 1 < len(blocks) else None)):
                block = rewrite(block, block.sentences[:-1]) if len(block.sentences) > 1 else None
                kept[at] = block
                changed = True
        following = block or following
    return changed


def _ends(following: Block | None) -> bool:
    return following is None or following.kind in {"heading", "rule"}


def _drop_headings(kept: list[Block | None], title: int | None) -> bool:
    places = [at for at, block in enumerate(kept) if block is not None]
    empty = [places[number] for number in empty_sections(_left(kept))]
    for at in empty:
        if at != title:
            kept[at] = None
    return bool(set(empty) - {title})


def _drop_links(kept: list[Block | None], lost: set[str], title: int | None) -> bool:
    """Make links to ``lost`` anchors plain words, and drop sentences that are nothing but such a link (tables of contents)."""
    changed = False
    for at, block in enumerate(kept):
        if not lost or block is None or block.kind == "code" or lost.isdisjoint(internal_links("\n".join(block.raw))):
            continue
        after: Block | None
        if block.prose and at != title:
            sentences = list(_relinked(block.sentences, lost))
            after = block if sentences == list(block.sentences) else rewrite(block, sentences) if sentences else None
        else:
            after = _in_plain_words(block, lost)
        if after != block:
            kept[at] = after
            changed = True
    return changed


def _in_plain_words(block: Block, lost: set[str]) -> Block:
    """Return ``block`` line by line as it was, but for its links to ``lost`` anchors."""

    def unlinked(text: str) -> str:
        return _INTERNAL.sub(lambda match: match.group(1) if match.group(2) in lost else match.group(), text)

    return block._replace(
        raw=tuple(unlinked(line) for line in block.raw), sentences=tuple(unlinked(sentence) for sentence in block.sentences)
    )


def _relinked(sentences: Sequence[str], lost: set[str]) -> Iterator[str]:
    for sentence in sentences:
        dead = [match for match in _INTERNAL.finditer(sentence) if match.group(2) in lost]
        if dead and not _WORD_OUTSIDE.search(_INTERNAL.sub("", sentence)):
            continue
        yield _INTERNAL.sub(lambda match: match.group(1) if match.group(2) in lost else match.group(), sentence)


def _drop_definitions(kept: list[Block | None]) -> None:
    """Drop link and footnote definitions whose label stands nowhere else."""
    text = "\n".join("\n".join(block.raw) for block in _left(kept) if block.kind != "definition").lower()
    for at, block in enumerate(kept):
        if block is None or block.kind != "definition" or (label := _LABEL.match(block.raw[0])) is None:
            continue
        name = next(group for group in label.groups() if group is not None).lower()
        if not any(use in text for use in (f"[{name}]", f"{name}_", f"`{name}`_", f"|{name}|")):
            kept[at] = None


def _drop_rules(kept: list[Block | None]) -> None:
    """Drop rules that part nothing any more: at the end, or after another rule."""
    last: int | None = None
    for at, block in enumerate(kept):
        if block is None:
            continue
        if block.kind == "rule" and last is not None and (before := kept[last]) is not None and before.kind == "rule":
            kept[at] = None
            continue
        last = at
    if last is not None and last > 0 and (final := kept[last]) is not None and final.kind == "rule":
        kept[last] = None


def _renumber(blocks: Sequence[Block], kept: list[Block | None]) -> None:
    for numbered in numbered_lists(blocks):
        left = [place for place in numbered if kept[place[0]] is not None]
        for count, (at, number) in enumerate(left):
            block = kept[at]
            wanted = numbered[0][1] + count
            if block is None or wanted == number:
                continue
            first = block.first.replace(str(number), str(wanted), 1)
            kept[at] = block._replace(raw=(first + block.raw[0][len(block.first) :], *block.raw[1:]), first=first)


def _close_gaps(blocks: Sequence[Block], kept: Sequence[Block | None]) -> list[Block]:
    """Return what is left; where something went, the widest of the empty spaces around it stays, none before the first block."""
    left: list[Block] = []
    widest: tuple[str, ...] = ()
    for original, block in zip(blocks, kept, strict=True):
        if block is None:
            widest = max(widest, original.gap, key=len)
            continue
        gap = blocks[0].gap if not left else max(widest, block.gap, key=len)
        left.append(block._replace(gap=gap))
        widest = ()
    return left
