"""``length``: whether a text is neither too short nor too long."""

from __future__ import annotations

from jumar.errors import ConfigError
from jumar.loop.scorers.base import Builtin, Options, ScorerRuntime, TextScorer
from jumar.model.protocols import Scorer
from jumar.processes.usage import ScoreValue

UNITS = ("words", "chars", "lines")


def measure_length(text: str, unit: str) -> int:
    """Return how many words (between white space), characters (Unicode code points) or lines ``text`` has."""
    if unit == "words":
        return len(text.split())
    return len(text) if unit == "chars" else len(text.splitlines())


def length_score(count: int, least: float | None, most: float | None) -> float:
    """Return 1 from ``least`` to ``most``, falling to 0 in a straight line at half of ``least`` and at twice ``most``.

    A bound that is None (or 0, for ``least``) does not count.
    """
    if least and count < least:
        return max(0.0, 2.0 * count / least - 1.0)
    if most is not None and count > most:
        return max(0.0, 2.0 - count / most)
    return 1.0


def _build(dimension: str, options: Options, runtime: ScorerRuntime) -> Scorer:
    del runtime  # it runs nothing
    unit = options.choice("unit", UNITS)
    least, most = options.number("min"), options.number("max")
    if least is None and most is None:
        raise ConfigError(f"{options.where}: set 'min', 'max' or both")
    if most == 0 or (least is not None and most is not None and least > most):
        raise ConfigError(f"{options.where}: 'max' = {most:g} should be above 0 and at least 'min'")

    def measure(text: str) -> ScoreValue:
        count = measure_length(text, unit)
        bounds = f"{'0' if least is None else f'{least:g}'}–{'…' if most is None else f'{most:g}'}"
        return ScoreValue(score=length_score(count, least, most), reason=f"{count:,} {unit}, wanted {bounds}")

    return TextScorer(dimension, "length", options.paths(), measure)


LENGTH = Builtin(build=_build, options=("path", "unit", "min", "max"), dimension="efficiency")
