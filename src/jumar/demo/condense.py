"""The generator of the demo: one iteration that makes a document a little shorter. ``python -m jumar.demo.condense FILE``.

An iteration is a function of the text alone: no model, no random numbers, no memory of earlier iterations. It first says wordy
phrases shorter, then gives up the sentences, items, code blocks and tables that hold the least for their length
(``worth.py``), until a sixth of what the document holds is gone, or a quarter of its words. Repetitions and filler go
first because they hold nearly nothing, so how many words an iteration takes is decided by the text. Then what is left is put in
order (``tidy.py``). When only the title and three pieces are left, an iteration changes nothing.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

from jumar.core.text import escape, plural
from jumar.demo.blocks import Block, Document, parse, render, rewrite
from jumar.demo.outline import holders, introduces, title_of
from jumar.demo.reading import read_text, write_text
from jumar.demo.tidy import tidy
from jumar.demo.wording import shorten, without_link_word
from jumar.demo.words import count_words
from jumar.demo.worth import parts_of

__all__ = ["KERNEL", "Pass", "condense", "main"]

KERNEL = 3
"""Pieces that are never given up, besides the title."""

_SHARE_OF_VALUE = 1 / 6
_SHARE_OF_WORDS = 1 / 4


class Pass(NamedTuple):
    """The text after a pass, and what the pass did: phrases shortened, pieces given up, headings gone with their sections."""

    text: str
    phrases: int
    removed: int
    headings: int


def condense(text: str) -> Pass:
    r"""Return ``text`` one step shorter; when only the kernel is left, the same text. Line ends are ``\n``."""
    document = parse(text)
    blocks = list(document.blocks)
    title = title_of(blocks)
    phrases = _shorten_all(blocks, title)
    gone = _choose(blocks, title)
    if not phrases and not gone:
        return Pass(text, 0, 0, 0)
    tidied = tidy(blocks, _without(blocks, gone), title) if gone else blocks
    headings = sum(block.kind == "heading" for block in blocks) - sum(block.kind == "heading" for block in tidied)
    return Pass(render(Document(tuple(tidied), document.tail)), phrases, len(gone), headings)


def _shorten_all(blocks: list[Block], title: int | None) -> int:
    """Shorten the wording of all prose but the title, in place; return the number of phrases."""
    total = 0
    for at, block in enumerate(blocks):
        if not block.prose or at == title:
            continue
        said = [shorten(sentence) for sentence in block.sentences]
        found = sum(one.phrases for one in said)
        if found:
            total += found
            blocks[at] = rewrite(block, [one.text for one in said])
    return total


def _choose(blocks: Sequence[Block], title: int | None) -> set[tuple[int, int]]:
    """Return the (block, sentence) pairs to give up, none when only the kernel is left."""
    parts = parts_of(blocks, title)
    held = _held(blocks)
    value_left = math.fsum(part.value for part in parts) * _SHARE_OF_VALUE
    words, taken = sum(part.words for part in parts), 0
    gone: set[tuple[int, int]] = set()
    for part in sorted(parts, key=lambda part: (part.density, -part.block, -part.sentence)):  # of equals the later goes first
        if len(parts) - len(gone) <= KERNEL:
            break
        if (part.block, part.sentence) in held:
            continue
        if taken and (part.value > value_left or taken + part.words > words * _SHARE_OF_WORDS):
            break
        gone.add((part.block, part.sentence))
        value_left -= part.value
        taken += part.words
    return gone


def _held(blocks: Sequence[Block]) -> set[tuple[int, int]]:
    """Return the pieces that others stand on: the announcement of a list, the words of an item with something below it."""
    held: set[tuple[int, int]] = set()
    for holder in set(holders(blocks)):
        if holder is not None and blocks[holder].prose:
            held.add((holder, len(blocks[holder].sentences) - 1 if introduces(blocks[holder]) else 0))
    return held


def _without(blocks: Sequence[Block], gone: set[tuple[int, int]]) -> list[Block | None]:
    """Return the blocks without the pieces in ``gone``; None stands for a block that went whole."""
    kept: list[Block | None] = []
    for at, block in enumerate(blocks):
        left = [number for number in range(len(block.sentences)) if (at, number) not in gone]
        if (at, -1) in gone or (block.prose and not left):
            kept.append(None)
        elif not block.prose or len(left) == len(block.sentences):
            kept.append(block)
        else:
            kept.append(rewrite(block, [_said(block.sentences, number, torn=(at, number - 1) in gone) for number in left]))
    return kept


def _said(sentences: Sequence[str], number: int, *, torn: bool) -> str:
    return without_link_word(sentences[number]) if torn else sentences[number]


def main(arguments: Sequence[str]) -> int:
    """Condense the file named in ``arguments`` by one iteration, in place; return the exit code.

    When nothing was left to do, the file stays as it is and the usage file (``JUMAR_USAGE_FILE``), if there is one, says
    ``completed``. Tokens and cost are not reported: there are none to know.
    """
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m jumar.demo.condense FILE\n")
        return 2
    path = arguments[0]
    try:
        before = read_text(path)
        done = condense(before.text)
        if done.text != before.text:
            write_text(path, before._replace(text=done.text))
            sys.stdout.write(_summary(before.text, done))
        else:
            sys.stdout.write("nothing left to take away\n")
            _report_completed(os.environ.get("JUMAR_USAGE_FILE"))
    except OSError as error:
        sys.stderr.write(f"could not condense {escape(path)}: {error.strerror}\n")
        return 1
    return 0


def _summary(before: str, done: Pass) -> str:
    return (
        f"{count_words(before):,} to {count_words(done.text):,} words: {plural(done.phrases, 'phrase')} shortened, "
        f"{plural(done.removed, 'piece')} given up, {plural(done.headings, 'heading')} merged\n"
    )


def _report_completed(path: str | None) -> None:
    if path:
        with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123  (a child process need not load pathlib)
            json.dump({"completed": True}, file)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
