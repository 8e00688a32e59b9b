"""jumar where nobody watches: no terminal, no standard input, a workflow whose lines run as they are written."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml
from loops import calls, jumar, jumar_json, started_on_a_terminal, write_loop

from jumar.cli.loop.run import run_command

TOP = Path(__file__).parents[2]
PAGE, ACTION = TOP / "docs/how-to/ci.md", TOP / "action.yml"
ASKS = """
import os, sys
try:
    answer = open("/dev/tty").readline()
except OSError as error:
    answer = f"no terminal: {error.strerror}"
print("stdin", repr(sys.stdin.read()), "tty", answer)
open("score.txt", "w").write("0.9")
open("text.md", "w").write("pass 1")
"""


HANGS_ONCE = """
if value == "hang once":
    value = 0.1
    if not os.path.exists("{flag}"):
        open("{flag}", "w")
        time.sleep(600)
"""


# ------------------------------------------------------------------------------------------------------- nobody there


def on_a_terminal(directory: Path, *arguments: str) -> tuple[int, str]:
    """Run jumar on a terminal of its own where nobody types; return its exit code and what it showed."""
    process, ours = started_on_a_terminal(directory, *arguments)
    shown = b""
    with contextlib.suppress(OSError):  # what a terminal says when its other end is gone
        while select.select([ours], [], [], 60)[0] and (chunk := os.read(ours, 1 << 16)):
            shown += chunk
    os.close(ours)
    return process.wait(60), shown.decode()


@pytest.mark.parametrize("options", [(), ("--no-input",)], ids=["as it is", "no-input"])
def test_on_a_terminal_an_agent_that_wants_to_ask_gets_none(options: tuple[str, ...], fresh_place: Path):
    write_loop(fresh_place, [0.9])
    (fresh_place / "agent.py").write_text(ASKS)
    code, shown = on_a_terminal(fresh_place, "run", *options)
    assert 0 == code, shown
    log = next((fresh_place / ".jumar").rglob("generator.log")).read_text()
    assert "stdin '' tty no terminal: No such device or address" in log
    assert bool(options) == ("\x1b" not in shown)


COMMANDS = [
    ("run", "--no-input", "--json", "--resume", "auto"),
    ("run", "--new", "-n", "1", "--check", "true", "--", "true"),
    ("doctor", "--timeout", "20"),
    ("list",),
    ("show", "t"),
    ("report", "t"),
    ("diff", "t", "--best"),
    ("verify", "t"),
    ("apply", "t"),
    ("apply", "t", "--undo"),
    ("select", "t", "--use", "1", "--reason", "r"),
    ("cleanup", "t"),
    ("init", "somewhere"),
    ("topk", "select", "-"),
    ("topk", "compare", "-"),
    ("topk", "drift", "-"),
    ("evaluate", "-", "--mode", "cheap"),
    ("demo", "-n", "1"),
]


def test_no_command_waits_or_breaks_when_standard_input_is_closed(fresh_place: Path):
    write_loop(fresh_place, [0.9])
    shell = 'exec "$0" -m jumar.cli.entry "$@" <&-'
    for arguments in COMMANDS:
        done = subprocess.run(
            ["sh", "-c", shell, sys.executable, *arguments], capture_output=True, text=True, timeout=120, check=False
        )
        assert "Traceback" not in done.stderr, (arguments, done.stderr)
        assert done.returncode in {0, 1, 2}, (arguments, done)
        assert done.returncode != 1 or arguments[0] in {"evaluate", "doctor"}, (arguments, done)
    print(f"commands without standard input: {len(COMMANDS)}")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_whatever_is_closed_the_store_stays_whole(closed: str, fresh_place: Path):
    """A file of the store that is opened as number 1 or 2 would get what is printed."""
    write_loop(fresh_place, [0.6, 0.9])
    shell = f'exec "$0" -m jumar.cli.entry run {closed}'
    done = subprocess.run(["sh", "-c", shell, sys.executable], capture_output=True, text=True, timeout=60, check=False)
    assert 0 == done.returncode, done
    jumar(fresh_place, "verify", "t", check=0)
    assert 2 == json.loads(jumar(fresh_place, "list", "--json").stdout)["loops"][0]["chosen"]


def test_no_option_of_run_asks():
    assert [] == [each.name for each in run_command.params if getattr(each, "prompt", None) is not None]


# ----------------------------------------------------------------------------------------------------------- --resume


def test_resume_never_refuses_a_loop_that_is_there_and_require_one_that_is_not(fresh_place: Path):
    write_loop(fresh_place, [0.6, 0.7, 0.8])
    missing = jumar(fresh_place, "run", "--resume", "require", "--json", check=2)
    assert "loop 't' is not there" in json.loads(missing.stdout)["error"]["message"]
    assert not (fresh_place / ".jumar").exists(), "refused before anything is created"

    assert 1 == jumar_json(fresh_place, "run", "--resume", "never", "-n", "1")["selected_iteration"]
    refused = jumar(fresh_place, "run", "--resume", "never", "-n", "2", check=2)
    assert "loop 't' is there already" in refused.stderr
    assert "--new" in refused.stderr
    assert [1] == calls(fresh_place), "nothing was paid"

    assert 2 == jumar_json(fresh_place, "run", "--resume", "require", "-n", "2")["selected_iteration"]
    assert 3 == jumar_json(fresh_place, "run", "--resume", "auto", "-n", "3")["selected_iteration"]
    assert "t-2" == jumar_json(fresh_place, "run", "--resume", "never", "--new", "-n", "1")["loop_id"]
    both = jumar(fresh_place, "run", "--resume", "require", "--new", check=2)
    assert "--new starts a loop and --resume require resumes one" in both.stderr


def test_resume_of_a_command_without_a_configuration(fresh_place: Path):
    command = ("--", "sh", "-c", "echo x >> a.md")
    words = ("run", "-n", "2", "--check", "true", "--include", "*.md")
    refused = jumar(fresh_place, *words, "--resume", "require", *command, check=2)
    assert "no unfinished loop of this command is there" in refused.stderr
    assert 0 == jumar(fresh_place, *words, "--resume", "never", *command).returncode
    assert 0 == jumar(fresh_place, *words, "--resume", "never", *command).returncode, "a finished one is none to go on with"


# ------------------------------------------------------------------------------------------------------- the workflow


class Job:
    """A job that uses the action, in a runner of one's own: its shell lines run as they are, its actions are done by hand."""

    def __init__(self, place: Path, *, attempt: int, **given: str) -> None:
        action = yaml.safe_load(ACTION.read_text())
        self.steps = action["runs"]["steps"]
        declared = {name: str(each.get("default", "")) for name, each in action["inputs"].items()}
        assert given.keys() <= declared.keys()
        self.inputs = {**declared, "budget": "10", **given}
        self.place, self.attempt = place, attempt
        self.work, self.cache = place / "work", place / "cache"
        self.temporary = place / f"temp-{attempt}"
        self.temporary.mkdir()
        self.outputs: dict[str, str] = {}
        self.codes: dict[str, int] = {}

    @property
    def summary(self) -> str:
        return (self.temporary / "summary").read_text()

    @property
    def outcome(self) -> dict[str, Any]:
        return json.loads((self.temporary / "outcome.json").read_text())

    def check_out(self, remote: Path) -> None:
        """A fresh clone, at the same place each time, with the cache of the attempt before."""
        shutil.rmtree(self.work, ignore_errors=True)
        subprocess.run(["git", "clone", "--quiet", str(remote), str(self.work)], check=True)
        if self.cache.exists():
            shutil.copytree(self.cache, self.work / ".jumar", symlinks=True)

    def run(self, kill_at: int | None = None) -> None:
        """Run the steps as a runner does: after a failure only those that always run."""
        failed = False
        for step in self.steps:
            if not self.is_wanted(step.get("if", ""), failed=failed) or step["name"] == "install":
                continue
            if "cache/save" in step.get("uses", ""):
                shutil.rmtree(self.cache, ignore_errors=True)
                shutil.copytree(self.work / ".jumar", self.cache, symlinks=True)
            if "run" in step:
                self.codes[step["name"]] = self.shell(step, kill_at if step.get("id") == "run" else None)
                failed |= self.codes[step["name"]] != 0

    def is_wanted(self, condition: str, *, failed: bool) -> bool:
        """Work out a condition; one that is not known here is an error."""
        asks = self.inputs["pull-request"] == "true" and self.outputs.get("code") == "0"
        known = {
            "": not failed,
            "always()": True,
            "always() && steps.run.outputs.loop != ''": bool(self.outputs.get("loop")),
            "inputs.pull-request == 'true' && steps.run.outputs.code == '0'": not failed and asks,
        }
        return known[condition]

    def shell(self, step: Mapping[str, Any], kill_at: int | None) -> int:
        line = self.filled(step["run"])
        output = self.temporary / "output"
        output.touch()
        environment = {
            **{name: self.filled(str(value)) for name, value in step.get("env", {}).items()},
            "GITHUB_ACTION_PATH": str(TOP),
            "PATH": f"{self.place / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "RUNNER_TEMP": str(self.temporary),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(self.temporary / "summary"),
            "GITHUB_RUN_ID": "77",
            "CI": "true",
        }
        with (self.temporary / "log").open("a") as log:
            process = subprocess.Popen(
                ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", line],
                cwd=self.work,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        if kill_at is not None:
            while process.poll() is None and calls(self.work)[-1:] != [kill_at]:
                time.sleep(0.02)
            os.killpg(process.pid, signal.SIGTERM)
        code = process.wait(100)
        self.outputs |= dict(line.split("=", 1) for line in output.read_text().splitlines())
        return code

    def filled(self, text: str) -> str:
        """Put values in the place of the workflow's expressions; an unknown one is an error."""
        known = {
            "github.run_id": "77",
            "github.run_attempt": str(self.attempt),
            "github.token": "none",
            "runner.temp": str(self.temporary),
            **{f"steps.run.outputs.{name}": self.outputs.get(name, "") for name in ("code", "loop", "iteration", "score")},
            **{f"inputs.{name}": value for name, value in self.inputs.items()},
        }
        return re.sub(r"\$\{\{ *([\w.-]+) *\}\}", lambda match: known[match[1]], text)


def repository(place: Path, scores: list[float | str], extra: str) -> Path:
    """A remote with the loop of the workflow in it, and jumar on the path."""
    source, remote = place / "source", place / "remote.git"
    write_loop(source, scores, loop="", extra=f"{extra}\n[budget]\nreserve_cost_usd = 0.1")
    agent = source / "agent.py"
    pays = "import json\nopen(os.environ['JUMAR_USAGE_FILE'], 'w').write(json.dumps({'token_cost_usd': 0.5}))\n"
    agent.write_text(
        agent.read_text()
        .replace("import os, sys, time\n", "import os, sys, time\n" + pays)
        .replace('if value == "hang":', HANGS_ONCE.format(flag=place / "hung") + 'if value == "hang":')
    )
    (source / ".gitignore").write_text("calls.log\n.jumar/\n")
    identity = ["-c", "user.name=t", "-c", "user.email=t@t"]
    for words in (
        ["init", "-q"],
        ["add", "."],
        [*identity, "commit", "-qm", "start"],
        ["clone", "-q", "--bare", ".", str(remote)],
    ):
        subprocess.run(["git", *words], cwd=source, check=True)
    (place / "bin").mkdir()
    told = place / "bin/gh"
    told.write_text(f'#!/bin/sh\necho "$@" >> {place / "gh.log"}\ntest "$2" = create\n')
    told.chmod(0o755)
    program = place / "bin/jumar"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m jumar.cli.entry "$@"\n')
    program.chmod(0o755)
    return remote


def gate_of(job: Job) -> ET.Element:
    (gate,) = ET.parse(job.temporary / "jumar-report/junit.xml").getroot().iterfind(".//testcase[@name='gate']")
    return gate


DONE = {"run": 0, "report": 0, "pull request": 0, "gate": 0}


def test_a_job_whose_gate_is_met_is_green_and_opens_a_pull_request_with_the_best(tmp_path: Path):
    remote = repository(tmp_path, [0.6, 0.9, 0.7], "[selection]\nthreshold = 80")
    wanted = {"pull-request": "true"}
    job = Job(tmp_path, attempt=1, **wanted)
    job.check_out(remote)
    job.run()
    assert job.codes == DONE, (job.temporary / "log").read_text()
    assert (2, True) == (job.outcome["selected_iteration"], job.outcome["meets_threshold"])
    assert (job.outputs["loop"], job.outputs["iteration"], job.outputs["score"]) == ("t", "2", "90.0")
    assert ["system-out"] == [each.tag for each in gate_of(job)]
    assert "| 2" in job.summary
    assert "  bar [50, 60, 90, 70]\n  line [50, 60, 90, 90]\n" in job.summary
    show = ["git", "show", "jumar/77:text.md"]
    assert "pass 2\n" == subprocess.run(show, cwd=remote, check=True, capture_output=True, text=True).stdout
    asked = (tmp_path / "gh.log").read_text().splitlines()
    assert asked[-1].startswith("pr create --head jumar/77 --title jumar: iteration 2 of t, score 90.0 --body-file")

    again = Job(tmp_path, attempt=2, **wanted)
    again.check_out(remote)
    again.run()
    assert (True, True, 2) == tuple(again.outcome[key] for key in ("already_finished", "gate_met", "exit_code"))
    assert again.codes == DONE, (again.temporary / "log").read_text()
    assert "pass 2\n" == subprocess.run(show, cwd=remote, check=True, capture_output=True, text=True).stdout


def test_the_inputs_of_the_action_are_options_whatever_they_hold(tmp_path: Path):
    remote = repository(tmp_path, [0.6], "")
    agent = "echo made > made.txt; cat > /dev/null"
    hostile = 'a "quoted" $(touch owned) `touch owned` ${{ x }}'
    job = Job(
        tmp_path,
        attempt=1,
        agent=agent,
        prompt=hostile,
        checks="test -e made.txt\n\ntrue\n",
        reserve="1",
        **{"max-iterations": "1"},
    )
    job.check_out(remote)
    (job.work / "jumar.toml").unlink()
    job.run()
    said = json.loads((job.temporary / "jumar-report" / "loop.json").read_text())["config"]["run"]
    assert said["loop"]["objective"] == hostile
    assert [each["command"] for each in said["validators"]] == ["test -e made.txt", "true"]
    assert (said["loop"]["max_iterations"], said["budget"]["max_cost_usd"]) == (1, 10)
    assert not list(tmp_path.rglob("owned"))

    again = Job(tmp_path, attempt=2, **job.inputs)
    again.check_out(remote)
    (again.work / "jumar.toml").unlink()
    again.run()
    assert (job.outputs["loop"], True) == (again.outcome["loop_id"], again.outcome["already_finished"]), "nothing is paid again"


def test_a_job_whose_gate_is_missed_is_red_with_a_report(tmp_path: Path):
    remote = repository(tmp_path, [0.6, 0.7], "[selection]\nthreshold = 80")
    job = Job(tmp_path, attempt=1)
    job.check_out(remote)
    job.run()
    code = int(job.outputs["code"])
    assert code in {10, 11}
    assert {"run": 0, "report": 0, "gate": code} == job.codes, (job.temporary / "log").read_text()
    assert ["failure", "system-out"] == [each.tag for each in gate_of(job)]
    assert (job.temporary / "jumar-report/loop.html").stat().st_size > 10_000
    assert "70" in job.summary
    again = Job(tmp_path, attempt=2)
    again.check_out(remote)
    again.run()
    assert {"run": 0, "report": 0, "gate": 2} == again.codes, "an end below the gate is no success the second time"
    assert (
        ""
        == subprocess.run(["git", "branch", "--list", "jumar/*"], cwd=remote, check=True, capture_output=True, text=True).stdout
    )


def test_a_job_that_was_cancelled_goes_on_in_a_fresh_checkout_from_the_cache(tmp_path: Path):
    remote = repository(tmp_path, [0.6, "hang once", 0.9], "[selection]\nthreshold = 80")
    first = Job(tmp_path, attempt=1)
    first.check_out(remote)
    first.run(kill_at=2)
    assert 0 != first.codes["run"]
    assert "gate" not in first.codes

    again = Job(tmp_path, attempt=2)
    again.check_out(remote)
    again.run()
    assert (True, 3) == (again.outcome["resumed"], again.outcome["selected_iteration"]), again.outcome
    assert {"run": 0, "report": 0, "gate": 0} == again.codes
    assert [2, 3] == calls(again.work), "what was finished before is not paid for again"
    jumar(again.work, "verify", "t", check=0)


def test_what_is_not_known_of_a_run_is_an_empty_output(tmp_path: Path):
    (tmp_path / "outcome.json").write_text('{"error": {"exit_code": 2}}')
    script = TOP / "plugins/github-action/outcome.py"
    told = subprocess.run([sys.executable, script, "2", tmp_path / "outcome.json"], check=True, capture_output=True, text=True)
    assert "code=2\nloop=\niteration=\nscore=\n" == told.stdout


def test_the_lines_of_every_step_are_shell_and_every_option_of_jumar_exists():
    lines = [step["run"] for step in yaml.safe_load(ACTION.read_text())["runs"]["steps"] if "run" in step]
    assert len(lines) == 5
    assert not any("${{" in line for line in lines), "what somebody else wrote reaches no shell but in a variable"
    for line in lines:
        parsed = subprocess.run(["bash", "-n", "-c", line], capture_output=True, check=False)
        assert (0, b"") == (parsed.returncode, parsed.stderr)
    known = {name for parameter in run_command.params for name in parameter.opts}
    assert set(re.findall(r"(?<=\()--[a-z-]+|(?<=run )--[a-z-]+ --[a-z-]+", "\n".join(lines))) - known == {"--no-input --json"}


def test_the_documented_workflow_uses_the_action_as_it_is():
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (job,) = yaml.safe_load(text)["jobs"].values()
    (used,) = (step for step in job["steps"] if "jumar" in step.get("uses", ""))
    action = yaml.safe_load(ACTION.read_text())
    assert used["with"].keys() <= action["inputs"].keys()
    assert {name for name, each in action["inputs"].items() if each.get("required")} <= used["with"].keys()
