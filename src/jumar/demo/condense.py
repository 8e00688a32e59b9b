"""The generator of the demo: one iteration that makes a document a little shorter. ``python -m jumar.demo.condense FILE``.

An iteration is a function of the text alone: no model, no random numbers, no memory of earlier iterations. It says wordy phrases
shorter, then gives up the pieces that hold the least for their length, until a sixth of what the document holds is gone, or a
quarter of its words. Repetitions and filler go first because they hold nearly nothing; after them, information goes.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from jumar.core.text import escape, plural
from jumar.demo.text import FENCE, ITEM, LINK, Block, anchor_of, decode, pairs_of, parse, render, terms_of

KERNEL = 3
"""Pieces that are never given up, besides the title."""

_SHARE_OF_VALUE, _SHARE_OF_WORDS = 1 / 6, 1 / 4
_PHRASES = """
as a result of > because of; at all times > always; at that point in time > then; at this point in time > now;
be able to > can; by means of > by; came to the conclusion > concluded; despite the fact that > although;
due to the fact that > because; during the course of > during; each and every > every; for the duration of > during;
for the purpose of > for; in addition to > besides; in most cases > mostly; in order to > to; in spite of > despite;
in the course of > during; in the event that > if; in the vast majority of cases > mostly; in the vicinity of > near;
is able to > can; are able to > can; make use of > use; not in a position to > unable to; on a daily basis > daily;
on a regular basis > regularly; on a weekly basis > weekly; prior to > before; the majority of > most;
until such time as > until; whether or not > whether; with regard to > about; with respect to > about;
with the exception of > except"""
_SHORTER = {wordy: short for wordy, _, short in (pair.strip().partition(" > ") for pair in _PHRASES.split(";"))}
_WORDY = re.compile(rf"(?P<kept>`[^`]*`|{LINK.pattern}|\"[^\"]*\")|\b(?P<wordy>{'|'.join(_SHORTER)})\b", re.IGNORECASE)
_EMPTY_OPENING = re.compile(
    r"^(?:please note that|it (?:is|should be) (?:important to note|worth mentioning|worth noting|noted|remembered) that"
    r"|it goes without saying that|needless to say,|as (?:has |was )?(?:already )?(?:been )?mentioned (?:above|before|earlier),"
    r"|in other words,|of course,|basically,|first of all,|at the end of the day,) (?=\S)",
    re.IGNORECASE,
)
_ASIDE = re.compile(r"(?<=[a-z]) (?:basically|actually|really|very|of course|so to speak)(?= [a-z])")
_CHATTER = re.compile(
    r"\b(?:welcome to|thank you|once again|feel free|don't worry|to be honest|we hope|mentioned)\b", re.IGNORECASE
)
_LINKING = re.compile(r"^(?:however|therefore|thus|in addition|as a consequence|moreover|for this reason), (?=\S)", re.IGNORECASE)
_BEGINS_A_BLOCK = re.compile(r"[-*+•>|=~<#]|\(?\d{1,3}[.)]\s|\.\. |\[[^\]]*\]:|`{3}")
_DEFINITION = re.compile(r"\s*\[[^\]]+\]:")


class _Piece(NamedTuple):
    """What can be given up: a sentence of a paragraph, or an item, code block or table as a whole."""

    block: int
    sentence: int
    words: int
    value: float
    density: float


def condense(text: str) -> str:
    r"""Return ``text`` one step shorter; when only the kernel is left, the same text. Line ends are ``\n``."""
    blocks = parse(text)
    title = blocks[0].sentences[:1]  # it stays as it is
    shortened = [_with(block, [text if (text,) == title else shorten(text) for text in block.sentences]) for block in blocks]
    gone = _choose(shortened)
    return render(_tidy(shortened, [_without(shortened, at, gone) for at in range(len(blocks))]))


def shorten(sentence: str) -> str:
    """Return ``sentence`` with wordy phrases of English said shorter; code, links and quotations stay as they are."""

    def replace(match: re.Match[str]) -> str:
        return match["kept"] or (_capital if match["wordy"][0].isupper() else str)(_SHORTER[match["wordy"].lower()])

    opened = _EMPTY_OPENING.sub("", sentence)
    return _WORDY.sub(replace, _ASIDE.sub("", opened if opened == sentence else _capital(opened)))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _choose(blocks: Sequence[Block]) -> set[tuple[int, int]]:
    """Return the (block, sentence) pairs to give up; none when only the kernel is left."""
    pieces = _pieces(blocks)
    value_left = math.fsum(piece.value for piece in pieces) * _SHARE_OF_VALUE
    words_left = sum(piece.words for piece in pieces) * _SHARE_OF_WORDS
    gone: set[tuple[int, int]] = set()
    for piece in sorted(pieces, key=lambda piece: (piece.density, -piece.block, -piece.sentence))[:-KERNEL]:
        if gone and (piece.value > value_left or piece.words > words_left):
            break
        if not _announces(blocks, piece.block) or piece.sentence < len(blocks[piece.block].sentences) - 1:
            gone.add((piece.block, piece.sentence))
            value_left -= piece.value
            words_left -= piece.words
    return gone


def _pieces(blocks: Sequence[Block]) -> list[_Piece]:
    """Return what can be given up, with its value, in order; headings and the title cannot.

    A piece has the weight of its terms, each ``ln(1 + count)`` (Luhn 1958: words that come back matter), times the share of its
    pairs of terms that no earlier piece had (Carbonell and Goldstein 1998: relevance minus redundancy). What opens a section
    counts more, so do numbers and code; chatter counts less. Density is the value for the length, two words added to each line.
    """
    counts = Counter(term for block in blocks for sentence in block.sentences for term in terms_of(sentence))
    seen: set[tuple[str, ...]] = set()
    pieces: list[_Piece] = []
    for at, block in enumerate(blocks):
        for number, sentence in enumerate(block.sentences):
            if not (at or number) or block.kind == "heading" or _DEFINITION.match(block.raw) or not block.raw:
                continue
            terms = terms_of(sentence)
            pairs = pairs_of(terms)
            new = len(pairs - seen) / len(pairs) if pairs else 0.0
            seen |= pairs
            value = math.fsum(math.log1p(counts[term]) for term in sorted(set(terms))) * (0.1 + 0.9 * new)
            value *= 1.25 if at and not number and blocks[at - 1].kind == "heading" else 1.0
            value *= 1.15 if re.search(r"\d|`", sentence) else 1.0
            value *= 0.4 if _CHATTER.search(sentence) else 1.0
            words = len(sentence.split())
            pieces.append(_Piece(at, number, words, value, value / (words + 2 * (sentence.count("\n") + 1))))
    return pieces


def _announces(blocks: Sequence[Block], at: int) -> bool:
    """Whether the block at ``at`` ends with a colon and what it speaks of follows."""
    follows = at + 1 < len(blocks) and blocks[at + 1].kind != "heading" and bool(blocks[at + 1].raw)
    return follows and blocks[at].kind == "text" and blocks[at].raw.rstrip().endswith(":")


def _without(blocks: Sequence[Block], at: int, gone: set[tuple[int, int]]) -> Block | None:
    """Return the block at ``at`` without the pieces in ``gone``, None when nothing of it is left."""
    block = blocks[at]
    left = [
        _capital(_LINKING.sub("", sentence)) if (at, number - 1) in gone else sentence
        for number, sentence in enumerate(block.sentences)
        if (at, number) not in gone
    ]
    return _with(block, left) if left else None


def _with(block: Block, sentences: Sequence[str]) -> Block:
    """Return a paragraph with other ``sentences``, filled to its own width, in one line where a line would begin a block.

    As it is where the first of them would begin one.
    """
    if block.kind != "text" or block.sentences == tuple(sentences) or _BEGINS_A_BLOCK.match(sentences[0]):
        return block
    lines = block.raw.split("\n")
    first, rest = (line[: len(line) - len(line.lstrip())] for line in (lines[0], lines[-1]))
    width = max(map(len, lines)) if len(lines) > 1 else sys.maxsize
    text = " ".join(sentences)
    filled = textwrap.fill(
        text, max(20, width), initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )
    if any(_BEGINS_A_BLOCK.match(line.lstrip()) for line in filled.split("\n")[1:]):
        filled = first + text
    return block._replace(raw=filled, sentences=tuple(sentences))


def _tidy(before: Sequence[Block], after: Sequence[Block | None]) -> list[Block]:
    """Return what is left in order: no announcement of nothing, no empty section, lists renumbered, no link to what is gone."""
    kept = list(after)
    for at in reversed(range(len(kept))):
        block, following = kept[at], next((later for later in kept[at + 1 :] if later is not None and later.raw), None)
        if block is None or not at:
            continue
        if _announces(before, at) and (following is None or following.kind != before[at + 1].kind):
            kept[at] = _with(block, block.sentences[:-1]) if len(block.sentences) > 1 else None
        if block.kind == "heading" and following != _next(before, at) and (following is None or following.kind == "heading"):
            kept[at] = None
    lost = {anchor_of(block.sentences[0]) for at, block in enumerate(before) if block.kind == "heading" and kept[at] is None}
    return [_unlinked(block, lost) for block in _closed_up(before, kept)]


def _next(blocks: Sequence[Block], at: int) -> Block | None:
    return blocks[at + 1] if at + 1 < len(blocks) else None


def _closed_up(before: Sequence[Block], kept: Sequence[Block | None]) -> list[Block]:
    """Return the blocks that are left, numbered lists without a hole, and each as far apart from the last as what was between."""
    closed: list[Block] = []
    number: int | None = None
    gap = ""
    for block, left in zip(before, kept, strict=True):
        item = ITEM.match(block.raw) if block.kind == "item" else None
        number = None if item is None or item[2] is None else int(item[2]) if number is None else number
        gap = max(gap, block.gap, key=len) if closed and block.raw else block.gap
        if left is None:
            continue
        raw = left.raw
        if item is not None and number is not None:
            raw = f"{raw[: item.start(2)]}{number}{raw[item.end(2) :]}"
            number += 1
        closed.append(left._replace(raw=raw, gap=gap))
        gap = ""
    return closed


def _unlinked(block: Block, lost: set[str]) -> Block:
    """Return ``block`` with links to the sections ``lost`` as plain words; code is left as it is."""
    if not lost or FENCE.match(block.raw):
        return block
    raw = LINK.sub(lambda link: link[1] if link[2][:1] == "#" and link[2][1:] in lost else link[0], block.raw)
    return block._replace(raw=raw)


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
        with open(path, "rb") as file:  # noqa: PTH123  (a child process need not load pathlib)
            before, _ = decode(file.read())
        text = condense(before)
        if text != before:
            with open(path, "w", encoding="utf-8", newline="\n") as file:  # noqa: PTH123
                file.write(text)
            words = plural(len(before.split()), "word")
            sys.stdout.write(f"{words} condensed to {len(text.split()):,}\n")
        else:
            sys.stdout.write("nothing left to take away\n")
            if usage := os.environ.get("JUMAR_USAGE_FILE"):
                with open(usage, "w", encoding="utf-8") as file:  # noqa: PTH123
                    json.dump({"completed": True}, file)
    except OSError as error:
        sys.stderr.write(f"could not condense {escape(path)}: {error.strerror}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
