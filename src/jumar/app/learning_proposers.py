"""Who proposes patterns in a learning run."""

from __future__ import annotations

from jumar.app.learning_model import LearnRequest
from jumar.errors import ConfigError
from jumar.learning.candidates import propose
from jumar.learning.material import Asked, Proposer, Proposing

__all__ = ["by_terms", "proposer_of"]


def proposer_of(request: LearnRequest) -> Proposer:
    """Return the proposer that was asked for. Errors: :class:`jumar.errors.ConfigError`."""
    if request.proposer == "judge":
        raise ConfigError("--propose judge is not there yet")
    return by_terms


def by_terms(asked: Asked) -> Proposing:
    """Propose what tells items with a large gap from the others, by statistics of their words and of the judge's reasons."""
    found = propose(
        asked.items,
        threshold=asked.threshold,
        known=asked.known,
        tried=asked.tried,
        iteration=asked.iteration,
        diversity=asked.diversity,
        seed=asked.seed,
        at=asked.at,
    )
    return Proposing(proposals=tuple(found))
