"""The demo's plan as an ordinary configuration."""

from __future__ import annotations

from jumar.app.config import (
    ArtifactsConfig,
    GeneratorConfig,
    JumarConfig,
    LoopConfig,
    ScorerConfig,
    StopConfig,
    ValidatorConfig,
)
from jumar.app.demo.plan import DemoPlan

__all__ = ["demo_config"]


def demo_config(plan: DemoPlan, max_iterations: int | None = None) -> JumarConfig:
    """Return the loop of ``plan``: what a person would have written into a ``jumar.toml``."""
    return JumarConfig(
        loop=LoopConfig(id="demo", objective=plan.objective, max_iterations=max_iterations or plan.iterations),
        artifacts=ArtifactsConfig(include=[plan.document]),
        generator=GeneratorConfig(command=list(plan.generator), timeout=60),
        validators=[ValidatorConfig(name=name, command=list(command)) for name, command in plan.validators],
        scorers=[ScorerConfig(dimension=dimension, command=list(command)) for dimension, command in plan.scorers],
        weights=dict(plan.weights),
        stop=StopConfig(),
    )
