"""``[retry]``: how often a step is made again before its failure counts."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from jumar.loop.settings import Retries

__all__ = ["RetryConfig"]

_Times = Annotated[int, Field(ge=0, strict=True)]


class RetryConfig(BaseModel):
    """``[retry]``: further tries by kind of failure; 0 is none."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    generator_failed: _Times = 0
    generator_timeout: _Times = 0
    rate_limited: _Times = 20
    broken: _Times = 1

    def retries(self) -> Retries:
        return Retries(
            generator_failed=self.generator_failed,
            generator_timeout=self.generator_timeout,
            rate_limited=self.rate_limited,
            broken=self.broken,
        )
