"""The page on measuring the gap does what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "measure-the-gap.md"


def test_the_python_example_runs(capsys: Any, fresh_place: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    exec(compile(code, str(PAGE), "exec"), {})
    assert "not_proven" == capsys.readouterr().out.split()[-1]
