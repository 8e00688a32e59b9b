"""Draw the scores of a loop for a job summary, which shows no pictures of its own: REPORT.json to a mermaid chart, on stdout."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FEWEST, MOST = 2, 200


def chart(report: dict[str, Any]) -> str:
    """Return the chart: each score, and the best so far; empty where there are fewer than two scores."""
    scores = [(record["iteration_number"], record["quality_score"]) for record in report["records"]]
    scores = [(number, score) for number, score in scores if score is not None][-MOST:]
    if len(scores) < FEWEST:
        return ""
    best, stair = float("-inf"), []
    for _, score in scores:
        best = max(best, score)
        stair.append(best)
    rows = [
        "```mermaid",
        "xychart-beta",
        '  title "score (bars) and best so far (line)"',
        f'  x-axis "iteration" [{", ".join(str(number) for number, _ in scores)}]',
        '  y-axis "score" 0 --> 100',
        f"  bar [{', '.join(f'{score:.4g}' for _, score in scores)}]",
        f"  line [{', '.join(f'{score:.4g}' for score in stair)}]",
        "```",
        "",
    ]
    return "\n".join(rows)


if __name__ == "__main__":
    print(chart(json.loads(Path(sys.argv[1]).read_text("utf-8"))))
