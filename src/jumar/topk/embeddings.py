"""What makes embeddings of texts: functions by the names that ``embedding_provider`` of the settings has."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Final, Protocol

from jumar.core.text import escape, nearest
from jumar.errors import ConfigError, ScoreError
from jumar.topk.contract import shown

Embed = Callable[[Sequence[str]], Sequence[Sequence[float]]]
"""Returns one embedding for each text, all of the same dimensions."""

DEFAULT_PROVIDER: Final = "default"


class NamesProvider(Protocol):
    """What :class:`jumar.topk.RetrievalConfig` is here: settings that name a provider."""

    @property
    def embedding_provider(self) -> str: ...


_REFERENCE: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_FACTORIES: dict[str, Callable[[], Embed]] = {}


def register_embeddings(name: str, factory: Callable[[], Embed]) -> None:
    """Have ``embedding_provider = "name"`` mean what ``factory`` returns; it is called once, when a text is first embedded.

    ``"default"`` is the provider of settings that name none. A name that is there already gets the new meaning. Errors:
    :class:`jumar.errors.ConfigError` for a name that settings could not have, and for what is no function.
    """
    if not isinstance(name, str) or not name.strip() or ":" in name:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"{shown(name)} is no name of an embedding provider: give a text without a colon")
    if not callable(factory):
        raise ConfigError(f"embedding provider {shown(name)}: {shown(factory)} is no function that returns one")
    _FACTORIES[name] = factory


def find_provider(name: str) -> Callable[[], Embed] | None:
    """Return what makes the function that embeds; None for ``"default"`` where none is registered.

    A name is one of :func:`register_embeddings`, or ``module:function``, which takes a list of texts and returns their vectors.
    Errors: :class:`jumar.errors.ConfigError` that names the known ones.
    """
    if name in _FACTORIES or name == DEFAULT_PROVIDER:
        return _FACTORIES.get(name)
    known = sorted({DEFAULT_PROVIDER, *_FACTORIES})
    if not _REFERENCE.fullmatch(name):
        raise ConfigError(
            f"no such embedding provider{nearest(name, known)}; known are: {', '.join(map(escape, known))}; others are "
            "registered with jumar.topk.register_embeddings, or named 'module:function'"
        )
    module, _, attribute = name.partition(":")
    try:
        found: Any = getattr(import_module(module), attribute)
    except Exception as error:  # whatever happens in somebody's module
        why = escape(f"{type(error).__name__}: {error}")
        raise ConfigError(f"it cannot be loaded ({why}); known are: {', '.join(map(escape, known))}") from error
    if not callable(found):
        raise ConfigError("it is no function: it takes a list of texts and returns their vectors")
    embed: Any = found
    return lambda: embed


def embed_texts(texts: Sequence[str], config: NamesProvider | None = None) -> Sequence[Sequence[float]]:
    """Return the embeddings of ``texts``, one each, by the provider of ``config``; without settings by the default one.

    Errors: :class:`jumar.errors.ConfigError` where no provider is registered, whatever the provider raises, and
    :class:`jumar.errors.ScoreError` for another number of embeddings than of texts.
    """
    if isinstance(texts, str):
        raise ScoreError(f"texts should be a list of texts, is {shown(texts)}; write [{shown(texts)}]")
    name = DEFAULT_PROVIDER if config is None else config.embedding_provider
    factory = find_provider(name)
    if factory is None:
        raise ConfigError(
            "no embedding provider is registered: pass an embedding in place of a text, or register one, as in "
            "jumar.topk.register_embeddings('default', lambda: model.encode)"
        )
    embeddings = (factory() if name not in _FACTORIES else _made(factory))(list(texts))
    if len(embeddings) != len(texts):
        raise ScoreError(f"embedding provider {shown(name)} returned {len(embeddings)} embeddings for {len(texts)} texts")
    return embeddings


@cache
def _made(factory: Callable[[], Embed]) -> Embed:
    return factory()
