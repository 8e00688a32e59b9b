"""What a test runner reads beside the tests: the one list of the files that change how all of them run.

A runner's *own* files hold nothing else; a *shared* one holds other things too, which are the generator's to change. And whatever
the runner, Python takes a module that lies beside the tests, or in the working directory, for the standard library's, and pytest
loads the plugins of what looks installed there.
"""

from __future__ import annotations

import fnmatch
import re
import sys
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

__all__ = ["OWN", "is_harmless", "is_own", "stands_in"]


class _Reads(NamedTuple):
    """The names of one runner's files, in gitignore syntax."""

    runner: str
    own: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()


_CONFIGURATION: Final = (
    _Reads(
        "pytest",
        ("conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"),
        ("pyproject.toml", "setup.cfg", "tox.ini"),
    ),
    _Reads("python", ("sitecustomize.py", "usercustomize.py")),
    _Reads("coverage", (".coveragerc",)),
    _Reads("nox", (), ("noxfile.py",)),
    _Reads("jest", ("jest.config.*",)),
    _Reads("vitest", ("vitest.config.*", "vitest.workspace.*"), ("vite.config.*",)),
    _Reads("mocha", (".mocharc.*", ".mocharc")),
    _Reads("ava", ("ava.config.*",)),
    _Reads("karma", ("karma.conf.*",)),
    _Reads("playwright", ("playwright.config.*",)),
    _Reads("cypress", ("cypress.config.*", "cypress.json")),
    _Reads("tap", (".taprc",)),
    _Reads("c8", (".nycrc", ".nycrc.*", ".c8rc.*")),
    _Reads("bun test", (), ("bunfig.toml",)),
    _Reads("deno test", (), ("deno.json", "deno.jsonc")),
    _Reads("cargo test", (), ("**/.cargo/config.toml", "**/.cargo/config", "rust-toolchain", "rust-toolchain.toml")),
    _Reads("cargo nextest", ("**/.config/nextest.toml",)),
    _Reads("go test", (), ("go.work",)),
    _Reads("dotnet test", ("*.runsettings",), ("Directory.Build.props", "Directory.Build.targets")),
    _Reads("Maven Surefire", (), ("**/.mvn/maven.config", "**/.mvn/jvm.config", "**/.mvn/extensions.xml")),
    _Reads("rspec", (".rspec", ".rspec-local")),
    _Reads("PHPUnit", ("phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml")),
    _Reads("ctest", ("CTestCustom.cmake", "CTestCustom.ctest")),
    _Reads("bats", ("setup_suite.bash",)),
    _Reads("make", (), ("GNUmakefile", "makefile")),
)

OWN: Final = tuple(name for row in _CONFIGURATION for name in row.own)
"""Files that change how every test runs and hold nothing else. With ``protect`` they are as at the start, wherever they lie."""

_MODULES: Final = sys.stdlib_module_names | {"pytest", "_pytest", "pluggy", "iniconfig", "coverage"}
_LOADED: Final = frozenset({"py", "pyc", "so", "pyd"})


def _compiled(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(fnmatch.translate(pattern.removeprefix("**/")) for pattern in patterns))


_OWN: Final = _compiled(OWN)
_SHARED: Final = _compiled(name for row in _CONFIGURATION for name in row.shared)


def is_own(path: str) -> bool:
    """Return whether a relative path is that of a runner's own file, wherever it lies."""
    return _matches(_OWN, path)


_METADATA: Final = (".dist-info", ".egg-info")
_ENTRIES: Final = "entry_points.txt"


def stands_in(path: str, beside: Collection[str]) -> bool:
    """Return whether a file changes how tests run that lie in the directories ``beside`` ("" is the working directory).

    Those directories decide for what a runner shares with others, and for modules in the place of Python's own.
    """
    folder, _, name = path.rpartition("/")
    around, _, package = folder.rpartition("/")
    if _matches(_OWN, path):
        return True
    if name == _ENTRIES and package.endswith(_METADATA):
        return around in beside
    if _matches(_SHARED, path):
        return (around if package.startswith(".") else folder) in beside
    module, _, ending = name.partition(".")
    if ending.rpartition(".")[2] not in _LOADED:
        return False
    if module == "__init__":
        return package in _MODULES and around in beside
    return module in _MODULES and folder in beside


def is_harmless(path: str, content: bytes | None) -> bool:
    """Return whether a file for which :func:`stands_in` holds is what an editable installation writes: commands, no plugins."""
    return path.endswith(f"/{_ENTRIES}") and content is not None and b"pytest11" not in content


def _matches(pattern: re.Pattern[str], path: str) -> bool:
    parts = path.rsplit("/", 2)
    return pattern.match(parts[-1]) is not None or (len(parts) > 1 and pattern.match("/".join(parts[-2:])) is not None)
