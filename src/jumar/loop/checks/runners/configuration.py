"""What a test runner reads beside the tests: the one list of the files that change how all of them run.

A runner's *own* files hold nothing else; a *shared* one holds other things too, which are the generator's to change. And whatever
the runner, Python takes a module that lies beside the tests, or in the working directory, for another: the standard library's, an
installed one, the protected one. So does JavaScript. And pytest loads the plugins of what looks installed there.
"""

from __future__ import annotations

import ast
import fnmatch
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple


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
    _Reads("npm", (".npmrc",)),
    _Reads("yarn", (".yarnrc", ".yarnrc.yml")),
    _Reads("babel", (".babelrc", ".babelrc.*", "babel.config.*")),
    _Reads("swc", (".swcrc",)),
    _Reads("bundler", ("**/.bundle/config",)),
    _Reads("c8", (".nycrc", ".nycrc.*", "nyc.config.*", ".c8rc", ".c8rc.*")),
    _Reads("cucumber", ("cucumber.js", "cucumber.cjs", "cucumber.mjs", "cucumber.yaml", "cucumber.yml")),
    _Reads("prove", (".proverc",)),
    _Reads("JUnit", ("junit-platform.properties",)),
    _Reads("behave", ("behave.ini", ".behaverc")),
    _Reads("testthat", (".Rprofile", ".Renviron")),
    _Reads("busted", (".busted",)),
    _Reads("tox", (), ("tox.toml",)),
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
    _Reads("rake", (), ("rakefile",)),
)

OWN: Final = tuple(name for row in _CONFIGURATION for name in row.own)
"""Files that change how every test runs and hold nothing else. With ``protect`` they are as at the start, wherever they lie."""

_MODULES: Final = sys.stdlib_module_names | {"pytest", "_pytest", "pluggy", "iniconfig", "coverage"}
_PYTHON: Final = "python"
_BUILT: Final = ("so", "pyd")
_MANIFEST: Final = "package.json"  # says what is imported of its folder
_LOADED: Final = {
    **dict.fromkeys(("py", "pyc", *_BUILT), _PYTHON),
    **dict.fromkeys(("js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "json", "node"), "javascript"),
}


def _compiled(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(fnmatch.translate(pattern.removeprefix("**/")) for pattern in patterns))


_OWN: Final = _compiled(OWN)
_SHARED: Final = _compiled(name for row in _CONFIGURATION for name in row.shared)


def is_own(path: str) -> bool:
    """Return whether a relative path is that of a runner's own file, wherever it lies."""
    return _matches(_OWN, path)


_METADATA: Final = (".dist-info", ".egg-info")
_ENTRIES: Final = "entry_points.txt"


@dataclass(frozen=True, slots=True)
class Deciding:
    """The files that decide, as Python and JavaScript look for them. Made with :meth:`of`.

    ``folders`` are the directories around them ("" is the working directory), ``modules`` maps the language and the path that
    is imported to the endings of the files that it leads to, ``start`` holds such paths of the whole tree, and ``installed`` the
    names of modules that are installed where the checks run.
    """

    folders: frozenset[str]
    modules: Mapping[tuple[str, str], frozenset[str]]
    start: frozenset[str]
    installed: frozenset[str]

    @classmethod
    def of(cls, paths: Collection[str], *, start: Iterable[str] = (), installed: Collection[str] = ()) -> Deciding:
        """Return what ``paths`` are to those who import them; ``start`` are all paths that were there before any program ran."""
        modules: dict[tuple[str, str], set[str]] = {}
        for path in paths:
            module = _module(path)
            if module is not None and path.rpartition("/")[2] != _MANIFEST:
                modules.setdefault(module, set()).add(path.rpartition(".")[2])
                folder = path.rpartition("/")[0]
                if module[0] == _PYTHON and folder:  # it is a package without a file of its own
                    modules.setdefault((_PYTHON, folder), set())
        there = {module[1] for module in map(_module, start) if module is not None}
        there.update(folder for path in start for folder in _around(path))
        return cls(
            folders=frozenset(folder for path in paths for folder in _around(path)) | {""},
            modules={module: frozenset(endings) for module, endings in modules.items()},
            start=frozenset(there),
            installed=frozenset(installed),
        )

    def is_imported_instead(self, path: str) -> bool:
        """Return whether a new file would be imported instead of one that decides, or of an installed module."""
        module = _module(path)
        if module is None:
            return False
        if module in self.modules:
            is_data = path.endswith(".json") and not path.endswith(f"/{_MANIFEST}")
            return not (is_data and "js" in self.modules[module])  # which is looked for first
        folder, _, name = module[1].rpartition("/")
        if module[0] != _PYTHON or folder not in self.folders:
            return False
        return name in _MODULES or (name in self.installed and module[1] not in self.start)


def stands_in(path: str, deciding: Deciding) -> bool:
    """Return whether a new file changes how tests run.

    The directories around the files that decide count for what a runner shares with others, and for modules in another's place.
    """
    folder, _, name = path.rpartition("/")
    around, _, package = folder.rpartition("/")
    if _matches(_OWN, path):
        return True
    if name == _ENTRIES and package.lower().endswith(_METADATA):
        return around in deciding.folders
    if _matches(_SHARED, path):
        return (around if package.startswith(".") else folder) in deciding.folders
    return deciding.is_imported_instead(path)


def _module(path: str) -> tuple[str, str] | None:
    """Return the language that loads a file and the path by which it is imported; None for what is no module."""
    folder, _, name = path.rpartition("/")
    stem, _, ending = name.rpartition(".")
    language = _LOADED.get(ending)
    if language is None or not stem:
        return None
    if ending in _BUILT:
        stem = name.partition(".")[0]
    of_folder = name == _MANIFEST or stem == ("__init__" if language == _PYTHON else "index")
    return language, folder if folder and of_folder else path[: len(path) - len(name)] + stem


def _around(path: str) -> Iterator[str]:
    while path:
        path = path.rpartition("/")[0]
        yield path


def is_harmless(path: str, content: bytes | None, deciding: Deciding) -> bool:
    """Return whether a file for which :func:`stands_in` holds changes nothing, by its content.

    So are the commands that an editable installation writes, which are no plugins, and an ``__init__.py`` without code where a
    directory was a package without one.
    """
    if content is None:
        return False
    if path.endswith("/__init__.py"):
        if deciding.modules.get((_PYTHON, path.rpartition("/")[0])) != frozenset():
            return False
        try:
            body = ast.parse(content).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
        return all(isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) for line in body)
    return path.endswith(f"/{_ENTRIES}") and b"pytest11" not in content


def _matches(pattern: re.Pattern[str], path: str) -> bool:
    parts = path.rsplit("/", 2)
    return pattern.match(parts[-1]) is not None or (len(parts) > 1 and pattern.match("/".join(parts[-2:])) is not None)
