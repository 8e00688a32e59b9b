"""No check or scorer runs bytecode that an earlier program left: real agents that plant it, and edits that Python confuses."""

from __future__ import annotations

import json
import py_compile
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import call

PYTHON = sys.executable
CONFIG = f"""
[loop]
id = "t"
max_iterations = {{count}}
isolation = "{{isolation}}"

[generator]
command = "{PYTHON} {{here}}/agent.py"

[[checks]]
name = "low"
command = "{PYTHON} -c 'import m; assert m.value < 50'"

[[scorers]]
dimension = "value"
command = "{PYTHON} score.py"
"""
COMPILE = """
import importlib.util, os, py_compile, shutil
from pathlib import Path
Path("m.py").write_text("value = 11\\n")
Path("other.py").write_text("value = 99\\n")
times = os.stat("m.py")
os.utime("other.py", ns=(times.st_atime_ns, times.st_mtime_ns))
def plant(place):
    py_compile.compile("other.py", cfile=str(place))
def shadow(place):
    Path("other.py").write_text("import m\\nm.value = 99\\n")
    py_compile.compile("other.py", cfile=str(place))
cache = Path(importlib.util.cache_from_source("m.py"))
"""
PLANTS = {
    "in the cache of the module": "plant(cache)",
    "in a cache that is a link": "plant('else/' + cache.name); os.rename('__pycache__', 'b'); os.symlink('else', '__pycache__')",
    "a module without source in the place of Python's own": "shadow('json.pyc')",
    "a package without source": "shadow('json/__init__.pyc')",
    "below what looks like installed packages": "plant(cache); Path('pyvenv.cfg').touch()",
    "where nothing can be deleted": "plant(cache); os.chmod('__pycache__', 0o555)",
}


@pytest.fixture
def place(fresh_place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    (fresh_place / "m.py").write_text("value = 10\n")
    (fresh_place / "score.py").write_text("import json, m\nprint(json.dumps(m.value / 100))\n")
    return fresh_place


def run(place: Path, agent: str, *, count: int = 1, isolation: str = "none") -> list[Any]:
    """Run an agent; return the records of its iterations."""
    (place / "agent.py").write_text(agent)
    (place / "jumar.toml").write_text(CONFIG.format(count=count, isolation=isolation, here=place))
    call("run", check=0)
    directories = [place / f".jumar/loops/t/iterations/iteration-{number:03d}" for number in range(1, count + 1)]
    return [json.loads((directory / "metrics.json").read_text()) for directory in directories]


def test_edits_of_one_size_within_a_second_are_each_measured_themselves(place: Path) -> None:
    agent = "import os\nn = int(os.environ['JUMAR_ITERATION'])\nopen('m.py', 'w').write(f'value = {n * 37 % 90 + 10}\\n')\n"

    records = run(place, agent, count=12)

    expected = [(number * 37 % 90 + 10) for number in range(1, 13)]
    assert [record["quality_score"] for record in records] == expected
    assert [record["verification_status"] == "passed" for record in records] == [value < 50 for value in expected]


@pytest.mark.parametrize("isolation", ["none", "copy"])
@pytest.mark.parametrize("way", PLANTS)
def test_planted_bytecode_changes_no_verdict(place: Path, way: str, isolation: str) -> None:
    agent = f"{COMPILE}{PLANTS[way]}\nPath('other.py').unlink()\n"

    (record,) = run(place, agent, isolation=isolation)

    assert (record["quality_score"], record["verification_status"]) == (11, "passed")


def test_a_place_for_bytecode_elsewhere_is_not_the_agents(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    caches = tmp_path / "caches"
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(caches))
    tell = "Path(os.environ['HERE']).write_text(os.environ['PYTHONPYCACHEPREFIX'])\n"
    tell = tell.replace("os.environ['HERE']", repr(str(tmp_path / "told")))
    planted = f"plant({str(caches)!r} + str(Path('m.py').absolute().parent) + '/' + cache.name)\n"

    (record,) = run(place, f"{COMPILE}{planted}{tell}Path('other.py').unlink()\n")

    assert (record["quality_score"], record["verification_status"]) == (11, "passed")
    assert (tmp_path / "told").read_text() == f"{caches}/jumar-agents"


def test_a_module_without_source_that_was_there_stays_and_so_do_installed_packages(place: Path) -> None:
    (place / "part.py").write_text("value = 20\n")
    py_compile.compile("part.py", cfile="part.pyc")
    (place / "part.py").unlink()
    packages = place / ".venv/lib/python3/site-packages"
    packages.mkdir(parents=True)
    (place / ".venv/pyvenv.cfg").touch()
    py_compile.compile("m.py", cfile=str(packages / "__pycache__/m.pyc"))
    (place / "score.py").write_text("import part\nprint(part.value / 100)\n")

    (record,) = run(place, "open('m.py', 'w').write('value = 11\\n')\n")

    assert record["quality_score"] == 20
    assert (packages / "__pycache__/m.pyc").exists()


def test_a_snapshot_keeps_the_bytecode_that_it_holds(place: Path) -> None:
    (place / "agent.py").write_text(f"{COMPILE}plant('part.pyc')\n")
    config = (
        CONFIG.format(count=1, isolation="none", here=place).replace("import m;", "import part as m;").replace("< 50", "== 99")
    )
    (place / "jumar.toml").write_text(f'{config}\n[artifacts]\ninclude = ["*.py", "*.pyc"]\n')

    call("run", "--allow-broken-start", check=0)

    assert (place / ".jumar/loops/t/iterations/iteration-001/artifacts/part.pyc").exists()
    record = json.loads((place / ".jumar/loops/t/iterations/iteration-001/metrics.json").read_text())
    assert record["verification_status"] == "passed"
