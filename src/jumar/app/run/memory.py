"""``[memory]``: the reflections that fit an iteration, by embedding, exact search and a strategy (:mod:`jumar.topk`)."""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jumar.app.config.config import MemoryConfig
from jumar.app.config.functions import load_function
from jumar.errors import ConfigError
from jumar.loop.generators.memory import Memory, Note

if TYPE_CHECKING:
    from jumar.topk.config import RetrievalConfig

__all__ = ["Embedder", "NoteMemory", "build_memory", "embed_words"]

Embedder = Callable[[list[str]], Sequence[Sequence[float]]]

_WIDTH: Final = 1024
_WORD: Final = re.compile(r"[^\W_]+")


def build_memory(config: MemoryConfig, base: Path) -> Memory | None:
    """Return the memory of a loop, None when it is off. Errors: :class:`jumar.errors.ConfigError`."""
    if not config.enabled:
        return None
    if find_spec("numpy") is None:
        raise ConfigError("[memory] searches with numpy: pip install 'jumar[topk]', or set enabled = false")
    embed: Embedder = embed_words
    if config.embedder != "words":
        embed = load_function(config.embedder, base, key="[memory] embedder", takes="a list of texts and returns their vectors")
    return NoteMemory(embed=embed, config=config.retrieval(), everywhere=config.loops == "all")


@dataclass(frozen=True, slots=True)
class NoteMemory:
    """Finds notes by the cosine of their embeddings with the question's, and keeps those that the scores speak for.

    A text is embedded once, as long as it stays among the notes: a real model takes its time, or money.
    """

    embed: Embedder
    config: RetrievalConfig
    everywhere: bool = True
    _vectors: dict[str, Sequence[float]] = field(default_factory=dict[str, Sequence[float]], repr=False, compare=False)

    def recall(self, query: str, notes: Sequence[Note], *, turn: str) -> Sequence[Note]:
        """Return the notes that fit, best first; none without notes, and none that the embedder knows nothing of."""
        from jumar.topk.retrieval import retrieve_sync
        from jumar.topk.vector_store import NumpyVectorStore

        if not notes:
            return []
        new = list(dict.fromkeys(note.text for note in notes if note.text not in self._vectors))
        asked, *vectors = self.embed([query, *new])
        embedded = {**self._vectors, **dict(zip(new, vectors, strict=True))}
        self._vectors.clear()
        self._vectors.update((note.text, embedded[note.text]) for note in notes)
        known = [(note, self._vectors[note.text]) for note in notes if any(self._vectors[note.text])]
        if not known or not any(asked):
            return []
        store = NumpyVectorStore[Note]()
        store.add([note for note, _ in known], [list(vector) for _, vector in known])
        result = retrieve_sync("memory", asked, store, self.config, turn=turn)
        return [one.item for one in result.selected]


def embed_words(texts: list[str]) -> list[list[float]]:
    """Return vectors of hashed words and of the beginnings of long ones; a text without words is all zeros.

    No model and no meaning: "slow" and "takes long" have nothing in common. Enough where notes name the same checks and files.
    """
    vectors: list[list[float]] = []
    for text in texts:
        words = _WORD.findall(text.lower())
        counts = Counter([*words, *(f"{word[:5]}…" for word in words if len(word) > 5)])
        vector = [0.0] * _WIDTH
        for word, count in counts.items():
            vector[zlib.crc32(word.encode("utf-8", "surrogatepass")) % _WIDTH] += 1 + math.log(count)
        vectors.append(vector)
    return vectors
