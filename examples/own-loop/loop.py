"""Smooth a noisy curve again and again: first the noise goes, then the curve. The tracker keeps the iteration in between."""

import math
import random
from pathlib import Path

from jumar import BestOutputTracker

ONLY_CORRECTNESS = {"validation": 0, "completeness": 0, "readability": 0, "efficiency": 0}

noise = random.Random(1)
clean = [math.sin(index / 3) for index in range(60)]
curve = [value + noise.gauss(0, 0.3) for value in clean]

with BestOutputTracker("smooth", quality_weights=ONLY_CORRECTNESS) as tracker:
    for number in range(1, 9):
        padded = [curve[0], *curve, curve[-1]]
        curve = [sum(padded[index : index + 3]) / 3 for index in range(len(curve))]
        error = math.dist(curve, clean) / math.dist(clean, [0] * len(clean))
        Path("curve.txt").write_text("\n".join(f"{value:.4f}" for value in curve) + "\n")
        record = tracker.record_iteration(
            iteration_number=number,
            dimensions={"correctness": max(0.0, 1 - error)},
            artifacts=["curve.txt"],
            verification_status="passed",
            reflections=[f"off by {error:.1%}"],
        )
        print(f"{number}: off by {error:.1%}, scores {record.quality_score:.1f}")
    selection = tracker.select_output()
    print(f"selected: iteration {selection.selected_iteration} ({selection.reason}), last: {selection.final_iteration}")
