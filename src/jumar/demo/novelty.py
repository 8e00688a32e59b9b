"""Novelty: how little of the document was already said further up."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from jumar.core.text import plural
from jumar.demo.blocks import Block
from jumar.demo.scores import Score, sentences_of
from jumar.demo.words import content, function_words

__all__ = ["novelty"]


def novelty(blocks: Sequence[Block]) -> Score:
    """Return the share of neighbouring pairs of terms that no earlier sentence had; 1.0 without any pair, 0.0 without words.

    A sentence of which at least half of the pairs were said before (and that has two or more) is counted as said again.
    """
    sentences = sentences_of(blocks)
    functional = function_words(sentences)
    seen: set[tuple[str, str]] = set()
    pairs = new = again = told = 0
    for sentence in sentences:
        terms = content(sentence, functional)
        told += len(terms)
        own = set(itertools.pairwise(terms))
        fresh = own - seen
        pairs += len(own)
        new += len(fresh)
        again += len(own) > 1 and 2 * len(fresh) <= len(own)
        seen |= own
    if not told:
        return Score(0.0, "there are no sentences to compare")
    repeated = f"{pairs - new:,} of {plural(pairs, 'pair')} of terms repeated"
    reason = f"{again:,} of {plural(len(sentences), 'sentence')} said again, {repeated}"
    return Score(new / pairs if pairs else 1.0, reason)
