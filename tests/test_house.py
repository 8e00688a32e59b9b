"""The rules of the house that no tool checks by itself."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import jumar
from jumar import errors, model

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "jumar"

HEAVY = (
    "click",
    "httpx",
    "jinja2",
    "markdown_it",
    "numpy",
    "pathspec",
    "psutil",
    "pydantic",
    "rich",
    "scipy",
    "starlette",
    "uvicorn",
)

PUBLIC = [
    "ArtifactError",
    "BestOutputTracker",
    "BrokenStartError",
    "CheckResult",
    "ConfigError",
    "ConflictError",
    "Decision",
    "Degradation",
    "DiminishingReturns",
    "DuplicateIterationError",
    "EvaluationUnreliableError",
    "ExistsError",
    "FormatTooNewError",
    "GenerateOutcome",
    "Generator",
    "ItemError",
    "IterationRecord",
    "IterationView",
    "JumarError",
    "LockedError",
    "LoopFinishedError",
    "NotFoundError",
    "NothingEvaluatedError",
    "PatternLoadError",
    "PatternSaveError",
    "ScoreError",
    "ScoreReading",
    "Scorer",
    "SelectionCriteria",
    "SelectionResult",
    "Spend",
    "StepContext",
    "StopDecision",
    "StopRules",
    "StoreDamagedError",
    "StoreWriteError",
    "StrategyError",
    "TrendRule",
    "Usage",
    "UsageError",
    "Validator",
    "__version__",
    "detect_degradation",
    "detect_diminishing_returns",
    "evaluate",
    "learn",
    "likely_causes",
    "parse_order",
    "prove",
    "run",
    "run_cases",
]

EXIT_CODES = {
    "MissingExtraError": 2,
    "ForgedError": 14,
    "OtherKeyError": 14,
    "ArtifactError": 2,
    "BrokenStartError": 2,
    "ConfigError": 2,
    "ConflictError": 2,
    "DuplicateIterationError": 2,
    "EvaluationUnreliableError": 1,
    "ExistsError": 2,
    "FormatTooNewError": 14,
    "ItemError": 2,
    "JumarError": 1,
    "LockedError": 13,
    "LoopFinishedError": 2,
    "NotFoundError": 2,
    "NothingEvaluatedError": 12,
    "PatternLoadError": 2,
    "PatternSaveError": 1,
    "ScoreError": 2,
    "StoreDamagedError": 14,
    "StoreWriteError": 1,
    "StrategyError": 2,
    "UsageError": 2,
}

LONGEST_FUNCTION = 60
LONGEST_FILE = 500


def modules_loaded_by(code: str) -> set[str]:
    """Top-level names in ``sys.modules`` of a new interpreter that ran ``code``."""
    printing = f"{code}\nimport sys\nprint('\\n'.join(sorted({{name.partition('.')[0] for name in sys.modules}})))"
    # -I: neither the environment nor the current directory adds anything
    done = subprocess.run([sys.executable, "-I", "-c", printing], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def sources() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


# ------------------------------------------------------------------------------------------------ what users import


def test_import_jumar_loads_no_library():
    assert modules_loaded_by("import jumar").isdisjoint(HEAVY)


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_a_quick_answer_of_the_command_loads_no_library(argument: str):
    code = (
        f"import sys\nsys.argv = ['jumar', {argument!r}]\nfrom jumar.cli.entry import main\ntry: main()\nexcept SystemExit: pass"
    )
    loaded = modules_loaded_by(code)
    assert "jumar" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_every_public_name_loads_without_numpy_web_or_validation_libraries():
    loaded = modules_loaded_by("import jumar\nfor name in jumar.__all__: getattr(jumar, name)")
    assert "jumar" in loaded
    assert loaded.isdisjoint({"httpx", "jinja2", "numpy", "pydantic", "rich", "scipy", "starlette"})


def test_public_names_are_pinned():
    assert PUBLIC == jumar.__all__


def test_public_names_are_those_of_their_modules():
    where = {name: module for name, module in jumar._ELSEWHERE.items() if name in PUBLIC}
    assert jumar._ELSEWHERE == where, "a name that users cannot see"
    for name in PUBLIC:
        home = importlib.import_module(where.get(name, "jumar.errors"))
        assert getattr(jumar, name) is getattr(home, name)


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'jumar' has no attribute 'nothing'"):
        jumar.nothing  # noqa: B018 # pyright: ignore[reportAttributeAccessIssue]


def test_dir_lists_names_before_they_are_loaded():
    assert set(PUBLIC) <= set(dir(jumar))


def test_version_is_that_of_the_installed_package():
    assert metadata.version("jumar") == jumar.__version__


def test_the_package_is_marked_as_typed():
    assert "" == (SOURCE / "py.typed").read_text()


# ---------------------------------------------------------------------------------------------------------- errors


def error_classes() -> dict[str, type[errors.JumarError]]:
    return {
        name: value
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, errors.JumarError) and value.__module__ == errors.__name__
    }


def test_exit_codes_are_pinned():
    assert EXIT_CODES == {name: value.exit_code for name, value in error_classes().items()}
    assert sorted(EXIT_CODES) == sorted(errors.__all__)


def test_the_tree_in_the_docstring_is_the_tree_of_the_classes():
    drawn: dict[str, tuple[str | None, int]] = {}
    parents: dict[int, str] = {}
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r" {4}([│ ]*(?:├── |└── )?)(\w+Error) +(\d+) ", line)
        if found is None:
            continue
        depth = len(found[1]) // 4
        drawn[found[2]] = (parents.get(depth - 1), int(found[3]))
        parents[depth] = found[2]
    real = {
        name: (None if value is errors.JumarError else value.__bases__[0].__name__, value.exit_code)
        for name, value in error_classes().items()
    }
    assert drawn == real


# ------------------------------------------------------------------------------------------------------------ docs


def test_the_page_of_exit_codes_has_every_error():
    page = (ROOT / "docs" / "reference" / "exit-codes.md").read_text()
    assert EXIT_CODES == {name: int(code) for name, code in re.findall(r"^\| `(\w+Error)` \| (\d+) \|$", page, re.MULTILINE)}


@pytest.mark.parametrize(
    "record",
    [
        model.IterationRecord,
        model.ArtifactDetail,
        model.ScoreReading,
        model.JudgedItem,
        model.Judgement,
        model.CheckResult,
        model.Analysis,
        model.Usage,
        model.AttemptStart,
        model.AttemptEnd,
        model.Decision,
    ],
)
def test_the_page_of_files_has_every_field(record: type):
    page = (ROOT / "docs" / "reference" / "formats.md").read_text()
    fields = {field.name for field in dataclasses.fields(record)}
    assert fields
    assert set() == {name for name in fields if f"`{name}`" not in page}


# ---------------------------------------------------------------------------------------------------------- limits


def functions(path: Path) -> list[tuple[str, int]]:
    """Name and number of lines of every function, decorators not counted."""
    tree = ast.parse(path.read_text())
    return [
        (f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", (node.end_lineno or 0) - node.lineno + 1)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def test_limit_on_the_length_of_functions():
    lengths = [found for path in sources() for found in functions(path)]
    assert len(lengths) > 100
    assert [] == [(name, lines) for name, lines in lengths if lines > LONGEST_FUNCTION]


def test_limit_on_the_length_of_files():
    lengths = [(str(path.relative_to(ROOT)), len(path.read_text().splitlines())) for path in sources()]
    assert len(lengths) > 10
    assert [] == [(name, lines) for name, lines in lengths if lines > LONGEST_FILE]


def test_limit_counts_the_lines_of_a_function():
    path = ROOT / "tests" / "test_house.py"
    assert 2 == dict(functions(path))[f"tests/test_house.py:{sources.__code__.co_firstlineno} sources"]


# ----------------------------------------------------------------------------------------------------- dependencies


def pinned() -> set[str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return {re.split(r"==", line)[0].lower() for line in lines}


def test_constraints_hold_no_address():
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        assert re.fullmatch(r"[a-z0-9-]+==[\w.!+]+( ; [^:]+)?", line), line


def declared() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = project["project"]["dependencies"] + [one for group in project["dependency-groups"].values() for one in group]
    return {re.split(r"[^\w.-]", one)[0].lower() for one in wanted}


def test_every_declared_dependency_is_pinned():
    assert set() == declared() - pinned()


def test_every_declared_dependency_says_what_it_is_for():
    page = (ROOT / "docs" / "design" / "dependencies.md").read_text()
    assert set() == {name for name in declared() if f"`{name}`" not in page}


PERSONS = {"cases/settings.py"}  # texts of cases, which a person names: a pipe too


def reads_anything(path: Path) -> list[int]:
    """Return the lines of a module that read a file whatever it is: a FIFO, a device, a hole of terabytes."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    methods = [(node.lineno, node.func) for node in calls if isinstance(node.func, ast.Attribute)]
    return [
        line
        for line, method in methods
        if method.attr in {"read_bytes", "read_text"} and not (isinstance(method.value, ast.Name) and method.value.id == "files")
    ]


def test_what_lies_in_a_folder_of_jumars_is_read_as_a_regular_file_of_a_bounded_size():
    source = Path(jumar.__file__).parent
    modules = [path for room in ("cases", "learning", "loop") for path in source.joinpath(room).rglob("*.py")]
    found = {str(path.relative_to(source)): lines for path in modules if (lines := reads_anything(path))}
    assert PERSONS == set(found), found


def test_what_is_left_out_of_the_fast_tests_is_there():
    listed = (ROOT / "tests/slow.txt").read_text("utf-8").split()
    assert listed == sorted(set(listed))
    assert [] == [name for name in listed if not (ROOT / "tests" / name).is_file()]
