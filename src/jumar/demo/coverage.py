"""Key-term coverage: how much of what the original talks about is still talked about."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from jumar.demo.blocks import Block, visible
from jumar.demo.scores import Score
from jumar.demo.words import content, fold, function_words, tokens

__all__ = ["coverage", "key_terms"]

_CODE_SPAN = re.compile(r"`([^`\n]{2,60})`")
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][\w\-]+(?: [A-Z][\w\-]+){0,2}")
_UNIT = re.compile(r"\d+(?:[.,:/\-]\d+)*\s?(?:%|[^\W\d_]+)?")
_FEWEST = 12
_MOST = 400  # beyond that many terms a single one says nothing


def key_terms(blocks: Sequence[Block]) -> dict[str, float]:
    """Return the terms that carry the document and the weight of each, heaviest first.

    A word weighs ``(1 + log2 of its count) · log2(sections / sections that have it + 1)``: TF-IDF with the document's own
    sections in the place of a collection, so that a word that stands everywhere says little about any of them. Numbers
    with what they count, names, code spans and words of headings weigh half as much again. A word that stands once and is
    none of these is no key term, unless the text is so short that there are fewer than twelve others. 400 terms at the
    most; none without words.
    """
    sections = _sections(blocks)
    texts = ["\n".join(visible(block) for block in section) for section in sections]
    functional = function_words(sentence for block in blocks for sentence in block.sentences)
    counts: Counter[str] = Counter()
    spread: Counter[str] = Counter()
    for text in texts:
        terms = content(text, functional)
        counts.update(terms)
        spread.update(set(terms))
    marked = _marked(texts, functional)
    marked.update(term for block in blocks if block.kind == "heading" for term in content(visible(block), functional))
    weights = {
        term: (1 + math.log2(count)) * math.log2(len(texts) / spread[term] + 1) * (1.5 if term in marked else 1.0)
        for term, count in counts.items()
    }
    chosen = [term for term in weights if counts[term] > 1 or term in marked]
    if len(chosen) < _FEWEST:
        chosen = list(weights)
    chosen.sort(key=lambda term: (-weights[term], term))
    return {term: weights[term] for term in chosen[:_MOST]}


def _sections(blocks: Sequence[Block]) -> list[list[Block]]:
    """Return the blocks by section; a document of fewer than four headings is cut into eight equal runs instead."""
    sections: list[list[Block]] = []
    for block in blocks:
        if not sections or block.kind == "heading":
            sections.append([])
        sections[-1].append(block)
    if len(sections) >= 4:
        return sections
    size = max(1, math.ceil(len(blocks) / 8))
    return [list(blocks[start : start + size]) for start in range(0, len(blocks), size)]


def _marked(texts: Sequence[str], functional: frozenset[str]) -> set[str]:
    marked: set[str] = set()
    for text in texts:
        for phrase in (*_CODE_SPAN.findall(text), *_NAME.findall(text), *_UNIT.findall(text)):
            marked.update(content(phrase, functional))
    return marked


def coverage(reference: Sequence[Block], blocks: Sequence[Block]) -> Score:
    """Return the weight of the original's key terms that the document still has, as a share of their whole weight.

    1.0 when the original has no terms; 0.0 for an empty document otherwise.
    """
    terms = key_terms(reference)
    if not terms:
        return Score(1.0, "the original has no key terms")
    present = {fold(word) for block in blocks for word in tokens(visible(block))}
    gone = [term for term in terms if term not in present]
    whole = math.fsum(terms.values())
    score = 1 - math.fsum(terms[term] for term in gone) / whole
    reason = f"{len(terms) - len(gone)} of {len(terms)} key terms are there"
    if gone:
        reason += f"; the weightiest gone: {', '.join(gone[:5])}"
    return Score(min(1.0, max(0.0, score)), reason)
