"""What an agent hides where no list shows it, and checks find by its name. Real loops, as users for whom modes count."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bad_passes import without_rights

CONFIG = f"""
[loop]
id = "t"
max_iterations = 1

[generator]
command = "{sys.executable} ../agent.py"

[[checks]]
name = "works"
command = "{sys.executable} -c 'import m; assert m.value() == 2'"
"""
PLANT = """
import os, py_compile
from pathlib import Path
Path("../good.py").write_text("def value(): return 2\\n")
Path("m.py").write_text("def value(): return 1  # still\\n")
place = Path("__pycache__") / Path(__import__("importlib.util").util.cache_from_source("m.py")).name
mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
py_compile.compile("../good.py", cfile=str(place), invalidation_mode=mode)
"""
HIDE = """
import os
from pathlib import Path
Path(".gitignore").write_text("hidden/\\n")
Path("hidden").mkdir()
Path("hidden/value").write_text("2")
"""
READ = "Path('m.py').write_text('def value(): return int(open(\"hidden/value\").read())\\n')\n"
FIX = "Path('m.py').write_text('def value(): return 2\\n')\n"
LONG = """
top = os.getcwd()
os.chdir("hidden")
while len(os.getcwd()) < 3900:
    os.mkdir("d" * 100)
    os.chdir("d" * 100)
Path("f" * 240 + {ending!r}).touch()
os.chdir(top)
"""


def ended(place: Path, agent: str) -> tuple[int, Any]:
    """Run the loop as a user whom modes hold back; return its exit code, and what it printed."""
    words = without_rights()
    if words is None:
        pytest.skip("modes do not count here")
    (place / "m.py").write_text("def value(): return 1\n")
    (place.parent / "agent.py").write_text(agent)
    (place / "jumar.toml").write_text(CONFIG)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    argv = [*words, sys.executable, "-m", "jumar.cli.entry", "run", "--json"]
    done = subprocess.run(argv, cwd=place, env=environment, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr


@pytest.mark.parametrize("mode", [0o311, 0o333, 0])
def test_bytecode_in_a_cache_that_cannot_be_listed_is_not_run(fresh_place: Path, mode: int) -> None:
    code, found = ended(fresh_place, f"{PLANT}os.chmod('__pycache__', {mode})\n")

    assert (code, found["selected_iteration"], found["verified"]) == (10, 0, False)
    assert os.stat("__pycache__").st_mode & 0o777 == mode
    (fresh_place / "__pycache__").chmod(0o755)
    assert not any("m." in path.name for path in (fresh_place / "__pycache__").iterdir())


def test_bytecode_that_cannot_be_removed_ends_the_run_which_says_so(fresh_place: Path) -> None:
    if os.geteuid() or shutil.which("chattr") is None:
        pytest.skip("only root marks a file immutable")
    try:
        code, found = ended(fresh_place, f"{PLANT}assert os.system(f'chattr +i {{place}}') == 0\n")
    finally:
        subprocess.run(["chattr", "-R", "-i", "__pycache__"], check=False)

    assert code == 1
    assert "could not remove the bytecode" in found["error"]["message"]


@pytest.mark.parametrize("mode", [0o311, 0o111, 0o100])
def test_what_lies_where_nothing_can_be_listed_is_seen_by_the_recheck(fresh_place: Path, mode: int) -> None:
    code, found = ended(fresh_place, f"{HIDE}{READ}os.chmod('hidden', {mode})\n")

    assert (code, found["verified"], found["rechecked"]) == (0, True, False)
    assert "without hidden/" in found["rechecked_because"]
    assert (fresh_place / "hidden/value").exists()


@pytest.mark.parametrize(
    "hidden",
    [
        "os.chmod('hidden', 0o600)",
        "Path('hidden/part.pyc').touch(); os.chmod('hidden', 0o600)",
        "os.chmod('hidden', 0)",
        LONG.format(ending=""),
        LONG.format(ending=".pyc"),
    ],
)
def test_an_ignored_directory_that_cannot_be_looked_through_ends_no_loop(fresh_place: Path, hidden: str) -> None:
    code, found = ended(fresh_place, f"{HIDE}{FIX}{hidden}\n")

    assert (code, found["selected_iteration"], found["verified"], found["rechecked"]) == (0, 1, True, True)
