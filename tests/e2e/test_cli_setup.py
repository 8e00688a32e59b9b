"""A new user's first minutes: init, doctor, completion; every template runs once its agent is named."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import CONTROL, call, call_json
from loops import jumar, write_loop

from jumar.app.agents import agent_blocks
from jumar.app.config.cases import CasesConfig, load_cases_config
from jumar.app.config.config import JumarConfig, load_config
from jumar.app.init import AGENT, SAMPLES, TEMPLATES, template_text
from jumar.cli.init import NAMES
from jumar.core.lock import LoopLock

# What stands for the agent: it does what the template's objective says, a bit more each iteration.
AGENTS = {
    "document": r"""
import os
n = int(os.environ["JUMAR_ITERATION"])
if os.environ["JUMAR_LOOP_ID"] != "doctor":
    assert "draft.md" in open(os.environ["JUMAR_PROMPT_FILE"]).read()
text = open("draft.md").read().replace(" TODO: say what it costs.", "")
if n == 1:
    text += "\n## Risks\n\nThe offer ends in May. " + "The old printer may fail earlier, and then people walk further. " * 8
if n == 2:
    text = "# nothing\n"
open("draft.md", "w").write(text)
""",
    "coding-agent": r"""
import os
n = int(os.environ["JUMAR_ITERATION"])
open("code.py", "w").write("def double(x):\n    return x * 2\n" if n == 2 else "def double(x):\n    return x\n")
""",
    "prompt": r"""
import os
n = int(os.environ["JUMAR_ITERATION"])
lines = ["Write for a colleague, in three sentences of plain text.", "Keep all numbers; never add anything.", "---"]
open("prompt.txt", "w").write("\n".join(["Summarise this text.", *lines[:n], "{input}"]) + "\n")
""",
}
CHOSEN = {"document": 1, "coding-agent": 2, "prompt": 3}


def write_template(place: Path, name: str) -> Path:
    """Do what the template says: write it, put an agent into the one line that names it."""
    call("init", "--template", name, place, check=0)
    (place / "agent.py").write_text(AGENTS[name])
    config = place / "jumar.toml"
    lines = config.read_text().splitlines()
    assert [TEMPLATES[name].agent_line()] == [
        number for number, line in enumerate(lines, 1) if line.startswith(f"command = '{AGENT}")
    ]
    lines[TEMPLATES[name].agent_line() - 1] = f"command = '{shlex.quote(sys.executable)} agent.py'"
    config.write_text("\n".join(lines) + "\n")
    return config


# ---------------------------------------------------------------------------------------------------------------- init


def test_the_templates_are_those_that_the_option_offers():
    assert (*TEMPLATES, *SAMPLES) == NAMES
    shipped = Path(sys.modules["jumar.app.init"].__file__ or "").with_name("templates")
    used = {source for template in TEMPLATES.values() for source in (template.source, *(pair[1] for pair in template.companions))}
    assert used | {"agents.md"} == {path.name for path in shipped.iterdir()}


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_is_short_commented_and_valid(name: str, tmp_path: Path):
    text = template_text(TEMPLATES[name].source)
    lines = text.splitlines()
    assert len(lines) - (len(agent_blocks().splitlines()) if name == "coding-agent" else 0) <= 80
    assert max(map(len, lines)) <= 130
    path = tmp_path / TEMPLATES[name].target
    path.write_text(text)
    assert isinstance(load_template(name, path), JumarConfig | CasesConfig)


def load_template(name: str, path: Path) -> JumarConfig | CasesConfig:
    return load_cases_config(path) if name == "cases" else load_config(path)


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_line_that_a_template_offers_is_valid_too(name: str, tmp_path: Path):
    """Take the # off each offered line in turn; the file stays a valid configuration."""
    lines = template_text(TEMPLATES[name].source).splitlines()
    tried = 0
    table = ""
    for number, line in enumerate(lines):
        bare = line.removeprefix("# ") if line.startswith("# ") else ""
        if line.startswith("[") or bare.startswith("["):
            table = (bare or line).partition("]")[0].strip("[]")
        key = bare.partition(" = ")[0]
        if (
            " = " not in bare
            or not key.isidentifier()
            or bare.startswith("command")
            or table in {"scorers", "checks", "artifacts"}
        ):
            continue
        changed = [*lines[:number], bare, *lines[number + 1 :]]
        if key == "objective_file":
            changed = [each for each in changed if not each.startswith("Make all tests")]
            changed = "\n".join(changed).replace('objective = """\n"""', "").split("\n")
        if key == "base":
            changed = [each for each in changed if not each.startswith("from_scratch")]
        if key == "order":
            changed = [each for each in changed if not each.startswith('order = "')]
        path = tmp_path / f"{number}.toml"
        path.write_text("\n".join(changed))
        load_template(name, path)
        tried += 1
    print(f"{name}: lines tried: {tried}")
    assert tried >= 5


@pytest.mark.parametrize("name", CHOSEN)
def test_a_template_runs_as_written_once_its_agent_is_named(name: str, fresh_place: Path):
    config = write_template(fresh_place, name)
    if name == "coding-agent":
        (fresh_place / "test_code.py").write_text("from code import double\n\ndef test_double():\n    assert 6 == double(3)\n")
        (fresh_place / "code.py").write_text("")
        config.write_text(
            config.read_text().replace("python3 -m pytest -q", f"{sys.executable} -m pytest -q -p no:cacheprovider")
        )
    rows = {row["name"]: row for row in call_json("doctor")["rows"]}
    assert [] == [row for row in rows.values() if row["state"] == "red"]
    outcome = json.loads(jumar(fresh_place, "run", "--json", timeout=200).stdout)
    assert CHOSEN[name] == outcome["selected_iteration"], outcome
    assert outcome["verified"]
    assert name == outcome["loop_id"]


def test_the_template_of_cases_runs_dry_as_written_and_really_once_its_programs_are_named(fresh_place: Path):
    call("init", "--template", "cases", check=0)
    found = json.loads(jumar(fresh_place, "cases", "run", "--dry-run", "--dry-run-stop-iter", "3", "--json", check=0).stdout)
    assert [3, 3] == [case["best_iter"] for case in found["cases"]]

    names = ("Root Cause Accuracy", "Causal Chain Completeness")
    judged = {"composite_score": 9, "dimensions": [{"name": name, "score": 9} for name in names]}
    (fresh_place / "judged.json").write_text(json.dumps(judged))
    config = fresh_place / "cases.toml"
    programs = iter(
        (
            'command = "echo {} > $JUMAR_OUT_CKG; echo {} > $JUMAR_OUT_CKG_DIFF"',
            'command = "echo found > $JUMAR_OUT_AGENT_REPORT"',
            'command = ["cp", "judged.json", "{out.judge}"]',
        )
    )
    lines = [next(programs) if line.startswith("command = ") else line for line in config.read_text().splitlines()]
    config.write_text("\n".join(lines))
    found = json.loads(jumar(fresh_place, "cases", "run", "--json", check=0).stdout)
    assert [(1, "thresholds")] * 2 == [(case["best_iter"], case["stopped_by"]) for case in found["cases"]]


def test_init_never_overwrites_without_force(fresh_place: Path):
    (fresh_place / "jumar.toml").write_text("mine")
    (fresh_place / "draft.md").write_text("my draft")
    assert "--force" in call("init", check=2).err
    assert "mine" == (fresh_place / "jumar.toml").read_text()
    document = call_json("init", "--force")
    assert [str(fresh_place / "jumar.toml")] == document["written"]
    assert template_text("document.toml") == (fresh_place / "jumar.toml").read_text()
    assert "my draft" == (fresh_place / "draft.md").read_text()


def test_init_says_which_line_to_edit(fresh_place: Path):
    shown = call("init", "--template", "prompt", "new/place", check=0).out
    config = fresh_place / "new/place/jumar.toml"
    number = call_json("init", "--template", "prompt", "other")["agent_line"]
    assert f"edit line {number} of new/place/jumar.toml" in shown
    assert AGENT in config.read_text().splitlines()[number - 1]
    assert "jumar doctor new/place/jumar.toml" in shown
    assert "" == call("init", "-q", "third", check=0).out


@pytest.mark.parametrize("name", SAMPLES)
def test_sample_data_is_written_with_commands_that_work_as_they_stand(name: str, fresh_place: Path):
    shown = call("init", "--template", name, "new place", check=0).out
    place = fresh_place / "new place"
    assert "1. cd 'new place'\n2. jumar " in shown
    made = {path.name: path.read_text() for path in place.iterdir()}
    assert made == dict(SAMPLES[name].files()), "the same every time"
    assert sum(map(len, made.values())) < 40_000
    assert [json.loads(line) for text in made.values() for line in text.splitlines()]
    steps = [] if name == "learn" else SAMPLES[name].next_steps  # the page on learning is run in a test
    for command, _ in steps:
        done = jumar(place, *shlex.split(command)[1:], timeout=200)
        assert (0, "") == (done.returncode, done.stderr), command


def test_sample_data_leaves_the_files_of_a_person_alone(fresh_place: Path):
    (fresh_place / "judged.jsonl").write_text("mine")
    for force in ((), ("--force",)):
        assert "judged.jsonl exists and is left alone" in call("init", "-t", "judge", *force, check=2).err
    assert ["judged.jsonl"] == [path.name for path in fresh_place.iterdir()]
    (fresh_place / "judged.jsonl").unlink()
    document = call_json("init", "-t", "judge")
    assert [str(fresh_place / name) for name in ("answers.jsonl", "judged.jsonl")] == document["written"]
    assert document == call_json("init", "-t", "judge"), "what is there already as it should be is no reason to refuse"


def test_init_where_nothing_can_be_written_is_a_message(fresh_place: Path):
    (fresh_place / "file").write_text("")
    called = call("init", "file/below", check=1)
    assert "Traceback" not in called.err
    assert "file/below" in called.err


# -------------------------------------------------------------------------------------------------------------- doctor


def rows(*arguments: object, check: int) -> dict[str, dict[str, str]]:
    found = call_json("doctor", *arguments, check=check)
    assert found["ok"] == (check == 0)
    assert all(row["fix"] for row in found["rows"] if row["state"] != "green")
    return {row["name"]: row for row in found["rows"]}


def states(found: dict[str, dict[str, str]]) -> dict[str, str]:
    return {name: row["state"] for name, row in found.items()}


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() if path.is_file() else b"" for path in directory.rglob("*")}


def agent(place: Path, script: str, **options: str) -> Path:
    config = write_loop(place, [0.6], generator="\n".join(f"{key} = {value}" for key, value in options.items()))
    (place / "agent.py").write_text(script)
    return config


def test_doctor_is_green_on_a_loop_that_works_and_changes_nothing(fresh_place: Path):
    write_loop(fresh_place, [0.6])
    before = contents(fresh_place)
    found = rows(check=0)
    expected = [
        *(
            "python",
            "root",
            "hard links",
            "locks",
            "renames",
            "git",
            "terminal",
            "configuration",
            "budget",
            "lock",
            "disk space",
            "snapshot",
        ),
        *("generator", "check: text", "scorer: quality", "start state", "generator run", "usage"),
    ]
    assert expected == list(found)
    assert {"budget": "yellow", "usage": "yellow"} == {name: state for name, state in states(found).items() if state != "green"}
    assert "2 files" in found["snapshot"]["detail"]
    assert "scores 50, verification passed" == found["start state"]["detail"]
    assert before == contents(fresh_place), "the agent was to change a copy"


def test_doctor_without_a_configuration_checks_the_machine(fresh_place: Path):
    found = rows(check=0)
    assert "yellow" == found["configuration"]["state"]
    assert "jumar init" in found["configuration"]["fix"]
    assert "scorer: quality" not in found
    assert [] == list(fresh_place.iterdir())


@pytest.mark.parametrize(
    ("check", "state", "detail"),
    [
        (f"{sys.executable} -m no_such_module -q", "red", "has no module no_such_module"),
        (f"{sys.executable} no_such_check.py", "red", "no_such_check.py cannot be opened"),
        ("sh no_such_check.sh", "red", "no_such_check.sh"),
        ("no-such-command -q", "red", "was not found"),
        ("no-such-command -q || exit 1", "red", "no-such-command was not found"),
        (f"{sys.executable} -c 'import no_such_module'", "yellow", "finds no module no_such_module"),
        ("echo red; exit 1", "green", "is red on the start state (exit code 1: red)"),
        ("sh ../outside.sh", "yellow", "outside.sh"),
    ],
)
def test_doctor_tells_a_check_that_is_red_from_one_that_cannot_begin(fresh_place: Path, check: str, state: str, detail: str):
    (fresh_place.parent / "outside.sh").write_text("exit 0\n")
    write_loop(fresh_place, [0.6], check=check)
    row = rows("--no-run", check=1 if state == "red" else 0)["check: text"]
    assert (state, True) == (row["state"], detail in row["detail"]), row
    assert ("leads elsewhere from the copy" in row["fix"]) == ("outside" in check)


def test_doctor_finds_nothing_red_where_only_the_copy_lacks_a_scorer(fresh_place: Path):
    (fresh_place.parent / "score.sh").write_text("cat score.txt\n")
    write_loop(fresh_place, [0.6])
    config = fresh_place / "jumar.toml"
    config.write_text(config.read_text().replace('"cat score.txt"', '"sh ../score.sh"'))
    found = rows("--no-run", check=0)
    assert ("yellow", "yellow") == (found["scorer: quality"]["state"], found["start state"]["state"])
    assert "what a run finds and the copy that is tried here lacks" in found["start state"]["fix"]


@pytest.mark.parametrize("loop", ['isolation = "copy"', "candidates = 2"])
def test_doctor_knows_that_passes_in_trees_of_their_own_do_not_find_it_either(fresh_place: Path, loop: str):
    (fresh_place.parent / "outside.sh").write_text("exit 0\n")
    write_loop(fresh_place, [0.6], check="sh ../outside.sh", loop=loop)
    row = rows("--no-run", check=1)["check: text"]
    assert ("red", True) == (row["state"], "leads elsewhere from the trees below .jumar/work" in row["fix"]), row


@pytest.mark.parametrize(
    ("place", "loop", "state"),
    [
        (".", 'isolation = "none"', "green"),
        (".", 'isolation = "copy"', "red"),
        (".", 'isolation = "worktree"', "red"),
        (".", "candidates = 2", "red"),
        ("part", 'isolation = "copy"', "red"),
        ("part", 'isolation = "worktree"', "green"),  # the worktree is one of the whole repository
    ],
)
def test_an_agent_beside_the_tree_is_refused_where_passes_do_not_find_it(
    fresh_place: Path, monkeypatch: pytest.MonkeyPatch, place: str, loop: str, state: str
):
    subprocess.run(["git", "init", "-q"], cwd=fresh_place, check=True)
    where = fresh_place / place
    write_loop(where, [0.6], loop=loop)
    config = where / "jumar.toml"
    config.write_text(re.sub(r"(?m)^command = .*agent.py.*$", 'command = ["../agent.sh"]', config.read_text()))
    (where.parent / "agent.sh").write_text("#!/bin/sh\n")
    (where.parent / "agent.sh").chmod(0o755)
    monkeypatch.chdir(where)
    (row,) = [one for one in call("doctor", "--json", "--no-run").document["rows"] if one["name"] == "generator"]
    assert state == row["state"], row
    if state == "red":
        refused = call("run", check=2)
        assert "give its absolute path" in refused.err
        assert not (where / ".jumar/loops").exists(), "nothing is begun"


@pytest.mark.parametrize(
    ("extra", "state", "detail"),
    [
        ('[hooks]\npython = ["mine:hear"]', "green", "can be loaded: mine:hear"),
        ('[hooks]\npython = ["mine:her"]', "red", "mine:her"),
        ('[hooks]\npython = ["no_such_module:hear"]', "red", "no_such_module"),
    ],
)
def test_doctor_loads_what_hears_the_loop(fresh_place: Path, extra: str, state: str, detail: str):
    (fresh_place / "mine.py").write_text("def hear(event):\n    pass\n")
    write_loop(fresh_place, [0.6], extra=extra)
    row = rows("--no-run", check=1 if state == "red" else 0)["hooks"]
    assert (state, True) == (row["state"], detail in row["detail"]), row


def test_doctor_warns_of_a_loop_without_limits_and_of_tests_without_a_guard(fresh_place: Path):
    write_loop(fresh_place, [0.6], check=f"{sys.executable} -m pytest --version")
    found = rows("--no-run", check=0)
    assert "no limit on money, tokens or time; only max_iterations ends it: 1 iterations" in found["budget"]["detail"]
    assert "runs pytest" in found["protect"]["detail"]
    write_loop(fresh_place, [0.6], check="pytest --version", loop='protect = ["tests/**"]', extra="[budget]\nmax_seconds = 60")
    assert "'tests/**' names no file" in rows("--no-run", check=0)["protect"]["detail"]
    (fresh_place / "tests").mkdir()
    (fresh_place / "tests/test_it.py").write_text("")
    assert {"budget", "protect"}.isdisjoint(rows("--no-run", check=0))


def test_doctor_without_run_leaves_the_agent_alone(fresh_place: Path):
    agent(fresh_place, "raise SystemExit('was run')")
    assert "generator run" not in rows("--no-run", check=0)


def test_doctor_finds_an_agent_that_waits(fresh_place: Path):
    agent(fresh_place, "import time; print('Do you want to proceed? (y/n)', flush=True); time.sleep(600)")
    began = time.monotonic()
    row = rows("--timeout", "2", check=1)["generator run"]
    assert time.monotonic() - began < 30
    assert "did not end within 2.0s" in row["detail"]
    assert "waits for somebody to answer" in row["detail"]
    assert "--timeout" in row["fix"]


@pytest.mark.parametrize(
    ("script", "state", "detail", "fix"),
    [
        ("print('This command requires approval')", "yellow", "asked for a permission", "without asking"),
        ("input()", "red", "exit code 1", "by hand"),
        ("import sys; sys.exit('Error: stdin is not a terminal')", "red", "nobody gives", "without asking"),
        ("import sys; sys.exit('Invalid API key · Please run /login')", "red", "exit code 1", "log the agent in"),
        ("import sys; sys.exit(3)", "red", "exit code 3", "by hand"),
        ("print('hello')", "green", "answered", ""),
    ],
)
def test_doctor_says_what_an_agents_answer_means(fresh_place: Path, script: str, state: str, detail: str, fix: str):
    agent(fresh_place, script)
    row = rows(check=1 if state == "red" else 0)["generator run"]
    assert state == row["state"], row
    assert detail in row["detail"]
    assert fix in row["fix"]


def test_doctor_names_the_keys_that_the_agent_does_not_get(fresh_place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MY_PROVIDER_API_KEY", "secret-value")
    agent(fresh_place, "import sys; sys.exit('no API key')")
    called = call("doctor", check=1)
    assert "MY_PROVIDER_API_KEY" in called.out
    assert "[loop] env" in called.out
    assert "secret-value" not in called.out


def test_doctor_knows_how_known_agents_are_told_not_to_ask(fresh_place: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    config = write_loop(fresh_place, [0.6])
    fake = tmp_path / "claude"
    fake.write_text("#!/bin/sh\necho 'Claude needs your permission to edit'\nsleep 100\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    config.write_text(config.read_text().replace(f'[{json.dumps(sys.executable)}, "agent.py"]', '"claude --some-flag"'))
    assert "as in `jumar run --agent claude`" in rows("--timeout", "1", check=1)["generator run"]["fix"]


def test_doctor_finds_a_program_that_is_missing(fresh_place: Path):
    config = write_loop(
        fresh_place, [0.6], check="no-such-check --now", extra='[[scorers]]\ndimension = "b"\ncommand = "echo two"'
    )
    config.write_text(config.read_text().replace(f'[{json.dumps(sys.executable)}, "agent.py"]', "'no-such-agent -p hello'"))
    found = rows(check=1)
    red = {name for name, state in states(found).items() if state == "red"}
    assert {"generator", "check: text", "scorer: b", "start state"} == red
    assert "'no-such-agent' is not installed: it is not on PATH" == found["generator"]["detail"]
    assert "127" in found["check: text"]["detail"]
    assert "two" in found["scorer: b"]["detail"]
    assert "generator run" not in found


def test_doctor_tells_the_placeholder_from_a_missing_agent(fresh_place: Path):
    call("init", check=0)
    assert "placeholder" in rows(check=1)["generator"]["detail"]


def test_doctor_names_file_line_and_key_of_a_mistake(fresh_place: Path):
    config = write_loop(fresh_place, [0.6])
    config.write_text(config.read_text().replace("max_iterations", "max_iteration"))
    row = rows(check=1)["configuration"]
    assert "jumar.toml:5: unknown key 'loop.max_iteration' (did you mean 'max_iterations'?)" in row["detail"]


def test_doctor_shows_a_tree_over_the_quota(fresh_place: Path):
    config = write_loop(fresh_place, [0.6])
    config.write_text(config.read_text().replace("[artifacts]", "[artifacts]\nmax_files = 1"))
    row = rows(check=1)["snapshot"]
    assert "2 files" in row["detail"]
    assert "[artifacts]" in row["fix"]


def test_doctor_warns_of_a_snapshot_without_files_and_of_an_empty_objective(fresh_place: Path):
    config = write_loop(fresh_place, [0.6])
    config.write_text(config.read_text().replace('"score.txt", "text.md"', '"nothing-here"').replace("make it better", ""))
    found = states(rows("--no-run", check=0))
    assert ("yellow", "yellow") == (found["snapshot"], found["objective"])


def test_doctor_says_that_the_loop_is_being_written(fresh_place: Path):
    write_loop(fresh_place, [0.6])
    lock = LoopLock(fresh_place / ".jumar/locks/t")
    lock.acquire()
    try:
        row = rows("--no-run", check=1)["lock"]
        assert str(os.getpid()) in row["detail"]
        (fresh_place / "jumar.toml").write_text((fresh_place / "jumar.toml").read_text().replace('id = "t"', 'id = "u"'))
        assert "being written: t" in rows("--no-run", check=0)["lock"]["detail"]
    finally:
        lock.release()


def test_doctor_of_a_root_that_cannot_be_written(fresh_place: Path):
    write_loop(fresh_place, [0.6])
    found = rows("--no-run", "--root", "/proc/nowhere", check=1)
    assert "red" == found["root"]["state"]
    assert "--root" in found["root"]["fix"]
    assert "hard links" not in found


def test_doctor_in_words_with_colours_on_a_terminal_only(fresh_place: Path, monkeypatch: pytest.MonkeyPatch):
    config = agent(fresh_place, r"import sys; sys.exit('\x1b[31mevil\x07')")
    config.write_text(f"{config.read_text()}\n[budget]\nmax_seconds = 60\n")
    plain = call("doctor", check=1).out
    assert CONTROL.isdisjoint(plain)
    assert "FAIL  generator run" in plain
    assert "it said: evil\\x07" in plain
    assert plain.rstrip().endswith("1 FAIL, 0 warn")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    drawn = call("doctor", check=1, terminal=True).out
    assert "\x1b[1;31mFAIL\x1b[0m" in drawn
    assert (
        max(len(line.replace("\x1b[1;31m", "").replace("\x1b[32m", "").replace("\x1b[0m", "")) for line in drawn.splitlines())
        <= 60
    )
    monkeypatch.setenv("NO_COLOR", "1")
    assert CONTROL.isdisjoint(call("doctor", check=1, terminal=True).out)
    quiet = call("doctor", "--quiet", check=1).out
    assert ["FAIL"] == [line[:4] for line in quiet.splitlines() if not line.startswith(" ")]


def test_doctor_leaves_no_copy_behind(fresh_place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    agent(fresh_place, "import os; os.makedirs('a/b'); open('a/b/c', 'w').close(); os.chmod('a/b', 0o500)")
    os.mkfifo(fresh_place / "pipe")
    rows(check=0)
    assert [] == list(temporary.iterdir())


# ---------------------------------------------------------------------------------------------------------- completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_is_accepted_by_its_shell(shell: str, fresh_place: Path):
    script = call("completion", shell, check=0).out
    assert "_JUMAR_COMPLETE" in script
    assert script.rstrip("\n") == call_json("completion", shell)["script"].rstrip("\n")
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    (fresh_place / "script").write_text(script)
    subprocess.run([program, "-n", "script"], check=True, capture_output=True)


def completions(*words: str) -> list[str]:
    """What bash is told after these words."""
    environment = {"_JUMAR_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(["jumar", *words]), "COMP_CWORD": str(len(words))}
    done = jumar(Path.cwd(), env=environment, check=0)
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def test_commands_options_and_loops_are_completed(fresh_place: Path):
    write_loop(fresh_place, [0.6])
    call("run", "--quiet", check=0)
    assert ["cases", "cleanup", "completion"] == completions("c")
    assert ["--require-verification", "--reason"] == completions("select", "t", "--re")[:2]
    assert ["t"] == completions("show", "")
    assert ["t"] == completions("verify", "t")
    assert ["bash"] == completions("completion", "b")
    assert [] == completions("show", "--root", "elsewhere", "")
    call("demo", "-n", "1", "--quiet", check=0)
    assert ["demo", "t"] == completions("report", "")
    assert ["t"] == completions("diff", "--root", ".jumar", "")


def test_the_page_on_doctor_explains_every_row(fresh_place: Path):
    page = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "doctor.md").read_text()
    explained = {name.strip() for line in page.splitlines() if line.startswith("| ") for name in line.split("|")[1].split(",")}
    config = write_loop(fresh_place, [0.6])
    config.write_text(config.read_text().replace("make it better", ""))
    assert {name.partition(":")[0] for name in rows(check=0)} <= explained


def with_generator(place: Path, generator: str, *extra: str) -> Path:
    """A loop whose ``[generator]`` is ``generator``."""
    config = write_loop(place, [0.6], extra="\n".join(extra))
    text = config.read_text()
    start, end = text.index("[generator]"), text.index("[[checks]]")
    config.write_text(f"{text[:start]}[generator]\n{generator}\n\n{text[end:]}")
    return config


@pytest.mark.parametrize(
    ("generator", "state", "detail"),
    [
        ('command = "NAME=1 true"', "green", "true is there"),
        ('command = "cd . && true"', "green", "true is there"),
        ('command = "for x in 1; do true; done"', "green", "a shell script"),
        ('command = "echo \'unclosed"', "green", "a shell script"),
        ('command = "./agent.sh"', "red", "'./agent.sh' does not exist"),
        ('command = ["true", "x"]', "green", "true is there"),
        ('command = ["cd", "x"]', "red", "'cd' is not installed: it is not on PATH"),
        ('python = "mine:generate"', "green", "mine:generate"),
    ],
)
def test_doctor_looks_for_the_generators_program(
    fresh_place: Path, generator: str, state: str, detail: str, monkeypatch: pytest.MonkeyPatch
):
    (fresh_place / "mine.py").write_text("def generate(context):\n    return None\n")
    monkeypatch.setattr("shutil.which", lambda name, path=None, **_: None if name == "cd" else f"/bin/{name}")
    with_generator(fresh_place, generator)
    row = rows("--no-run", check=0 if state == "green" else 1)["generator"]
    assert (state, True) == (row["state"], detail in row["detail"]), row


def test_doctor_runs_a_python_generator_and_reads_its_usage(fresh_place: Path):
    (fresh_place / "mine.py").write_text("def generate(context):\n    return {'token_cost_usd': 0.25, 'tokens_used': 1234}\n")
    with_generator(fresh_place, 'python = "mine:generate"')
    assert "reported: $0.2500, 1,234 tokens" == rows(check=0)["usage"]["detail"]


def test_doctor_says_when_the_usage_is_not_where_the_configuration_says(fresh_place: Path):
    with_generator(fresh_place, 'command = "echo {}"\nusage = {cost = "total_cost_usd"}')
    row = rows(check=0)["usage"]
    assert ("yellow", True) == (row["state"], "total_cost_usd" in row["detail"])


@pytest.mark.parametrize(
    ("change", "name", "detail"),
    [
        (("[artifacts]", 'workdir = "nowhere"\n[artifacts]'), "working directory", "nowhere does not exist"),
        (('objective = "make it better"', 'objective_file = "PROMPT.md"'), "objective", "PROMPT.md cannot be read"),
        (("[[scorers]]", "[weights]\nqualty = 1\n[[scorers]]"), "programs", "did you mean 'quality'?"),
        (('command = "cat score.txt"', 'builtin = "lenght"\nmax = 3'), "programs", "did you mean 'length'?"),
        (('command = "cat score.txt"', 'command = "no-such-scorer"'), "scorer: quality", "cannot run"),
    ],
)
def test_doctor_names_what_the_configuration_gets_wrong(fresh_place: Path, change: tuple[str, str], name: str, detail: str):
    config = write_loop(fresh_place, [0.6])
    config.write_text(config.read_text().replace(*change))
    row = rows("--no-run", check=1)[name]
    assert ("red", True) == (row["state"], detail in row["detail"]), row


def test_doctor_tries_only_the_kept_files_of_a_huge_directory(fresh_place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("jumar.app.rehearsal._COPY_LIMIT", 1000)
    agent(fresh_place, "raise SystemExit('not there')")
    config = fresh_place / "jumar.toml"
    config.write_text(config.read_text().replace('"score.txt", ', '"score.txt", "agent.py", '))
    (fresh_place / "huge.bin").write_bytes(b"0" * 5000)
    (fresh_place / "agent.py").write_text("import os; print(sorted(os.listdir('.')))\nraise SystemExit(1)")
    assert "'agent.py', 'score.txt', 'text.md'" in rows(check=1)["generator run"]["detail"]


def test_doctor_without_room_for_a_copy_says_so(fresh_place: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    write_loop(fresh_place, [0.6])
    monkeypatch.setattr("shutil.copytree", refuse)
    row = rows(check=1)["rehearsal"]
    assert "No space left on device" in row["detail"]
    assert "TMPDIR" in row["fix"]
