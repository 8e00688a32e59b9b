"""What each defence against the programs of a loop costs an iteration: in a tree with dependencies and protected tests."""

from __future__ import annotations

import functools
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, chdir, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from timing import Row, milliseconds

from jumar.cli.application import run_application
from jumar.core import codec
from jumar.loop.engine import evaluation, finals
from jumar.loop.engine.finals import Recheck
from jumar.loop.store import trust
from jumar.loop.store.tamper_check import StoreWatch
from jumar.loop.workspace.guard import Guard
from jumar.loop.workspace.surroundings import Surroundings

ITERATIONS = 30
FILES, TESTS, DEPENDENCIES = 1_000, 200, 10_000
ONCE = "recheck"  # at the end of the loop, and the look at what no snapshot holds that it needs

PLACES: tuple[tuple[str, Any, tuple[str, ...]], ...] = (
    ("marks", codec, ("marked",)),
    ("marks", trust, ("origin",)),
    ("watch of the store", StoreWatch, ("arm", "look")),
    ("`protect`, configuration and check files", Guard, ("ready", "put_back", "before_generate", "after_generate")),
    ("`protect`, configuration and check files", Guard, ("before_scoring", "after_scoring")),
    ("bytecode removed before checks", evaluation, ("clear_bytecode",)),
    ("bytecode removed before checks", finals, ("clear_bytecode",)),
    (ONCE, Surroundings, ("begin", "note_checks", "differences")),
    (ONCE, Recheck, ("go",)),
)


def measure(directory: Path) -> Iterator[Row]:
    make_tree(directory)
    spent: dict[str, float] = defaultdict(float)
    with chdir(directory), timed(spent):
        began = time.perf_counter()
        code = run_application(["run", "--quiet"])
        took = time.perf_counter() - began
    if code:
        raise SystemExit(f"the loop ended with {code}")
    each = (took - spent[ONCE]) / ITERATIONS
    bare = each - sum(seconds for name, seconds in spent.items() if name != ONCE) / ITERATIONS
    for name, seconds in spent.items():
        if name != ONCE:
            cost = seconds / ITERATIONS
            yield f"{name}, an iteration", milliseconds(cost), f"{milliseconds(each)} with all: {cost / each:.1%}", "—"
    yield "all defences", milliseconds(each - bare), f"{milliseconds(bare)} without: {each / bare:.2f}×", "—"
    yield "checked once more, a loop", milliseconds(spent[ONCE]), f"an iteration: {spent[ONCE] / each:.1f}×", "—"


def make_tree(work: Path) -> None:
    """Write a project with tests, and dependencies that no snapshot holds."""
    for count, name in (
        (FILES, "src/d{0}/f{1}.py"),
        (TESTS, "tests/d{0}/test_{1}.py"),
        (DEPENDENCIES, "node_modules/d{0}/f{1}.js"),
    ):
        for index in range(count):
            path = work / name.format(index // 50, index)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"# {index}\n" * 40)
    (work / ".gitignore").write_text("node_modules/\n")
    (work / "jumar.toml").write_text(
        f"""
[loop]
id = "bench"
max_iterations = {ITERATIONS}
protect = ["tests/**"]
[stop]
consecutive_failures = {ITERATIONS}
[generator]
command = "echo $JUMAR_ITERATION > src/d1/f50.py"
[[checks]]
name = "check"
command = "python3 -m compileall -q src/d1"
[[scorers]]
dimension = "quality"
command = "echo 0.5"
"""
    )


@contextmanager
def timed(spent: dict[str, float]) -> Iterator[None]:
    """Add up the seconds in the calls of :data:`PLACES`; of one that is called by another, to its own name alone."""
    nested = threading.local()

    def timing(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            outer, nested.seconds = getattr(nested, "seconds", 0.0), 0.0
            began = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                took = time.perf_counter() - began
                spent[name] += took - nested.seconds
                nested.seconds = outer + took

        return call

    with ExitStack() as patches:
        for name, owner, attributes in PLACES:
            for attribute in attributes:
                patches.enter_context(mock.patch.object(owner, attribute, timing(name, getattr(owner, attribute))))
        yield
