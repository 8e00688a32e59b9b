"""A loop begins only when it can work: what is refused before anything is created, and asserts that nothing was paid."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from loops import calls, jumar, jumar_json, started_on_a_terminal, write_loop

AGENT = """
import os
from pathlib import Path
with open("calls.log", "a") as log:
    log.write(os.environ["JUMAR_ITERATION"] + "\\n")
Path("text.md").write_text("pass " + os.environ["JUMAR_ITERATION"])
"""


def agent(place: Path, code: str = AGENT) -> list[str]:
    """Write a scripted agent that leaves a line in ``calls.log`` for each call; return its command."""
    (place / "agent.py").write_text(code)
    return [sys.executable, "agent.py"]


def installed(place: Path, *names: str) -> dict[str, str]:
    """Return an environment in which no program is on PATH but the system's and ``names``, which do nothing."""
    folder = place.parent / "bin"
    folder.mkdir()
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


# ------------------------------------------------------------------------------------------------------ it ends when it is done

SUITE = """
import pytest
from calc import failing
@pytest.mark.parametrize("number", range(12))
def test_number(number):
    assert number >= failing
"""


def suite(place: Path, start: int, after: Sequence[int]) -> list[str]:
    """Write a suite of 12 tests of which ``start`` fail, and an agent that leaves ``after[n - 1]`` failing in iteration n.

    Returns what follows ``jumar run``.
    """
    (place / "calc.py").write_text(f"failing = {start}\n")
    (place / "test_calc.py").write_text(SUITE)
    change = f"Path('calc.py').write_text(f'failing = {{{list(after)}[int(os.environ[\"JUMAR_ITERATION\"]) - 1]}}\\n')\n"
    command = agent(place, AGENT + change)
    check = f"{sys.executable} -m pytest -q -p no:cacheprovider"
    return ["-n", str(len(after)), "--include", "*.py", "--check", check, "--", *command]


def test_it_ends_at_the_first_iteration_at_which_every_check_passes(fresh_place: Path):
    done = jumar_json(fresh_place, "run", *suite(fresh_place, 9, [3, 0, 0, 0]))

    assert calls(fresh_place) == [1, 2]
    assert (done["stop_reason"], done["verified"], done["quality_score"]) == ("target", True, 100.0)
    assert done["stop_detail"] == "every check passes, and the score is 100 (iteration 2)"


def test_a_start_that_is_there_already_costs_nothing_and_says_what_would_help(fresh_place: Path):
    command = suite(fresh_place, 0, [0, 0])

    done = jumar(fresh_place, "run", *command, check=0)

    assert calls(fresh_place) == []
    for way_on in ("nothing is paid", "(--check)", "(--score)", "--keep-going: new features begin green"):
        assert way_on in " ".join(done.stdout.split())
    again = jumar_json(fresh_place, "run", *command)
    assert (again["stop_reason"], again["selected_iteration"], again["spend"]["iterations"]) == ("target", 0, 0)

    jumar(fresh_place, "run", "--keep-going", *command, check=0)
    assert calls(fresh_place) == [1, 2]


def test_a_loop_that_has_arrived_goes_on_when_it_is_told_to(fresh_place: Path):
    (fresh_place / "jumar.toml").write_text(
        f"[loop]\nid = 't'\nmax_iterations = 3\n[artifacts]\ninclude = ['text.md']\n"
        f"[generator]\ncommand = {json.dumps(agent(fresh_place))}\n"
        "[[checks]]\nname = 'there'\ncommand = 'grep -q pass text.md'\n"
    )
    assert jumar_json(fresh_place, "run")["stop_reason"] == "target"
    assert calls(fresh_place) == [1]
    refused = jumar(fresh_place, "run", check=2)
    assert "jumar run --keep-going" in refused.stdout
    assert "or resume it with --keep-going" in jumar(fresh_place, "run", "-q", check=2).stderr

    assert jumar_json(fresh_place, "run", "--keep-going")["stop_reason"] == "max_iterations"
    assert calls(fresh_place) == [1, 2, 3]


@pytest.mark.parametrize(
    ("scores", "options", "made"),
    [
        ([1.0, 1.0], [], 2),
        ([0.9, 0.95], ["--target", "90"], 1),
        ([0.9, 0.95], ["--target", "50"], 0),
        ([0.9, 0.95], ["--target", "50", "--threshold", "50"], 0),
        ([1.0, 0.9], ["--keep-going"], 2),
    ],
)
def test_scorers_of_ones_own_have_no_target_but_a_given_one(
    fresh_place: Path, scores: list[float], options: list[str], made: int
):
    write_loop(fresh_place, scores)

    done = jumar_json(fresh_place, "run", *options)

    assert len(calls(fresh_place)) == made
    assert done["stop_reason"] == ("max_iterations" if made == len(scores) else "target")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target", "80", "--threshold", "90"], "raise the target to 90, or lower the threshold"),
        (["--target", "80", "--keep-going"], "give one of them"),
        (["--target", "101"], "--target"),
    ],
)
def test_a_target_that_cannot_be_meant_is_refused(fresh_place: Path, options: list[str], message: str):
    refused = jumar(fresh_place, "run", *options, *suite(fresh_place, 3, [0]), check=2)

    assert message in " ".join(refused.stderr.split())
    assert calls(fresh_place) == []
    assert not (fresh_place / ".jumar").exists()


# --------------------------------------------------------------------------------------- a start that cannot be judged

PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider"


def with_check(place: Path, check: str) -> list[str]:
    """Return what follows ``jumar run``: a green suite is made in iteration 1, and ``check`` is the only check."""
    command = suite(place, 3, [0, 0])
    command[command.index("--check") + 1] = check
    return command


@pytest.mark.parametrize(
    ("check", "shown", "fix"),
    [
        ("no-such-check -q", "exit code 127", "install no-such-check"),
        (f"{sys.executable} -m no_such_module -q", "has no module no_such_module", "pip install no_such_module"),
        (f"{sys.executable} no_such_check.py", "no_such_check.py cannot be opened", "as seen from the working directory"),
        ("./test_calc.py", "exit code 126", "run its command by hand"),
        (f"{PYTEST} no_such_test.py", "a usage error (exit code 4)", "as it says"),
        (f"{PYTEST} --no-such-option", "unrecognized arguments: --no-such-option", "as it says"),
        ("kill -SEGV $$", "killed by SIGSEGV", "run its command by hand"),
        ("sh -c 'kill -9 $$'; exit 137", "exit code 137 (128 + SIGKILL)", "run its command by hand"),
        ("echo 'Error: no test specified'; exit 1", "`npm init`", "package.json"),
        ("make -f /dev/null test", "there is no target test", "name one that is there"),
    ],
)
def test_a_check_that_cannot_begin_ends_the_run_before_an_iteration_is_paid_for(
    fresh_place: Path, check: str, shown: str, fix: str
):
    command = with_check(fresh_place, check)

    refused = jumar(fresh_place, "run", *command, check=2)

    assert calls(fresh_place) == []
    assert "the start cannot be judged, so no iteration is paid for" in refused.stderr
    assert shown in refused.stderr
    assert fix in refused.stderr.partition("to mend it: ")[2]
    assert "--allow-broken-start" in refused.stderr
    document = json.loads(jumar(fresh_place, "run", "--json", *command, check=2).stdout)
    assert document["error"]["kind"] == "BrokenStartError"

    jumar(fresh_place, "run", "--allow-broken-start", *command)
    assert calls(fresh_place) == [1, 2]


@pytest.mark.parametrize(
    ("check", "code"),
    [
        (PYTEST, 1),
        (f"echo 'import nothing_like_it' > test_calc.py; {PYTEST} --import-mode=importlib", 2),
        (f"rm -f test_calc.py; {PYTEST}", 5),
        ("exit 1", 1),
        ("echo 'ValueError: user: not found'; exit 1", 1),
        (f"{sys.executable} -c 'import no_such_module'", 1),
        ("exit 4", 4),
    ],
)
def test_a_check_that_fails_is_a_normal_start(fresh_place: Path, check: str, code: int):
    done = jumar(fresh_place, "run", "--id", "t", "--new", *with_check(fresh_place, check))

    assert done.returncode != 2, done.stderr
    assert calls(fresh_place)[:1] == [1]
    assert jumar_json(fresh_place, "show", "t")["iterations"][0]["checks"][0]["exit_code"] == code


@pytest.mark.parametrize(
    ("scorer", "shown"),
    [
        ("no-such-scorer", "no-such-scorer: not found"),
        ("echo two", "gives no usable number"),
        ("echo first >&2; echo last words >&2; exit 3", "  | first\n  | last words"),
        ("sleep 60", "timed out after 0.5 s"),
    ],
)
def test_a_scorer_without_a_number_is_a_broken_start(fresh_place: Path, scorer: str, shown: str):
    config = write_loop(fresh_place, [0.6, 0.7])
    told = config.read_text().replace('command = "cat score.txt"', f"command = {json.dumps(scorer)}\ntimeout = 0.5")
    config.write_text(told + "[retry]\nbroken = 0\n")

    refused = jumar(fresh_place, "run", check=2)

    assert calls(fresh_place) == []
    assert "scorer 'quality'" in refused.stderr
    assert shown in refused.stderr
    jumar(fresh_place, "run", "--allow-broken-start", check=12)
    assert calls(fresh_place) == [1, 2]


def test_where_a_check_cannot_begin_no_judge_is_asked(fresh_place: Path):
    config = write_loop(fresh_place, [0.6], check="no-such-check")
    config.write_text(config.read_text().replace("cat score.txt", "touch asked; cat score.txt"))

    jumar(fresh_place, "run", check=2)

    assert not (fresh_place / "asked").exists()


def killed_after_the_evaluation(place: Path, *arguments: str) -> None:
    """Run until the start was found to be broken, and end by SIGKILL at that point."""
    code = (
        "import os, signal, sys\n"
        "import jumar.loop.engine.evaluation as evaluation\n"
        "evaluation.refuse_broken_start = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "from jumar.cli.application import run_application\n"
        "run_application(sys.argv[1:])\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=place, capture_output=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("isolation", "change", "killed"),
    [
        ("none", "tree", False),
        ("none", "tree", True),
        ("none", "configuration", True),
        ("copy", "tree", True),
        ("copy", "configuration", False),
    ],
)
def test_after_mending_the_same_command_judges_the_start_anew(fresh_place: Path, isolation: str, change: str, *, killed: bool):
    script = fresh_place / "score.py"
    script.write_text("import sys\nsys.exit('not yet')\n")
    config = write_loop(fresh_place, [0.6, 0.7], loop=f"isolation = '{isolation}'\nprotect = ['score.py']")
    wanted = f"{sys.executable} score.py" if change == "tree" else "no-such-scorer"
    text = config.read_text().replace('include = ["score.txt"', 'include = ["score.py", "score.txt"')
    config.write_text(text.replace("cat score.txt", wanted))
    if killed:
        killed_after_the_evaluation(fresh_place, "run")
    else:
        jumar(fresh_place, "run", check=2)

    if change == "tree":
        script.write_text("print(open('score.txt').read())\n")
    else:
        config.write_text(text)
    done = jumar_json(fresh_place, "run")

    assert (done["loop_id"], done["final_iteration"], done["quality_score"]) == ("t", 2, 70.0)
    assert done["resumed"] is False
    assert done["failures"] == {}
    shown = jumar_json(fresh_place, "show", "t")
    assert [record["quality_score"] for record in shown["iterations"]] == [50.0, 60.0, 70.0]
    assert "score.py" not in jumar(fresh_place, "verify", "t", check=0).stdout
    assert os.listdir(fresh_place / ".jumar/loops") == ["t"]


@pytest.mark.parametrize("options", [[], ["--new"], ["--resume", "never"]])
def test_a_command_line_that_was_mended_leaves_no_loop_behind(fresh_place: Path, options: list[str]):
    jumar(fresh_place, "run", *with_check(fresh_place, "no-such-check"), check=2)
    jumar(fresh_place, "run", *with_check(fresh_place, f"{PYTEST} -x-y"), check=2)

    done = jumar_json(fresh_place, "run", *options, *with_check(fresh_place, PYTEST))

    assert (done["stop_reason"], done["spend"]["iterations"]) == ("target", 1)
    assert len(jumar_json(fresh_place, "list")["loops"]) == 1


def test_what_a_judge_was_paid_for_a_start_stays_charged(fresh_place: Path):
    config = write_loop(fresh_place, [0.6])
    (fresh_place / "items.jsonl").write_text('{"id": "a", "text": "one"}\n')
    judge = 'import json, sys\njson.load(sys.stdin)\nprint(json.dumps({"score": 4, "usage": {"cost_usd": 0.5}}))\n'
    (fresh_place / "judge.py").write_text(judge)
    judged = '[[scorers]]\nbuiltin = "judge"\nmode = "expensive"\nitems = "items.jsonl"\njudge = "command:PYTHON judge.py"\n'
    judged = judged.replace("PYTHON", sys.executable)
    mended = config.read_text().replace("[[scorers]]", f"{judged}[[scorers]]")
    config.write_text(mended.replace("cat score.txt", "no-such-scorer"))
    jumar(fresh_place, "run", check=2)

    config.write_text(mended)
    done = jumar_json(fresh_place, "run", "-n", "1")

    assert done["final_iteration"] == 1
    assert done["spend"]["known_cost_usd"] >= 0.5


# ------------------------------------------------------------------------------------------------- the directory is large


def sparse(path: Path, size: int) -> Path:
    """Make a file that says it has so many bytes."""
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size)
    return path


def answered(place: Path, answer: str, *arguments: str) -> tuple[int, str]:
    """Run jumar on a terminal where a person gives ``answer`` to the question; return the exit code and what was shown."""
    process, ours = started_on_a_terminal(place, *arguments)
    shown, said = b"", False
    with contextlib.suppress(OSError):  # what a terminal says when its other end is gone
        while select.select([ours], [], [], 60)[0] and (chunk := os.read(ours, 1 << 16)):
            shown += chunk
            if not said and b"[y/N]" in shown:
                said = True
                os.write(ours, answer.encode())
    os.close(ours)
    assert said, shown.decode()
    return process.wait(60), shown.decode()


BIG = ("run", "-n", "1", "--exclude", "calls.log", "--check", "test -e text.md", "--")


@pytest.mark.parametrize("options", [(), ("--no-input",), ("--json",), ("--quiet",)])
def test_a_directory_of_over_1_gb_is_refused_where_nobody_can_answer(fresh_place: Path, options: tuple[str, ...]):
    sparse(fresh_place / "data/set.bin", 1_100_000_000)

    refused = jumar(fresh_place, "run", *options, *BIG[1:], *agent(fresh_place), check=2)

    assert "2 files, 1.1 GB would be kept" in refused.stderr
    assert "1.1 GB         1 file  data/" in refused.stderr
    assert '[artifacts] exclude = ["data/"], or --exclude data/' in refused.stderr
    assert "--accept-size" in refused.stderr
    assert calls(fresh_place) == []
    assert not (fresh_place / ".jumar").exists()

    jumar(fresh_place, "run", "--exclude", "data/", *options, *BIG[1:], *agent(fresh_place), check=0)
    assert calls(fresh_place) == [1]


@pytest.mark.parametrize("answer", ["n\n", "\n", "y\n"])
def test_on_a_terminal_a_person_is_asked(fresh_place: Path, answer: str):
    sparse(fresh_place / "data/set.bin", 100_000_001)

    code, shown = answered(fresh_place, answer, *BIG, *agent(fresh_place))

    assert "100.0 MB         1 file  data/" in shown
    assert (calls(fresh_place), code) == (([1], 0) if answer == "y\n" else ([], 2)), shown
    assert (fresh_place / ".jumar").exists() == (answer == "y\n")


def test_without_a_person_no_input_refuses_also_on_a_terminal(fresh_place: Path):
    sparse(fresh_place / "data/set.bin", 1_100_000_000)
    process, ours = started_on_a_terminal(fresh_place, "run", "--no-input", *BIG[1:], *agent(fresh_place))
    try:
        assert process.wait(60) == 2
    finally:
        os.close(ours)
    assert calls(fresh_place) == []


def test_what_was_accepted_holds_on_a_resume_and_has_its_own_limit(fresh_place: Path):
    sparse(fresh_place / "data/set.bin", 100_000_001)
    grow = "import os\nif os.environ['JUMAR_ITERATION'] == '3':\n    os.truncate('data/set.bin', 200_000_003)\n"
    (fresh_place / "agent.py").write_text(AGENT + grow)
    run = ("run", "--id", "t", "--keep-going", *BIG[3:], sys.executable, "agent.py")
    jumar(fresh_place, *run[:1], "-n", "1", "--accept-size", *run[1:], check=0)

    jumar(fresh_place, *run[:1], "-n", "2", *run[1:], check=0)
    over = jumar(fresh_place, *run[:1], "-n", "3", *run[1:], check=0)

    assert calls(fresh_place) == [1, 2, 3]
    assert "200.0 MB a file" in over.stdout
    assert "snapshot failed" in over.stdout


# ------------------------------------------------------------------------------------------------- the agent is not there


@pytest.mark.parametrize(
    "command",
    [
        ["no-such-agent", "-p", "do it"],
        ["timeout", "60", "no-such-agent", "-p", "do it"],
        ["./no-such-agent"],
    ],
)
def test_an_agent_that_is_not_installed_is_refused_before_anything_is_created(fresh_place: Path, command: list[str]):
    run = ("run", "-n", "1", "--check", "false", "--", *command)
    refused = jumar(fresh_place, *run, env=installed(fresh_place, "codex"), check=2)

    assert "no-such-agent' " in refused.stderr
    assert "or name another with --agent; on this machine there is: codex" in refused.stderr
    assert os.listdir(fresh_place) == []


@pytest.mark.parametrize(
    "line", ["no-such-agent -p \"$(cat text.md)\" && echo 'done || not'", "cd . && KEY=1 no-such-agent", "exec no-such-agent"]
)
def test_so_is_the_first_program_of_a_line_for_the_shell(fresh_place: Path, line: str):
    config = write_loop(fresh_place, [0.6])
    own = f'[{json.dumps(sys.executable)}, "agent.py"]'
    config.write_text(config.read_text().replace(own, json.dumps(line)))

    refused = jumar(fresh_place, "run", check=2, env=installed(fresh_place))

    assert "'no-such-agent' is not installed" in refused.stderr
    assert "edit `command` in [generator]; none of the agents that jumar knows is installed here (claude, codex" in refused.stderr
    assert not (fresh_place / ".jumar").exists()


@pytest.mark.parametrize("line", ["no-such-agent || python3 agent.py", "PATH=/opt/x:$PATH no-such-agent || exit 3"])
def test_a_line_of_which_only_the_shell_can_tell_is_run(fresh_place: Path, line: str):
    config = write_loop(fresh_place, [0.6])
    own = f'[{json.dumps(sys.executable)}, "agent.py"]'
    config.write_text(config.read_text().replace(own, json.dumps(line)))

    assert jumar_json(fresh_place, "run", check=0)["spend"]["iterations"] == 1


# -------------------------------------------------------------------------------------------------- nobody knows its cost


def test_a_limit_in_dollars_is_refused_where_nobody_can_know_what_an_iteration_costs(fresh_place: Path):
    run = ("run", "-n", "2", "--max-cost", "1", "--exclude", "calls.log", "--check", "grep -q 'pass 2' text.md", "--")
    refused = jumar(fresh_place, *run, *agent(fresh_place), check=2)

    assert "a limit of $1.00 cannot be kept: nothing says beforehand what an iteration costs" in refused.stderr
    for way_out in ("--reserve-cost USD", "--agent NAME", "[generator] usage"):
        assert way_out in refused.stderr
    assert calls(fresh_place) == []
    assert not (fresh_place / ".jumar").exists()

    kept = jumar_json(fresh_place, *run[:-1], "--reserve-cost", "0.6", "--", *agent(fresh_place), check=11)
    assert (kept["stop_reason"], kept["spend"]["assumed_cost_usd"]) == ("max_cost", 0.6)
    assert calls(fresh_place) == [1]


@pytest.mark.parametrize(
    ("more", "known"),
    [
        ('usage = {cost = "total"}', True),
        ('usage = {tokens = "used"}', False),
        ('usage = {input = "in", output = "out"}\n[budget]\nmodel = "gpt-5"', True),
        ('usage = {input = "in", output = "out"}', False),
        ('usage = {input = "in", output = "out", model = "m"}', True),
        ("[budget]\nprice.mine = {input = 1, output = 2}", True),
        ('[budget]\non_unknown_cost = "allow"', True),
        ('[budget]\non_unknown_cost = "stop"', True),
        ("[budget]\nmax_tokens = 100", False),
    ],
)
def test_a_configuration_that_says_where_the_cost_stands_is_not_refused(fresh_place: Path, more: str, known: bool):
    write_loop(fresh_place, [0.6], generator=more)

    done = jumar(fresh_place, "run", "--max-cost", "5")

    assert (done.returncode == 2) != known, done.stderr
    assert ("cannot be kept" in done.stderr) != known
    assert len(calls(fresh_place)) == known


def test_what_an_earlier_loop_was_told_counts(fresh_place: Path):
    report = "Path(os.environ['JUMAR_USAGE_FILE']).write_text('{\"token_cost_usd\": 0.25}')\n"
    command = agent(fresh_place, AGENT + report)
    run = ("run", "-n", "1", "--check", "grep -q nothing text.md", "--new")
    jumar(fresh_place, *run, "--", *command, check=10)

    again = jumar_json(fresh_place, *run, "--max-cost", "5", "--", *command, check=10)

    assert again["spend"]["cost_usd"] == 0.25


def test_doctor_says_the_same_in_a_red_row(fresh_place: Path):
    write_loop(fresh_place, [0.6], extra="[budget]\nmax_cost_usd = 2\n")

    rows = {row["name"]: row for row in jumar_json(fresh_place, "doctor", "--no-run", check=1)["rows"]}

    assert rows["budget"]["state"] == "red"
    assert "a limit of $2.00 cannot be kept" in rows["budget"]["detail"]
    assert "--reserve-cost" in rows["budget"]["fix"]
