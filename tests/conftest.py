"""What every test starts from: an empty directory, no settings of the machine, bounded property tests."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, settings

from jumar.core import redaction

# Timings depend on who else uses the machine, so no example has a deadline. `ci` draws the same examples every time.
settings.register_profile("default", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, database=None, print_blob=True)
settings.register_profile("fast", settings.get_profile("ci"), max_examples=10)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "default"))

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")  # a test tells nobody

_DATA = Path(os.environ.get("JUMAR_DATA") or Path(__file__).parents[2] / "shared" / "data").resolve()
_HERE = Path(__file__).parent
_SLOW = frozenset((_HERE / "slow.txt").read_text("utf-8").split())
_KEPT = frozenset({"JUMAR_SWEEP"})  # says how long the fault sweeps may take; jumar itself does not know it
_LEFT_OUT = ("CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR")
_MEMORY = Path("/dev/shm")
_STATE = tempfile.mkdtemp(prefix="jumar-state-")
_ROOM = 2 << 30  # many times what the tests leave


def has_room_in_memory() -> bool:
    """Whether files can be kept in memory, enough of them, and programs among them (a container's /dev/shm may have neither)."""
    if not os.access(_MEMORY, os.W_OK):
        return False
    there = os.statvfs(_MEMORY)
    return not there.f_flag & os.ST_NOEXEC and there.f_bavail * there.f_frsize >= _ROOM


# Everything durable is synced, and half of the time would be waiting for the disk. TMPDIR=/tmp tests there.
if "TMPDIR" not in os.environ and has_room_in_memory():
    os.environ["TMPDIR"] = tempfile.tempdir = str(_MEMORY)


# In the background of a script SIGINT is ignored, and what tests start would inherit that; a handler is not inherited.
for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, lambda _number, _frame: None)


def pytest_configure(config: pytest.Config) -> None:
    """Measure this process and none that it starts: the pure layers run here, and measuring thousands of processes takes long."""
    if hasattr(config, "workerinput") and os.environ.get("JUMAR_COVER") != "all":
        for name in [name for name in os.environ if name.startswith("COVERAGE_")]:
            del os.environ[name]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is slow, and keep half of the combinations of every matrix, like one colour of a chessboard.

    The sweep keeps all of them. So each value of every parameter is tried, with every second value of the others.
    """
    for item in items:
        if item.path.relative_to(_HERE).as_posix() in _SLOW:
            item.add_marker(pytest.mark.slow)
    if os.environ.get("JUMAR_SWEEP") == "full":
        return
    left_out = [item for item in items if item.get_closest_marker("matrix") is not None and _is_black(item)]
    config.hook.pytest_deselected(items=left_out)
    dropped = set(left_out)
    items[:] = [item for item in items if item not in dropped]


def _is_black(item: pytest.Item) -> bool:
    values: dict[str, Any] = cast("Any", item).callspec.params
    place = 0
    for names, choices in (mark.args[:2] for mark in item.iter_markers("parametrize")):
        mine = values[names] if isinstance(names, str) else tuple(values[name] for name in names)
        place += [getattr(choice, "values", choice) for choice in choices].index(mine)
    return place % 2 == 1


@pytest.fixture(autouse=True)
def fresh_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current directory, and an environment that says nothing about jumar, git or the terminal."""
    for name in list(os.environ):
        if (name.startswith(("JUMAR_", "GIT_")) and name not in _KEPT) or name in _LEFT_OUT:
            monkeypatch.delenv(name)
    # a machine where git was just installed: no identity, no default branch, no hooks
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # for a check that is pytest: plugins take a second
    monkeypatch.setenv("XDG_STATE_HOME", _STATE)  # whoever runs the tests has a key of his own for what is his
    redaction.install(None)
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


@pytest.fixture
def plain_environment(fresh_place: Path) -> dict[str, str]:
    """The environment for a process whose system calls are counted or failed: coverage must not write into the count."""
    assert fresh_place == Path.cwd()
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}


@pytest.fixture(scope="session")
def recorded_data() -> Path:
    """The folder of recorded runs and judgements. It is not part of the repository."""
    if not _DATA.is_dir():
        pytest.skip("recorded data: set JUMAR_DATA to its folder")
    return _DATA


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Yield a real browser for the pages of a module."""
    from browser_page import started_browser

    yield from started_browser()
