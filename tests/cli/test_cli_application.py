"""The command line as a whole: errors, exit codes, environment, help."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from commands import call, call_json, record

from jumar.cli import application as module
from jumar.cli.application import application, environment_name
from jumar.cli.table import COMMANDS, GROUPS, every_command

COMMON = ("--json", "--quiet")
EVERY = every_command()
WITHOUT_ROOT = {
    "agree",
    "prove",
    "completion",
    "demo",
    "evaluate",
    "init",
    *(name for name in EVERY if name.startswith(("learn ", "patterns ", "topk "))),
}


def command(name: str) -> click.Command:
    """A command as it is typed: ``show``, ``cases show``."""
    found: click.Command | None = application
    for word in name.split():
        assert isinstance(found, click.Group)
        found = found.get_command(click.Context(found), word)
    assert found is not None
    return found


PROTOCOLS = {"hook", "mcp"}
"""Commands whose output is a protocol's: for programs alone, and JSON always."""


def options(name: str) -> list[click.Option]:
    return [option for option in command(name).params if isinstance(option, click.Option)]


def test_every_command_is_in_the_table_and_in_the_help():
    assert [name.split()[-1] for name in EVERY] == [command(name).name for name in EVERY]
    shown = call("--help", check=0).out
    names = sorted([*COMMANDS, *GROUPS])
    assert names == [line.split()[0] for line in shown.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()]
    for group, found in GROUPS.items():
        inside = call(group, "--help", check=0).out
        assert list(found.commands) == [name for name in found.commands if f"\n  {name} " in inside]


def test_no_argument_shows_the_help():
    done = subprocess.run([sys.executable, "-m", "jumar.cli.entry"], capture_output=True, text=True, check=True)
    assert call("--help").out == done.stdout


@pytest.mark.parametrize("name", EVERY)
def test_every_command_answers_in_json_and_can_be_quiet(name: str):
    flags = {flag for option in options(name) for flag in option.opts}
    assert set(COMMON) <= flags or name in PROTOCOLS
    assert (name in WITHOUT_ROOT) == ("--root" not in flags)


@pytest.mark.parametrize("name", EVERY)
def test_help_has_an_example_and_fits_a_narrow_window(name: str):
    shown = call(*name.split(), "--help", check=0).out
    assert f"jumar {name}" in shown.partition("Examples:")[2]
    assert [] == [line for line in shown.splitlines() if len(line) > 100]
    assert all(option.help for option in options(name))


@pytest.mark.parametrize("name", EVERY)
def test_every_option_has_a_variable_of_its_own(name: str):
    variables = [option.envvar for option in options(name)]
    assert None not in variables
    assert len(variables) == len(set(variables))
    for option in options(name):
        expected = "JUMAR_ROOT" if "--root" in option.opts else environment_name(name, option)
        assert expected == option.envvar


def test_the_environment_sets_options_and_the_command_line_beats_it(monkeypatch: pytest.MonkeyPatch):
    record([0.6, {"score": 0.9, "verification_status": "failed"}])
    assert 1 == call_json("select", "t")["selected_iteration"]
    monkeypatch.setenv("JUMAR_SELECT_MODE", "highest_quality")
    assert 2 == call_json("select", "t")["selected_iteration"]
    assert 1 == call_json("select", "t", "--mode", "highest_quality_verified")["selected_iteration"]


def test_flags_and_pairs_of_flags_are_set_by_environment(monkeypatch: pytest.MonkeyPatch):
    record([0.9, {"score": 0.8, "verification_status": "failed"}])
    monkeypatch.setenv("JUMAR_SELECT_JSON", "1")
    monkeypatch.setenv("JUMAR_SELECT_MODE", "most_recent_above_threshold")
    assert 1 == call("select", "t", check=0).document["selected_iteration"]
    monkeypatch.setenv("JUMAR_SELECT_REQUIRE_VERIFICATION", "false")
    assert 2 == call("select", "t", check=0).document["selected_iteration"]


def test_repeated_options_take_one_value_a_line_from_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("JUMAR_RUN_CHECK", "pytest -q tests\n\nruff check .\n")
    parent = click.Context(application, help_option_names=["-h", "--help"])
    context = command("run").make_context("run", ["--", "agent"], parent=parent)
    assert ("pytest -q tests", "ruff check .") == context.params["checks"]


def test_a_pinned_version_in_the_environment_changes_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("JUMAR_VERSION", "1")
    assert "loops" in call_json("list")


def test_root_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    record([0.5], root=tmp_path / "elsewhere")
    monkeypatch.setenv("JUMAR_ROOT", str(tmp_path / "elsewhere"))
    assert ["t"] == [loop["loop_id"] for loop in call_json("list")["loops"]]


@pytest.mark.parametrize(
    ("arguments", "code", "kind", "message"),
    [
        (("selct", "t"), 2, "UsageError", "did you mean 'select'?"),
        (("select", "tt"), 2, "NotFoundError", "did you mean 't'?"),
        (("select", "t", "--mod", "x"), 2, "UsageError", "--mod"),
        (("select", "t", "--mode", "highest"), 2, "UsageError", "highest"),
        (("select", "t", "--threshold", "101"), 2, "UsageError", "101"),
        (("select", "t", "--threshold", "0.7"), 2, "UsageError", "scores are from 0 to 100, so 0.7 is next to nothing: write 70"),
        (("select", "t", "--threshold", "0.7%"), 2, "UsageError", "scores are points from 0 to 100: write 70, without a sign"),
        (("select", "t", "--threshold", "0,7"), 2, "UsageError", "write it without a unit"),
        (("select", "t", "--threshold", "nan"), 2, "ScoreError", "threshold"),
        (("rm",), 2, "UsageError", "LOOP"),
        (("show", "t", "--iteration", "9"), 2, "NotFoundError", "no iteration 9"),
        (("diff", "t", "1"), 2, "UsageError", "'t' is no iteration"),
        (("diff", "t", "1", "9"), 2, "NotFoundError", "9"),
        (("select", "../t"), 2, "NotFoundError", "no directory ../t"),
        (("cleanup", "t", "--keep", "few"), 2, "UsageError", "--keep"),
        (("report", "t", "--format", "pdf"), 2, "UsageError", "pdf"),
        (("completion", "tcsh"), 2, "UsageError", "tcsh"),
        (("init", "--template", "documnt"), 2, "UsageError", "documnt"),
    ],
)
def test_mistakes_are_one_message_and_one_document(arguments: tuple[str, ...], code: int, kind: str, message: str):
    record([0.5])
    plain = call(*arguments, check=code)
    assert plain.out == ""
    assert plain.err.startswith("jumar: ")
    assert message in plain.err
    assert "Traceback" not in plain.err
    found = call(*arguments, "--json", check=code).document["error"]
    assert (kind, code) == (found["kind"], found["exit_code"])
    assert message in found["message"]


def test_nothing_evaluated_is_12_and_damage_is_14():
    record([])
    assert "NothingEvaluatedError" == call_json("select", "t", check=12)["error"]["kind"]
    Path(".jumar/loops/t/loop.json").write_text("{")
    assert "StoreDamagedError" == call_json("show", "t", check=14)["error"]["kind"]


def test_control_characters_of_a_name_are_shown():
    called = call("show", "\x1b[31mred\x9b", check=2)
    assert "\x1b" not in called.err
    assert "\\x1b[31mred\\x9b" in called.err


def test_json_after_the_double_dash_is_the_generators_own():
    assert not module._wants_json(["run", "--", "agent", "--json"])
    assert module._wants_json(["run", "--json", "--", "agent"])
    assert not module._wants_json([])


@pytest.mark.parametrize(("value", "wanted"), [("1", True), ("true", True), ("0", False), ("", False)])
def test_json_by_environment_is_known_before_anything_is_parsed(monkeypatch: pytest.MonkeyPatch, value: str, wanted: bool):
    monkeypatch.setenv("JUMAR_SELECT_JSON", value)
    assert wanted == module._wants_json(["select", "t"])


def raising(error: BaseException):
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def test_a_refusal_of_the_system_is_a_message(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("jumar.cli.loop.list.list_summaries", raising(PermissionError(13, "Permission denied", "/somewhere/x")))
    called = call("list", check=1)
    assert "jumar: Permission denied: /somewhere/x\n" == called.err
    assert "PermissionError" == call_json("list", check=1)["error"]["kind"]


def test_a_bug_is_a_traceback_and_with_json_still_one_document(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("jumar.cli.loop.list.list_summaries", raising(ZeroDivisionError("oops")))
    with pytest.raises(ZeroDivisionError):
        call("list")
    called = call("list", "--json", check=1)
    assert "InternalError" == called.document["error"]["kind"]
    assert "Traceback" in called.err


def test_ctrl_c_is_130(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("jumar.cli.loop.list.list_summaries", raising(KeyboardInterrupt()))
    assert 128 + signal.SIGINT == call("list").code
    assert "Interrupted" == call_json("list", check=130)["error"]["kind"]


def test_a_reader_that_goes_away_is_no_error_of_ours():
    record([0.5] * 3)
    process = subprocess.Popen(
        [sys.executable, "-m", "jumar.cli.entry", "report", "t", "--format", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    with process:
        assert b"" == process.stderr.read()
    assert 128 + signal.SIGPIPE == process.returncode


QUICK = """
import sys
sys.argv[1:] = {arguments}
from jumar.cli.entry import main
try:
    main()
finally:
    print("click" in sys.modules)
"""

LOADED = """
import sys
from jumar.cli.application import run_application
run_application(["list", "--json"])
print(sorted({"rich", "pydantic", "jinja2"} & set(sys.modules)), file=sys.stderr)
"""


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)


def test_quick_answers_need_no_library():
    for arguments in ([], ["--help"], ["-h"], ["--version"]):
        assert "False" == python(QUICK.format(arguments=arguments)).stdout.splitlines()[-1]


def test_a_command_loads_only_what_it_needs():
    assert "[]\n" == python(LOADED).stderr


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["topk", "--help"], ["list", "--json"]])
def test_output_that_cannot_be_written_is_an_error_and_no_traceback(words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        program = [sys.executable, "-m", "jumar.cli.entry", *words]
        done = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert "ignored" not in done.stderr


def test_too_little_memory_is_an_error_and_no_traceback(plain_environment: dict[str, str]) -> None:
    refused = 0
    for kilobytes in (*range(24_000, 44_000, 4_000), 60_000):  # below that the interpreter itself does not start
        command = f"ulimit -v {kilobytes}; exec {sys.executable} -m jumar.cli.entry run -n 1 --check true -- true"
        words = ["sh", "-c", command]
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=plain_environment)
        if "jumar:" in done.stderr or "jumar ·" in done.stdout:
            assert "Traceback" not in done.stderr, done.stderr
            refused += "not enough memory" in done.stderr
    print(f"too little memory: {refused} runs refused")


@pytest.mark.parametrize("name", ["jumar.toml", "topk.toml"])
def test_toml_that_is_nested_too_deeply_is_an_error_that_names_the_file(name: str) -> None:
    Path(name).write_text(f"a = {'[' * 20_000}{']' * 20_000}")
    words = ["run"] if name == "jumar.toml" else ["topk", "select", "-", "--config", name]
    done = call(*words, check=None)
    assert done.code == 2
    assert name in done.err
