"""Every strategy's parameters as a model, made from the strategy, and the retrieval settings that are made of them.

The only module here that needs pydantic. A configuration is frozen, closed to unknown keys, and builds whenever it is valid:
:func:`jumar.topk.create_selection_strategy` takes it as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Optional, Self, Union, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, create_model, field_validator, model_validator

from jumar.errors import ConfigError
from jumar.topk.base import refuse_untold, similarity_defaults
from jumar.topk.contract import SCALES, SimilarityDefault
from jumar.topk.embeddings import find_provider
from jumar.topk.result import Scale
from jumar.topk.strategies import STRATEGIES, create_selection_strategy, strategy_class

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Size = Annotated[int, Field(ge=1, strict=True)]


class SelectionConfig(BaseModel):
    """What the configurations of all strategies share.

    ``scale`` says what the scores are. A ``min_score`` for similarities is from 0 to 1; what it may be on other scales, and which
    scales a strategy takes, the strategy itself says. Defaults in the unit of similarities hold for these alone: on other scales
    ``min_score`` is none, and ``threshold``, ``eps``, ``slope`` and ``intercept`` have to be given. Errors: pydantic's
    ``ValidationError``, a ValueError.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    scale: Scale = Field(default="similarity", description="What the scores are")

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_the_scale(cls, given: Any) -> Any:
        """Leave out the defaults that are made for similarities where the scores are none."""
        scale: object = given.get("scale", "similarity") if isinstance(given, dict) else "similarity"  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if scale == "similarity" or scale not in SCALES:
            return given  # pyright: ignore[reportUnknownVariableType]
        strategy: str = cls.model_fields["strategy"].default
        found = strategy_class(strategy)
        untold = [name for name in similarity_defaults(found) if name not in given]
        refuse_untold(strategy, [name for name in untold if name in getattr(found, "NEEDED", ())], scale)
        values: dict[str, Any] = dict(given)  # pyright: ignore[reportUnknownArgumentType]
        return {**dict.fromkeys(untold), **values}

    @field_validator("min_score", check_fields=False)
    @classmethod
    def _in_range(cls, value: float | None, info: ValidationInfo) -> float | None:
        if value is not None and info.data.get("scale") == "similarity" and not 0 <= value <= 1:
            raise ValueError("allowed: from 0 to 1 for scale 'similarity'; other scores need their scale beside it")
        return value

    @model_validator(mode="after")
    def _can_be_built(self) -> Self:
        create_selection_strategy(self)
        return self


_CHECKED: Final[Mapping[Any, Any]] = {
    float: Number,
    float | None: Optional[Number],  # noqa: UP045 - at run time
    int: Annotated[int, Field(strict=True)],
}


def _model(name: str) -> type[SelectionConfig]:
    """Return the configuration of the strategy called ``name``: its parameters, with the bounds that they have in files."""
    strategy: Any = strategy_class(name)
    hints = get_type_hints(strategy)
    declared: dict[str, Any] = {"strategy": (Literal[name], name)}
    for parameter in fields(strategy):
        hint, default, told = hints[parameter.name], parameter.default, parameter.metadata
        plain: Any = float(default) if isinstance(default, SimilarityDefault) else default
        described = Field(default=plain, description=told.get("description"), **told.get("bounds", {}))
        declared[parameter.name] = (_CHECKED.get(hint, hint), described)
    del declared["scale"]  # the base class has it, first
    return create_model(
        strategy.__name__.replace("Strategy", "Config"),
        __base__=SelectionConfig,
        __module__=__name__,
        __doc__=f"Configuration of {name}. {strategy.__doc__.partition(chr(10))[0]}",
        **declared,
    )


CONFIGS: Final[Mapping[str, type[SelectionConfig]]] = MappingProxyType({name: _model(name) for name in STRATEGIES})
"""Every strategy's configuration by the strategy's name. The module has each under its own name too: ``ElbowSelectionConfig``."""

globals().update({model.__name__: model for model in CONFIGS.values()})

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

    SelectionStrategyConfig = Any
else:
    SelectionStrategyConfig = Annotated[Union[tuple(CONFIGS.values())], Field(discriminator="strategy")]  # noqa: UP007 - at run time
"""The configuration of any strategy; the key ``strategy`` says which."""


def _rules() -> SelectionStrategyConfig:
    return CONFIGS["adaptive_k"]()  # with the 0.5 of the seed's file, the list that it opens with would lose its third rule


def _scenarios() -> SelectionStrategyConfig:
    sizes = {"low_entropy_k": 1, "medium_entropy_k": 2, "high_entropy_k": 3}
    return CONFIGS["entropy"].model_validate({**sizes, "min_score": 0.6})


def _memory() -> SelectionStrategyConfig:
    return CONFIGS["clustering"]()


def _as_many_as_kept(data: dict[str, Any]) -> int:
    return int(data.get("max_k", 20))


class RetrievalConfig(BaseModel):
    """``[pipeline.retrieval]``: how many candidates are fetched, how many may be kept, and who decides for what.

    ``min_k`` ≤ ``max_k``, ``min_k`` ≤ ``candidate_k``; ``candidate_k``, the number that is fetched, is ``max_k`` unless it is
    given. ``embedding_provider`` makes embeddings of texts; see :mod:`jumar.topk.embeddings`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    embedding_provider: str = Field(default="default", description="Name of what makes the embeddings")
    max_k: Size = Field(default=20, description="Most items that are kept")
    min_k: Annotated[int, Field(ge=0, strict=True)] = Field(default=1, description="Fewest items that are kept")
    candidate_k: Size = Field(default_factory=_as_many_as_kept, description="Candidates that are fetched; as max_k when absent")
    rule_selection: SelectionStrategyConfig = Field(default_factory=_rules)
    scenario_selection: SelectionStrategyConfig = Field(default_factory=_scenarios)
    memory_selection: SelectionStrategyConfig = Field(default_factory=_memory)

    @field_validator("embedding_provider")
    @classmethod
    def _there(cls, value: str) -> str:
        try:
            find_provider(value)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return value

    @field_validator("min_k")
    @classmethod
    def _at_most_max_k(cls, value: int, info: ValidationInfo) -> int:
        most = info.data.get("max_k", value)
        if value > most:
            raise ValueError(f"allowed: from 0 to max_k, which is {most}")
        return value

    @field_validator("candidate_k")
    @classmethod
    def _at_least_min_k(cls, value: int, info: ValidationInfo) -> int:
        least = info.data.get("min_k", value)
        if value < least:
            raise ValueError(f"allowed: min_k, which is {least}, or more")
        return value


class PipelineConfig(BaseModel):
    """``[pipeline]``; of its tables, jumar reads ``retrieval``."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    retrieval: RetrievalConfig = Field(default_factory=RetrievalConfig)


class Settings(BaseModel):
    """A whole file; of its tables, jumar reads ``pipeline``."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    pipeline: PipelineConfig = Field(default_factory=PipelineConfig)
