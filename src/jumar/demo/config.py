"""The demo's plan as an ordinary configuration."""

from __future__ import annotations

from jumar.app.config.config import (
    ArtifactsConfig,
    GeneratorConfig,
    JumarConfig,
    LoopConfig,
    ScorerConfig,
    StopConfig,
    ValidatorConfig,
)
from jumar.demo.plan import DemoPlan

__all__ = ["demo_config"]


def demo_config(plan: DemoPlan, max_iterations: int | None = None) -> JumarConfig:
    """Return the loop of ``plan``: what a person would have written into a ``jumar.toml``.

    Each iteration condenses what the one before left, as an agent in a plain loop would: from the best, a program that has no
    chance in it would make the same text again and again, and there would be no fall to see.
    """
    return JumarConfig(
        loop=LoopConfig(
            id="demo",
            objective=plan.objective,
            max_iterations=max_iterations or plan.iterations,
            continue_from="previous",
        ),
        artifacts=ArtifactsConfig(include=[plan.document]),
        generator=GeneratorConfig(command=list(plan.generator), timeout=60),
        validators=[ValidatorConfig(name=name, command=list(command)) for name, command in plan.validators],
        scorers=[ScorerConfig(dimension=dimension, command=list(command)) for dimension, command in plan.scorers],
        weights=dict(plan.weights),
        stop=StopConfig(),
    )
