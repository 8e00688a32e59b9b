"""The scorers and checks of the demo that are not built in, as commands.

``python -m jumar.demo.measure NAME DOCUMENT --reference ORIGINAL [--bytes N]``

A scorer prints one line of JSON, ``{"score": 0.83, "reason": "…"}``, a check one line of words, and exits 0 (passed) or 1. A file
that cannot be read, or a wrong call, is exit code 2. What a demo of an older jumar recorded is understood as well: ``--bytes``
(only the first N bytes of the original count), and the names of scorers that are built in today.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Sequence

from jumar.core.text import escape, plural
from jumar.demo.text import FENCE, ITEM, LINK, Block, anchor_of, decode, pairs_of, parse, terms_of

SCORES = ("coverage", "novelty")
FORMER = ("length", "readability", "structure")
CHECKS = ("links", "markup", "title")


def measure(name: str, reference: str, document: str) -> tuple[float, str]:
    """Return a score in [0, 1] and its reason; of a check 1.0 or 0.0. What the original has broken too is no failure."""
    if name in FORMER:
        return _former(name, reference, document), ""
    score = {"coverage": _coverage, "novelty": _novelty, "links": _links, "markup": _markup, "title": _title}[name]
    return score(parse(reference), parse(document))


def _coverage(reference: Sequence[Block], blocks: Sequence[Block]) -> tuple[float, str]:
    """Return how much of what the original talks about is still talked about: its key terms by weight, and the weightiest gone.

    Key terms stand more than once, are numbers, or stand in a heading; in a text with fewer than twelve, all terms are.
    """
    counts = Counter(term for block in reference for sentence in block.sentences for term in terms_of(sentence))
    marked = {term for block in reference if block.kind == "heading" for term in terms_of(block.sentences[0])}
    key = [term for term in counts if counts[term] > 1 or term in marked or term[0].isdigit()]
    weights = {term: 1 + math.log2(counts[term]) for term in (key if len(key) >= 12 else counts)}
    present = {term for block in blocks for sentence in block.sentences for term in terms_of(sentence)}
    gone = sorted(weights.keys() - present, key=lambda term: (-weights[term], term))
    score = 1 - math.fsum(weights[term] for term in gone) / math.fsum(weights.values()) if weights else 1.0
    reason = f"{len(weights) - len(gone)} of {plural(len(weights), 'key term')} left"
    return max(0.0, score), f"{reason}; the weightiest gone: {', '.join(gone[:5])}" if gone else reason


def _novelty(reference: Sequence[Block], blocks: Sequence[Block]) -> tuple[float, str]:
    """Return the share of neighbouring pairs of terms that no earlier sentence had."""
    del reference  # a text that says things twice does so by itself
    seen: set[tuple[str, ...]] = set()
    pairs = 0
    for own in (pairs_of(terms_of(sentence)) for block in blocks for sentence in block.sentences):
        pairs += len(own)
        seen |= own
    return (len(seen) / pairs if pairs else 0.0), f"{pairs - len(seen):,} of {plural(pairs, 'pair')} of terms repeated"


def _title(reference: Sequence[Block], blocks: Sequence[Block]) -> tuple[float, str]:
    """Whether the document still opens as the original does: with its first heading or sentence."""
    title = reference[0].sentences[0]
    there = bool(blocks) and blocks[0].sentences[0].startswith(title)
    return float(there), f"the title is {'there' if there else 'gone'}: {title[:80]}"


def _markup(reference: Sequence[Block], blocks: Sequence[Block]) -> tuple[float, str]:
    """Whether code fences are closed, no list skips its beginning, and what is announced follows."""
    problems = [problem for problem in _damage(blocks) if problem not in _damage(reference)]
    return float(not problems), "; ".join(problems) or "fences, lists and announcements are whole"


def _damage(blocks: Sequence[Block]) -> list[str]:
    problems: list[str] = []
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        fence = FENCE.match(block.raw)
        if fence and not block.raw.rpartition("\n")[2].lstrip().startswith(fence[1]):
            problems.append("a code fence is not closed")
        if block.kind == "text" and block.raw.rstrip().endswith(":") and (following is None or following.kind == "heading"):
            problems.append(f"nothing follows after: {block.sentences[-1][:80]}")
    runs = zip([None, *blocks], blocks, strict=False)
    starts = [ITEM.match(block.raw) for before, block in runs if block.kind == "item" and (not before or before.kind != "item")]
    return [*problems, *(f"a list begins at {start[2]}" for start in starts if start and start[2] and int(start[2]) > 1)]


def _links(reference: Sequence[Block], blocks: Sequence[Block]) -> tuple[float, str]:
    """Whether each link leads where one of the original led, and none to a heading that is gone."""
    former, targets = _targets(reference), _targets(blocks)
    strange = [target for target in targets if target not in former]
    lost = _anchors(reference) - _anchors(blocks)
    dead = [target for target in targets if target[:1] == "#" and target[1:] in lost]
    if strange or dead:
        return 0.0, f"a link was damaged: {strange[0]}" if strange else f"a link leads to a section that is gone: {dead[0]}"
    return 1.0, f"{plural(len(targets), 'link')}, none broken"


def _targets(blocks: Sequence[Block]) -> list[str]:
    return [link[2] for block in blocks if not FENCE.match(block.raw) for link in LINK.finditer(block.raw)]


def _anchors(blocks: Sequence[Block]) -> set[str]:
    return {anchor_of(block.sentences[0]) for block in blocks if block.kind == "heading"}


def _former(name: str, reference: str, document: str) -> float:
    from jumar.loop.scorers.length import length_score
    from jumar.loop.scorers.markdown import headings
    from jumar.loop.scorers.readability import FORMULAS, band_score, count_text
    from jumar.loop.scorers.required_sections import missing_sections

    if name == "length":
        return length_score(len(document), len(reference) / 4, max(1, len(reference) / 2))
    if name == "readability":
        counts = count_text(document)
        return band_score(FORMULAS["coleman-liau"](counts), 0, 8, 8) if counts.words else 0.0
    sections = tuple(heading.text for heading in headings(reference))
    return 1 - len(missing_sections(document, sections)) / len(sections) if sections else 1.0


def main(arguments: Sequence[str]) -> int:
    """Print what ``arguments`` ask for; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m jumar.demo.measure")
    parser.add_argument("name", choices=(*SCORES, *FORMER, *CHECKS))
    parser.add_argument("document")
    parser.add_argument("--reference", required=True)
    parser.add_argument("--bytes", type=int, default=-1)
    given = parser.parse_args(arguments)
    texts: list[str] = []
    for path, limit in ((given.reference, given.bytes), (given.document, -1)):
        try:
            with open(path, "rb") as file:  # noqa: PTH123  (a child process need not load pathlib)
                texts.append(decode(file.read(limit), cut=limit >= 0)[0])
        except OSError as error:
            sys.stderr.write(f"could not read {escape(path)}: {error.strerror}\n")
            return 2
    score, reason = measure(given.name, *texts)
    if given.name in CHECKS:
        sys.stdout.write(reason + "\n")
        return int(not score)
    sys.stdout.write(json.dumps({"score": score, "reason": reason}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
