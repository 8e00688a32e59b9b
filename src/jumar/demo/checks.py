"""The checks of the demo: what condensing must not break. What was already broken in the original is not held against it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from jumar.core.text import plural
from jumar.demo.blocks import Block, visible
from jumar.demo.outline import anchors, holders, internal_links, introduces, numbered_lists, targets, title_of
from jumar.demo.scores import Check, words_of
from jumar.demo.words import fold, tokens

__all__ = ["links", "markup", "title"]

_FENCE = re.compile(r"\s*(?:>\s?)*(?:[-*+]\s+)?(`{3,}|~{3,})")
_REFERENCE = re.compile(r"\]\[([^\[\]]+)\]|\[(\^[^\[\]]+)\](?!:)")
_LABEL = re.compile(r"\s*\[([^\]]+)\]:")


def title(reference: Sequence[Block], blocks: Sequence[Block]) -> Check:
    """Pass when the document has words and still opens with the original's title (its heading, else its first sentence)."""
    if not words_of(blocks):
        return Check(passed=False, reason="the document is empty")
    wanted, found = _title(reference), _title(blocks)
    words = _folded(wanted)
    shown = wanted if len(wanted) <= 80 else wanted[:79] + "…"
    if _folded(found)[: len(words)] != words:
        return Check(passed=False, reason=f"the title is gone: {shown}")
    return Check(passed=True, reason=f"the title is there: {shown}")


def _title(blocks: Sequence[Block]) -> str:
    at = title_of(blocks)
    if at is None:
        return ""
    block = blocks[at]
    return block.sentences[0] if block.sentences else visible(block)


def _folded(text: str) -> list[str]:
    return [fold(word) for word in tokens(text)]


def markup(reference: Sequence[Block], blocks: Sequence[Block]) -> Check:
    """Pass when code fences are closed, what is announced follows, no list skips a number, and no item hangs in the air."""
    problems: list[str] = []
    if _open_fence(blocks) and not _open_fence(reference):
        problems.append("a code fence is not closed")
    if (broken := _announcements(blocks) - _announcements(reference)) > 0:
        problems.append(f"{plural(broken, 'announcement')} with nothing after it")
    starts = {numbered[0][1] for numbered in numbered_lists(reference)}
    skipped = [numbered[0][1] for numbered in numbered_lists(blocks) if numbered[0][1] not in starts]
    if skipped:
        problems.append(f"a list goes on at {skipped[0]} without what comes before")
    if (orphans := _orphans(blocks) - _orphans(reference)) > 0:
        problems.append(f"{plural(orphans, 'item')} without the item above it")
    if problems:
        return Check(passed=False, reason="; ".join(problems))
    return Check(passed=True, reason="fences, announcements and lists are whole")


def _open_fence(blocks: Sequence[Block]) -> bool:
    return any(
        block.kind == "code" and (mark := _FENCE.match(block.raw[0])) is not None
        and (len(block.raw) == 1 or block.raw[-1].lstrip(" >\t").rstrip().strip(mark.group(1)[0]) != "")
        for block in blocks
    )  # fmt: skip


def _announcements(blocks: Sequence[Block]) -> int:
    """Return how many announcements are followed by a heading, or by nothing."""
    ends = {"heading", "rule"}
    return sum(introduces(block) and (after is None or after.kind in ends) for block, after in _with_next(blocks))


def _with_next(blocks: Sequence[Block]) -> Iterator[tuple[Block, Block | None]]:
    for at, block in enumerate(blocks):
        yield block, blocks[at + 1] if at + 1 < len(blocks) else None


def _orphans(blocks: Sequence[Block]) -> int:
    """Return how many items are indented but stand below no other item."""
    below = holders(blocks)
    return sum(block.kind == "item" and block.level >= 2 and below[at] is None for at, block in enumerate(blocks))


def links(reference: Sequence[Block], blocks: Sequence[Block]) -> Check:
    """Pass when each link leads where one of the original led, and none to a heading or a definition that is gone."""
    before, after = _text(reference), _text(blocks)
    known = set(targets(before))
    used = targets(after)
    strange = [target for target in used if target not in known]
    if strange:
        return Check(passed=False, reason=f"a link was damaged: {strange[0]}")
    lost = anchors(reference) - anchors(blocks)
    dead = [name for name in internal_links(after) if name in lost]
    if dead:
        return Check(passed=False, reason=f"a link leads to a section that is gone: #{dead[0]}")
    undefined = _undefined(blocks, after) - _undefined(reference, before)
    if undefined:
        return Check(passed=False, reason=f"a link lost its definition: [{min(undefined)}]")
    return Check(passed=True, reason=f"{plural(len(used), 'link')}, none broken")


def _text(blocks: Sequence[Block]) -> str:
    # Code is left out: what stands there is shown, not linked.
    shown = [block for block in blocks if block.kind != "code"]
    return "\n\n".join(" ".join(block.sentences) or "\n".join(block.raw) for block in shown)


def _undefined(blocks: Sequence[Block], text: str) -> set[str]:
    defined = {match.group(1).lower() for block in blocks if block.kind == "definition" and (match := _LABEL.match(block.raw[0]))}
    return {(one or other).lower() for one, other in _REFERENCE.findall(text)} - defined
