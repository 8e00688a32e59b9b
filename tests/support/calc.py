"""A small project of 12 tests, and an agent without a model that repairs it step by step and then breaks it again.

``python calc.py START`` writes the project into the current directory, with 9 tests failing; ``python calc.py`` is the agent: in
iteration 1 it leaves 3 failing tests, then 2, then 1, then 4 (and 4 from there on). ``FAILING`` says which. Other figures:
``python calc.py 9 0``, the number that fail in iteration 1, 2, …
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

RIGHT = {
    "abs": "abs(a)",
    "max": "max(a, b)",
    "min": "min(a, b)",
    "add": "a + b",
    "div": "a / b",
    "mod": "a % b",
    "mul": "a * b",
    "neg": "-a",
    "pow": "a**b",
    "sqr": "a * a",
    "sub": "a - b",
    "avg": "(a + b) / 2",
}
LAST_REPAIRED = ("mod", "div", "mul")
FAILING = {
    9: tuple(sorted(set(RIGHT) - {"abs", "max", "min"})),
    4: ("add", "mod", "neg", "sub"),
    **{count: LAST_REPAIRED[:count] for count in range(4)},
}
STEPS = (3, 2, 1, 4)


def write_calc(failing: tuple[str, ...], directory: Path | None = None) -> None:
    """Write the module, with the functions of ``failing`` wrong."""
    wrong = {name: "None" if name in failing else right for name, right in RIGHT.items()}
    text = "\n\n".join(f"def {name}_(a, b):\n    return {body}\n" for name, body in wrong.items())
    ((directory or Path()) / "calc.py").write_text(text)


def write_project(directory: Path) -> None:
    """Write the module with 9 wrong functions, and the 12 tests."""
    write_calc(FAILING[9], directory)
    values = {name: eval(right, {"a": 7, "b": 2}) for name, right in RIGHT.items()}
    tests = "\n\n".join(f"def test_{name}():\n    assert calc.{name}_(7, 2) == {value}\n" for name, value in values.items())
    (directory / "test_calc.py").write_text(f"import calc\n\n\n{tests}")


def main(arguments: list[str]) -> None:
    if arguments == ["START"]:
        write_project(Path())
        return
    steps = [int(count) for count in arguments] or STEPS
    number = int(os.environ["JUMAR_ITERATION"])
    count = steps[min(number, len(steps)) - 1]
    write_calc(FAILING[count])
    print(f"{len(RIGHT) - count} of {len(RIGHT)} functions are right now")


if __name__ == "__main__":
    main(sys.argv[1:])
