"""Structure: the headings, lists, code blocks and tables that are still there, and no section without content."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from jumar.core.text import plural
from jumar.demo.blocks import Block
from jumar.demo.outline import empty_sections
from jumar.demo.scores import Score, shares

__all__ = ["structure"]


def structure(reference: Sequence[Block], blocks: Sequence[Block]) -> Score:
    """Return the mean, weighted by what the original has, of the shares of headings, lists, code blocks and tables kept.

    Each kind counts with the square root of its number in the original, so that many lists don't drown a few headings. A
    list counts while it has two items, or as many as it had. Where there are neither headings nor lists, paragraphs count
    instead. Each section without content takes off a heading. An original without any structure gives 1.0, an empty
    document of one with structure 0.0.
    """
    wanted, found = _headings(reference), _headings(blocks)
    hollow = max(0, len(empty_sections(blocks)) - len(empty_sections(reference)))
    kept = {
        "heading": (max(0, (wanted & found).total() - hollow), wanted.total()),
        "list": (_lists(blocks), _lists(reference)),
        "code block": (_count(blocks, "code"), _count(reference, "code")),
        "table": (_count(blocks, "table"), _count(reference, "table")),
    }
    if not kept["heading"][1] and not kept["list"][1]:
        kept["paragraph"] = (_count(blocks, "text"), _count(reference, "text"))
    there = {kind: pair for kind, pair in kept.items() if pair[1]}
    if not there:
        return Score(1.0, "the original has no structure to keep")
    weight = math.fsum(math.sqrt(of) for _, of in there.values())
    score = math.fsum(math.sqrt(of) * shares(left, of) for left, of in there.values()) / weight
    facts = [f"{min(left, of)} of {plural(of, kind)}" for kind, (left, of) in there.items()]
    if hollow:
        facts.append(f"{plural(hollow, 'section')} without content")
    return Score(score, "kept " + ", ".join(facts))


def _headings(blocks: Sequence[Block]) -> Counter[str]:
    return Counter(block.sentences[0].casefold() for block in blocks if block.kind == "heading")


def _count(blocks: Sequence[Block], kind: str) -> int:
    return sum(block.kind == kind for block in blocks)


def _lists(blocks: Sequence[Block]) -> int:
    """Return how many runs of two or more items of one depth there are; what stands deeper does not end a run."""
    runs = 0
    open_runs: dict[int, int] = {}
    for block in blocks:
        if block.kind != "item":
            open_runs = {level: count for level, count in open_runs.items() if level < block.level and block.kind != "heading"}
            continue
        open_runs = {level: count for level, count in open_runs.items() if level <= block.level}
        open_runs[block.level] = open_runs.get(block.level, 0) + 1
        runs += open_runs[block.level] == 2
    return runs
