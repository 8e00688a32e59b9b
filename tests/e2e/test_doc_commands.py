"""The commands of the pages that a newcomer reads run as typed, in order, in an empty folder, and print what is shown."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import calc
import pytest
from doc_commands import Block, blocks_of, differences, run_block

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "docs/tutorial.md", "docs/cases.md", "docs/judging.md", "docs/learning.md", "docs/choosing-k.md")
SAMPLES = {"calc": calc.write_project}
AGENT = f"""#!/bin/sh
# stands for Claude Code: reads the prompt, works in the directory, reports its cost as JSON
cat > /dev/null
{sys.executable} {calc.__file__} >&2
echo '{{"session_id": "s", "total_cost_usd": 0.1'$JUMAR_ITERATION', "modelUsage": {{"m": {{"inputTokens": 900,'
echo '"outputTokens": 90, "cacheReadInputTokens": 0, "cacheCreationInputTokens": 0}}}}}}'
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A person's own: jumar and pytest on the PATH, and an agent that needs no model."""
    agents = tmp_path / "bin"
    agents.mkdir()
    (agents / "claude").write_text(AGENT)
    (agents / "claude").chmod(0o755)
    path = os.pathsep.join((str(agents), str(Path(sys.executable).parent), os.environ["PATH"]))
    quick = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return {**os.environ, "PATH": path, **quick}


def directory_of(block: Block, place: Path) -> Path:
    """Return where ``block`` is run: the page's own folder, or a sample below it, made when it is first named."""
    if block.sample is None:
        return place
    sample = place / block.sample
    if not sample.exists():
        sample.mkdir()
        SAMPLES[block.sample](sample)
    return sample


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_print_what_it_shows(page: str, fresh_place: Path, environment: dict[str, str]) -> None:
    wrong: list[str] = []
    typed = 0
    for block in blocks_of((ROOT / page).read_text(encoding="utf-8")):
        if block.unrun is None:
            typed += len(block.commands)
            wrong += run_block(block, directory_of(block, fresh_place), environment)
    print(f"{page}: {typed} commands")
    assert typed
    assert not wrong, "\n\n".join(wrong)


def test_the_page_for_newcomers_is_short() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()

    assert len(lines) <= 120
    assert [] == [line for line in lines if len(line) > 120]


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        (("a 0.4s b", "c"), "a  12.1s   b\nc\n", True),
        (("a", "…", "c"), "a\nb\nb\nc\n", True),
        (("a", "…"), "a\n", True),
        (("…", "b", "c"), "a\nb\nb\nc\n", True),
        (("a", "c"), "a\nb\nc\n", False),
        (("a",), "b\n", False),
        (("a", "…", "d"), "a\nb\nc\n", False),
    ],
)
def test_what_is_shown_is_compared_line_by_line(shown: tuple[str, ...], printed: str, *, same: bool) -> None:
    assert same is (not differences(shown, printed))


def test_code_that_no_test_could_run_is_refused() -> None:
    with pytest.raises(AssertionError, match="fenced"):
        list(blocks_of("Type:\n\n    jumar run\n"))
    with pytest.raises(AssertionError, match="give it a title"):
        list(blocks_of("```toml\na = 1\n```\n"))
