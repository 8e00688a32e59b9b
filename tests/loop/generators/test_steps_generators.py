"""Generators: commands, Python functions in a child process, callables."""

from __future__ import annotations

import json
import os
import secrets
import sys
import threading
from pathlib import Path

import pytest
from steps_kit import carriers, context, wild

from jumar.errors import ConfigError
from jumar.loop.generators.generators import CommandGenerator, PythonGenerator
from jumar.model import CheckResult, IterationView, Usage


@pytest.fixture
def work(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


def log_of(step) -> str:
    return (step.log_directory / "generator.log").read_text()


# -------------------------------------------------------------------------------------------------------- commands


def test_a_command_changes_the_work_directory_and_reports_usage(work):
    step = context(work)
    outcome = CommandGenerator("echo $JUMAR_ITERATION > n; echo '{\"tokens_used\": 7}' > $JUMAR_USAGE_FILE; echo said").generate(
        step
    )
    assert (0, None, "said\n", "said\n") == (outcome.exit_code, outcome.failure, outcome.output_tail, outcome.stdout)
    assert (Usage(tokens_used=7), (), False, False) == (outcome.usage, outcome.notes, outcome.timed_out, outcome.interrupted)
    assert "1\n" == (work / "n").read_text()
    assert "said\n" == log_of(step)


def test_the_placeholders_of_a_list_are_filled_once_and_other_braces_stay(work):
    step = context(work, loop_id="l", iteration=4, prompt="say {loop_id} $HOME\n")
    code = "import json, sys; print(json.dumps(sys.argv[1:]))"
    given = [
        "{prompt}",
        "{prompt_file}",
        "<{feedback_file}>",
        "{iteration}-{loop_id}",
        "{Prompt}",
        "{}",
        "{{iteration}}",
        "{ iteration }",
    ]
    outcome = CommandGenerator([sys.executable, "-c", code, *given]).generate(step)
    expected = [
        "say {loop_id} $HOME\n",
        str(step.prompt_file),
        f"<{step.feedback_file}>",
        "4-l",
        "{Prompt}",
        "{}",
        "{4}",
        "{ iteration }",
    ]
    assert expected == json.loads(outcome.stdout)


def test_a_string_is_not_filled(work):
    assert "{iteration} 1\n" == CommandGenerator("echo '{iteration}' $JUMAR_ITERATION").generate(context(work)).stdout


def test_the_prompt_on_standard_input(work):
    step = context(work, prompt="línea\n")
    assert "línea\n" == CommandGenerator(wild("echo-stdin"), stdin="prompt").generate(step).stdout
    assert "" == CommandGenerator(wild("echo-stdin")).generate(step).stdout


def test_the_environment_is_the_context_s(work):
    base = {"PATH": os.environ["PATH"], "HOME": "/h", "MY_DATABASE_PASSWORD": "x", "OPENAI_API_KEY": "k"}
    names = set(CommandGenerator(wild("environment")).generate(context(work, base=base)).stdout.split())
    assert {"PATH", "HOME", "OPENAI_API_KEY", "JUMAR_LOOP_ID", "JUMAR_USAGE_FILE", "JUMAR_STEP"} <= names
    assert "MY_DATABASE_PASSWORD" not in names


def test_the_usage_file_comes_before_the_output(work):
    command = 'echo \'{"token_cost_usd": 1}\' > $JUMAR_USAGE_FILE; echo \'{"cost": 2, "usage": {"n": 5}}\''
    outcome = CommandGenerator(command, usage_map={"cost": "cost", "tokens": "usage.n", "model": "model"}).generate(context(work))
    assert Usage(token_cost_usd=1.0, tokens_used=5) == outcome.usage
    assert ("generator output: nothing found at 'model' for model; it counts as unknown",) == outcome.notes


def test_a_command_that_never_began_is_known_to_have_used_nothing(work):
    outcome = CommandGenerator(["no-such-agent"], usage_map={"cost": "cost"}).generate(context(work))
    assert ("was not found" in str(outcome.failure), outcome.notes) == (True, ())
    assert Usage(tokens_used=0, token_cost_usd=0.0) == outcome.usage


def test_a_refused_run_is_not_blamed_for_what_it_does_not_report(work):
    command = 'echo \'{"error": "429 too many requests"}\'; exit 1'
    outcome = CommandGenerator(command, usage_map={"cost": "cost"}).generate(context(work))
    assert (True, ()) == (outcome.rate_limited, outcome.notes)


@pytest.mark.parametrize(("said", "completed"), [("DONE", True), ("I am DONE", None)])
def test_a_promise_on_a_line_of_its_own_means_completed(said, completed, work):
    outcome = CommandGenerator(f"echo '{said}'", completion_promise="DONE").generate(context(work))
    assert completed is outcome.usage.completed


@pytest.mark.parametrize(
    ("actions", "options", "failure", "flags"),
    [
        (["usage", "fail"], {}, "exit code 3", (False, False)),
        (["usage", "segv"], {}, "killed by SIGSEGV", (False, False)),
        (["usage", "daemon", "hang"], {"timeout": 5.0}, "timed out after 5 s", (True, False)),
    ],
)
def test_every_failure_is_an_outcome_that_keeps_what_was_paid(actions, options, failure, flags, work):
    nonce = secrets.token_hex(8)
    outcome = CommandGenerator(wild(*actions), **options).generate(context(work, nonce=nonce))
    assert (failure, flags) == (outcome.failure, (outcome.timed_out, outcome.interrupted))
    assert Usage(tokens_used=12, token_cost_usd=0.5) == outcome.usage
    assert [] == carriers(nonce)


def test_a_stop_interrupts_it(work):
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    outcome = CommandGenerator(wild("hang"), stop=stop).generate(context(work))
    assert (True, "interrupted") == (outcome.interrupted, outcome.failure)


def test_a_command_that_is_not_found_is_a_failure_not_an_exception(work):
    outcome = CommandGenerator(["no-such-agent", "-p", "{prompt}"]).generate(context(work))
    assert None is outcome.exit_code
    assert outcome.failure is not None
    assert outcome.failure.startswith("the command 'no-such-agent' was not found")


def test_a_prompt_too_long_for_an_argument_says_what_to_do(work):
    outcome = CommandGenerator(["echo", "{prompt}"]).generate(context(work, prompt="x" * 3_000_000))
    assert "the command line of 'echo' is too long: pass {prompt_file} or stdin instead of {prompt}" == outcome.failure


def test_errors_in_both_outputs_are_found(work):
    outcome = CommandGenerator("echo 'ValueError: out'; echo 'error: err' >&2").generate(context(work))
    assert {"ValueError: out", "error: err"} == set(outcome.errors)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CommandGenerator(""), "generator: the command is empty"),
        (lambda: CommandGenerator([]), "generator: the command is empty"),
        (lambda: CommandGenerator("x", timeout=0), "generator: timeout = 0 should be a positive number"),
        (lambda: CommandGenerator("x", usage_map={"kost": "a"}), r"unknown field 'kost' \(did you mean 'cost'"),
        (lambda: PythonGenerator("module"), "generator: python = 'module' should be 'module:function'"),
        (lambda: PythonGenerator("a/b.py:f"), "generator: python = 'a/b.py:f' should be"),
        (lambda: PythonGenerator("m:f", timeout=-1), "generator: timeout = -1 should be"),
    ],
)
def test_wrong_configuration_is_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


# ------------------------------------------------------------------------------------- functions in a child process

MODULE = """
import os, subprocess, sys, time
from pathlib import Path
from jumar import Usage
import helper

def good(context):
    (context.workdir / "made").write_text(f"{context.iteration} {context.objective} {helper.NAME}")
    print("printed", '{"value": {"usage": {}}}')
    return {"input_tokens": 1, "output_tokens": 2}

def nothing(context):
    assert Path.cwd() == context.workdir
    assert context.environment["JUMAR_LOOP_ID"] == context.loop_id
    assert context.prompt_file.read_text() == "do it\\n"

def typed(context):
    return Usage(token_cost_usd=-1.0, model="m", completed=True)

def facts(context):
    (context.workdir / "facts").write_text(repr((context.history, context.checks, context.artifacts, context.generator_exit)))

def raises(context):
    raise ValueError("several\\nlines \\x1b[31m")

def leaves(context):
    sys.exit(5)

def vanishes(context):
    os._exit(0)

def wrong(context):
    return 3

def hangs(context):
    subprocess.Popen(["sleep", "300"], start_new_session=True)
    time.sleep(300)

class Box:
    @staticmethod
    def inner(context):
        return None

value = 3
"""


@pytest.fixture
def functions(work: Path, tmp_path: Path) -> Path:
    beside = tmp_path / "configuration"
    beside.mkdir()
    (beside / "steps.py").write_text(MODULE)
    (work / "helper.py").write_text("NAME = 'from the working directory'\n")
    (work / "steps.py").write_text("raise RuntimeError('the candidate took the place of the module')\n")
    return beside


def test_a_function_gets_the_context_and_returns_usage(work, functions):
    step = context(work, objective="better", iteration=3)
    outcome = PythonGenerator("steps:good", search=(functions,)).generate(step)
    assert (0, None, Usage(tokens_used=3, input_tokens=1, output_tokens=2)) == (outcome.exit_code, outcome.failure, outcome.usage)
    assert "3 better from the working directory" == (work / "made").read_text()
    assert 'printed {"value": {"usage": {}}}\n' == outcome.output_tail, "what it prints is no answer"
    assert "" == outcome.stdout
    assert not list(work.rglob("__pycache__"))


@pytest.mark.parametrize("name", ["nothing", "Box.inner"])
def test_a_function_may_return_nothing(name, work, functions):
    outcome = PythonGenerator(f"steps:{name}", search=(functions,)).generate(context(work))
    assert (None, Usage(), ()) == (outcome.failure, outcome.usage, outcome.notes)


def test_what_a_function_does_not_say_comes_from_the_usage_file(work, functions):
    step = context(work)
    step.usage_file.write_text('{"tokens_used": 5, "token_cost_usd": 2}')
    outcome = PythonGenerator("steps:typed", search=(functions,)).generate(step)
    assert Usage(tokens_used=5, token_cost_usd=2.0, model="m", completed=True) == outcome.usage
    assert ("returned usage: token_cost_usd is -1.0, which is not a number of dollars; it counts as unknown",) == outcome.notes


def test_the_context_arrives_whole(work, functions):
    fields = {
        "history": (IterationView(number=0, score=1.5, dimensions={"a": 0.5}, keys={"k": 1.0}, failed_checks=2, status="ok"),),
        "checks": (CheckResult(name="c", passed=False, exit_code=1, failures=("f",)),),
        "artifacts": ("a.txt", "\udcff"),
        "generator_exit": 0,
    }
    outcome = PythonGenerator("steps:facts", search=(functions,)).generate(context(work, **fields))
    assert None is outcome.failure
    assert repr(tuple(fields.values())) == (work / "facts").read_text()


@pytest.mark.parametrize(
    ("reference", "failure"),
    [
        ("steps:raises", "steps:raises: ValueError: several lines \x1b[31m"),
        ("steps:leaves", "steps:leaves: SystemExit: 5"),
        ("steps:vanishes", "steps:vanishes gave no answer: it ended the process"),
        ("steps:wrong", "steps:wrong: TypeError: it returned a value of type int; return nothing, a Usage, or a mapping with"),
        ("steps:value", "steps:value cannot be loaded: TypeError: 'steps:value' is not a function"),
        ("steps:goot", "steps:goot cannot be loaded: AttributeError: module 'steps' has no 'goot' (did you mean 'good'?)"),
        ("stepz:good", "stepz:good cannot be loaded: ModuleNotFoundError: No module named 'stepz'"),
    ],
)
def test_a_function_that_fails_is_an_outcome(reference, failure, work, functions):
    step = context(work)
    outcome = PythonGenerator(reference, search=(functions,)).generate(step)
    assert outcome.failure is not None
    assert outcome.failure.startswith(failure)
    if "vanishes" not in reference:
        assert "Traceback" in log_of(step)


def test_a_function_that_hangs_is_ended_with_what_it_started(work, functions):
    nonce = secrets.token_hex(8)
    outcome = PythonGenerator("steps:hangs", search=(functions,), timeout=2.0).generate(context(work, nonce=nonce))
    assert (True, "timed out after 2 s") == (outcome.timed_out, outcome.failure)
    assert [] == carriers(nonce)


def test_a_candidate_cannot_shadow_the_standard_library_while_jumar_starts(work, functions):
    for name in ("json", "re", "dataclasses", "jumar"):
        (work / f"{name}.py").write_text("raise RuntimeError('shadowed')\n")
    assert None is PythonGenerator("steps:nothing", search=(functions,)).generate(context(work)).failure
