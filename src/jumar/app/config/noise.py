"""``[noise]`` and ``[holdout]``: how far a difference between scores is believed, and what confirms the choice at the end."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from jumar.model.selection import NoiseRules

__all__ = ["NoiseConfig"]

_DEFAULT: Final = NoiseRules()


class NoiseConfig(BaseModel):
    """``[noise]``: who is scored again after the last iteration, how often, and which differences count as none."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rescore: Annotated[int, Field(ge=0, le=100, strict=True)] = _DEFAULT.rescore
    finalists: Annotated[int, Field(ge=1, le=1000, strict=True)] = _DEFAULT.finalists
    level: Annotated[float, Field(ge=0.5, lt=1, allow_inf_nan=False)] = _DEFAULT.level
    tie: Annotated[float, Field(ge=0, le=5, allow_inf_nan=False)] = _DEFAULT.tie

    def rules(self) -> NoiseRules:
        return NoiseRules(rescore=self.rescore, finalists=self.finalists, level=self.level, tie=self.tie)
