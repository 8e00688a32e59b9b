"""Small real chains of cases, shared by the tests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["case_text", "read_best", "write_chain", "write_scores"]

Row = Mapping[str, Any]


def case_text(number: int) -> str:
    """Return a whole case file."""
    return f"the pump of unit {number} failed\n---\nE2E Test Query:\nwhy is unit {number} dry?\n"


def write_chain(directory: Path, cases: int = 1, *, extra: str = "", start: str = "from_scratch = true") -> Path:
    """Write ``cases.toml`` with its case files and return its path; no steps unless ``extra`` has some."""
    directory.mkdir(parents=True, exist_ok=True)
    listed: list[str] = []
    for number in range(1, cases + 1):
        (directory / f"case{number}.txt").write_text(case_text(number))
        listed.append(f'[[cases]]\nfile = "case{number}.txt"\n')
    config = directory / "cases.toml"
    config.write_text(f"[start]\n{start}\n" + "".join(listed) + extra)
    return config


def write_scores(directory: Path, rows: Sequence[Row] | Mapping[str, Sequence[Row]]) -> Path:
    """Write a file for ``--dry-run-scores``."""
    path = directory / "scores.json"
    path.write_text(json.dumps(rows))
    return path


def read_best(run: Path, case: int = 1) -> dict[str, Any]:
    """Return the ``best.json`` of a case."""
    found: dict[str, Any] = json.loads((run / f"case_{case:02d}" / "best" / "best.json").read_bytes())
    return found
