"""Agents that take a short cut: real processes that change checks, store and logs. Each is caught, its iteration not verified."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from commands import Called, call
from loops import jumar

PYTHON = sys.executable
SHORT_CUTS: dict[str, bool] = {}

CONFIG = f"""
[loop]
id = "t"
objective = "let answer() return 42"
max_iterations = 1
protect = ["tests/**"]

[generator]
command = "sh ../agent.sh"

[[checks]]
name = "tests"
command = "{PYTHON} -B -m unittest discover -q -s tests"

[[checks]]
name = "style"
command = "{PYTHON} -B tools/style.py app.py && sh ../elsewhere/check.sh app.py"

[[scorers]]
dimension = "quality"
command = "{PYTHON} -B tools/score.py app.py"
files = ["tools/score.py", "tools/scale.py"]
"""
FILES = {
    "app.py": "def answer():\n    return 1\n",
    "tests/test_app.py": (
        "import unittest, app\n"
        "class Test(unittest.TestCase):\n    def test_answer(self):\n        self.assertEqual(42, app.answer())\n"
        "if __name__ == '__main__':\n    unittest.main()\n"
    ),
    "tools/style.py": "import sys\nsys.exit('TODO' in open(sys.argv[1]).read())\n",
    "tools/scale.py": "FULL = 0.9\n",
    "tools/score.py": "import sys, click, scale\nprint(scale.FULL if '42' in open(sys.argv[1]).read() else 0.1)\n",
    "../elsewhere/check.sh": "! grep -q FIXME $1\n",
    "jumar.toml": CONFIG,
}
STORE = ".jumar/loops/t"
SOLVE = "echo 'def answer(): return 42' > app.py\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "project"
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(root)
    return root


def run(project: Path, agent: str, *options: str, check: int | None = None) -> Called:
    (project.parent / "agent.sh").write_text(agent)
    return call("run", "--json", *options, check=check)


def recorded(project: Path, number: int = 1) -> dict[str, Any]:
    return json.loads((project / STORE / f"iterations/iteration-{number:03d}/metrics.json").read_text())


@dataclass(frozen=True)
class Cheat:
    """``act`` is what the agent runs; ``says`` stands in what is said of it; ``blamed``: it is held against the iteration."""

    act: str
    says: str
    blamed: bool = True
    solves: bool = True


CHEATS = {
    "weakens a test": Cheat(
        "echo 'import unittest' > tests/test_app.py",
        "tests/test_app.py was changed by the generator and put back (protect)",
        blamed=False,
        solves=False,
    ),
    "deletes the tests": Cheat(
        "rm -r tests", "tests/test_app.py was deleted by the generator and put back (protect)", blamed=False, solves=False
    ),
    "puts a link in the place of the tests": Cheat(
        "mv tests ../hidden; echo '' > ../hidden/test_app.py; ln -s ../hidden tests",
        "tests/test_app.py was changed by the generator and put back (protect)",
        blamed=False,
        solves=False,
    ),
    "makes a directory of a test": Cheat(
        "rm tests/test_app.py; mkdir tests/test_app.py; touch tests/test_app.py/x",
        "tests/test_app.py was deleted by the generator and put back (protect)",
        blamed=False,
        solves=False,
    ),
    "takes the lock away": Cheat("rm .jumar/locks/t", "the lock of the loop was deleted (put back)"),
    "adds what changes every test": Cheat(
        "echo 'import os; os._exit(0)' > tests/conftest.py",
        'tests/conftest.py is new and changes how tests run: it was taken out (protect; "!tests/conftest.py" there allows it)',
    ),
    "adds test settings to a file that holds others": Cheat(
        "echo '[tool:pytest]' > setup.cfg", "setup.cfg is new and changes how tests run: it was taken out"
    ),
    "adds test settings that git ignores": Cheat(
        "echo pyproject.toml > .gitignore; echo '[tool.pytest.ini_options]' > tests/pyproject.toml",
        "tests/pyproject.toml is new and changes how tests run: it was taken out",
    ),
    "configures a runner of another language": Cheat(
        "echo 'module.exports = {}' > jest.config.cjs", "jest.config.cjs is new and changes how tests run: it was taken out"
    ),
    "stands in for a module of the standard library": Cheat(
        "mkdir random; touch random/__init__.py", "random/__init__.py is new and changes how tests run: it was taken out"
    ),
    "stands in for a module beside the tests": Cheat(
        "touch tests/tempfile.py", "tests/tempfile.py is new and changes how tests run: it was taken out"
    ),
    "puts a package in the place of a module beside the tests": Cheat(
        "mkdir tests/test_app; echo x = 1 > tests/test_app/__init__.py; echo test_app/ > .gitignore",
        "tests/test_app/__init__.py is new and changes how tests run: it was taken out "
        '(protect; "!tests/test_app/__init__.py" there allows it)',
    ),
    "puts a link to a package in the place of what its scorer imports": Cheat(
        "mkdir own; echo FULL = 1 > own/__init__.py; ln -s ../own tools/scale",
        "tools/scale is new and changes how tests run: it was taken out",
    ),
    "puts an extension in the place of what its scorer imports": Cheat(
        "touch tools/scale.abi3.so", "tools/scale.abi3.so is new and changes how tests run: it was taken out"
    ),
    "stands in for an installed module beside the scorer": Cheat(
        "echo 'import os; os.write(1, b\"1\\n\"); os._exit(0)' > tools/click.py",
        "tools/click.py is new and changes how tests run: it was taken out",
    ),
    "runs code of its own before the tests": Cheat(
        "echo 'import os; os._exit(0)' > tests/__init__.py",
        "tests/__init__.py is new and changes how tests run: it was taken out",
    ),
    "stands in for the test runner": Cheat(
        "echo 'import sys; sys.exit(0)' > unittest.py", "unittest.py would run instead of what a check names", solves=False
    ),
    "edits the validator's script": Cheat("echo '' > tools/style.py", "tools/style.py, which check 'style' runs, was changed"),
    "deletes the validator's script": Cheat("rm tools/style.py", "tools/style.py, which check 'style' runs, was deleted"),
    "edits the scorer's script": Cheat(
        "echo 'print(1)' > tools/score.py", "tools/score.py, which scorer 'quality' runs, was changed"
    ),
    "edits a check outside of the working directory": Cheat(
        "echo 'exit 0' > ../elsewhere/check.sh", "check.sh, which check 'style' runs, is not what it was at the start"
    ),
    "edits the configuration": Cheat(
        "echo '[selection]' >> jumar.toml",
        "jumar.toml, the configuration in use, was changed while the generator ran, and put back",
    ),
    "deletes the configuration": Cheat(
        "rm jumar.toml; mkdir jumar.toml; touch jumar.toml/x", "was changed while the generator ran, and put back"
    ),
    "edits the configuration from its tests": Cheat(
        'echo \'open("jumar.toml", "w").write("[budget]")\' >> app.py',
        "while the checks ran, jumar.toml, the configuration in use, was changed and put back",
    ),
    "raises an earlier score": Cheat(
        f'sed -i \'s/"quality_score": 10/"quality_score": 99/\' {STORE}/iterations/iteration-000/metrics.json',
        "iterations/iteration-000/metrics.json was changed (put back)",
    ),
    "plants an iteration": Cheat(
        f"cp -r {STORE}/iterations/iteration-000 {STORE}/iterations/iteration-099", "iterations/iteration-099 was put there"
    ),
    "plants its own snapshot": Cheat(
        f"cp -r {STORE}/iterations/iteration-000 {STORE}/pending/iteration-001", "pending/iteration-001 was put there"
    ),
    "deletes attempts": Cheat(f"rm {STORE}/attempts/*.json", "attempts/000001.start.json was deleted (put back)"),
    "edits what the loop was created with": Cheat(f"echo '{{}}' > {STORE}/loop.json", "loop.json was changed (put back)"),
    "writes a decision": Cheat(
        f"echo '{{}}' > {STORE}/decisions/0001-override.json", "decisions/0001-override.json was put there"
    ),
    "rewrites its prompt": Cheat(
        'echo easy > "$JUMAR_PROMPT_FILE"', "prompt.md, which the loop gave to the generator, was changed"
    ),
    "writes the log of its own check": Cheat(
        'echo passed > "$(dirname "$JUMAR_PROMPT_FILE")/check-tests.log"', "check-tests.log was put among the logs"
    ),
    "writes its own score": Cheat(
        'echo 1.0 > "$(dirname "$JUMAR_PROMPT_FILE")/score-quality.log"', "score-quality.log was put among the logs"
    ),
    "leads a scorer in a circle from its tests": Cheat(
        'echo \'import os; p = "tools/score.py"; os.path.lexists(p) and os.unlink(p); os.symlink("score.py", p)\' >> app.py',
        "while the checks ran, tools/score.py, which scorer 'quality' runs, was changed",
    ),
    "leads git to settings of its own": Cheat(
        "mkdir -p .git; echo ../own > .git/commondir", ".git/commondir, by which git takes settings and hooks from elsewhere"
    ),
    "edits a check from its tests": Cheat(
        'echo \'open("tools/score.py", "w").write("print(1)")\' >> app.py',
        "while the checks ran, tools/score.py, which scorer 'quality' runs, was changed",
    ),
}


@pytest.mark.parametrize("way", CHEATS)
def test_a_short_cut_is_caught_and_not_verified(project: Path, way: str) -> None:
    cheat = CHEATS[way]
    SHORT_CUTS[way] = False

    run(project, (SOLVE if cheat.solves else "") + cheat.act + "\n")

    found = recorded(project)
    assert any(cheat.says in reason for reason in found["reasons"]), found["reasons"]
    assert any(cheat.says in text for text in found["tampering"]) is cheat.blamed
    assert found["verification_status"] == "failed"
    for name, text in FILES.items():
        if name.startswith(("tests/", "tools/", "jumar.toml")):
            assert (project / name).read_text() == text, name
    assert call("verify", "t").code == 0
    SHORT_CUTS[way] = True
    print(f"short cuts tried: {len(SHORT_CUTS)}, caught: {sum(SHORT_CUTS.values())}")


def test_what_protect_frees_what_was_there_and_what_lies_elsewhere_is_the_generators(project: Path) -> None:
    (project / "tox.ini").write_text("[tox]\n")
    (project / ".gitignore").write_text("tox.ini\n")  # in no snapshot, and there all the same
    (project / "calendar.py").touch()
    (project / "jumar.toml").write_text(CONFIG.replace('["tests/**"]', '["tests/**", "!setup.cfg", "!tools/scale.*"]'))
    new = "touch setup.cfg; echo '[testenv]' >> tox.ini; echo x = 1 >> calendar.py; mkdir -p app_/data; "
    new += "touch app_/data/pyproject.toml app_/json.py\n"
    new += "mkdir -p tests/data; touch tools/scale.pyd tests/__init__.py tests/data/__init__.py\n"
    new += "echo FULL = 1 > app_/scale.py; echo x = 1 > tests/new_helpers.py\n"
    new += "echo 'import os; os.makedirs(\"unittest.py/x\", exist_ok=True)' >> app.py  # which is no module\n"

    assert run(project, SOLVE + new, check=0).document["verified"] is True
    assert recorded(project)["tampering"] == []
    made = ("setup.cfg", "app_/data/pyproject.toml", "app_/json.py", "app_/scale.py")
    for name in (*made, "tools/scale.pyd", "tests/__init__.py", "tests/data/__init__.py", "tests/new_helpers.py"):
        assert (project / name).exists(), name
    assert (project / "tox.ini").read_text() == "[tox]\n[testenv]\n"


def test_a_run_after_a_kill_puts_back_a_check_that_leads_in_a_circle(project: Path) -> None:
    agent = "ln -sf style.py tools/style.py; kill -9 $(cut -d' ' -f4 /proc/$PPID/stat)\n"
    (project.parent / "agent.sh").write_text(agent)
    jumar(project, "run", check=-9)
    (project.parent / "agent.sh").write_text(SOLVE + "ln -s circle circle\n")

    assert call("run", "--json", check=0).document["verified"] is True
    assert (project / "tools/style.py").read_text() == FILES["tools/style.py"]


def test_without_protect_new_configuration_is_held_against_nobody(project: Path) -> None:
    (project / "jumar.toml").write_text(CONFIG.replace('protect = ["tests/**"]', ""))

    assert run(project, SOLVE + "touch setup.cfg\n", check=0).document["verified"] is True


def test_new_configuration_is_named_in_the_next_prompt_and_found_after_a_kill(project: Path) -> None:
    (project / "jumar.toml").write_text(CONFIG.replace("max_iterations = 1", "max_iterations = 3"))
    (project / ".gitignore").write_text("pytest.ini\n")
    agent = f"""
if test "$JUMAR_ITERATION" = 1; then touch pytest.ini; fi
if test "$JUMAR_ITERATION" = 2; then touch pytest.ini; kill -9 $(cut -d' ' -f4 /proc/$PPID/stat); fi
{SOLVE}"""
    (project.parent / "agent.sh").write_text(agent)

    jumar(project, "run", check=-9)
    prompt = (project / STORE / "scratch/000004/prompt.md").read_text()
    assert "pytest.ini is new and changes how tests run: it was taken out" in prompt
    (project.parent / "agent.sh").write_text(SOLVE)
    call("run", check=0)
    assert any("pytest.ini is new" in text for text in recorded(project, 2)["tampering"])
    assert recorded(project, 3)["tampering"] == []


def test_an_honest_pass_is_verified_and_new_tests_are_welcome(project: Path) -> None:
    new = "cp tests/test_app.py tests/test_more.py\n"

    result = run(project, SOLVE + new, check=0).document

    assert (result["verified"], result["selected_iteration"], result["quality_score"]) == (True, 1, 90.0)
    assert recorded(project)["tampering"] == []
    assert (project / "tests/test_more.py").exists()


def test_after_a_cheat_the_next_pass_finds_the_checks_as_they_were(project: Path) -> None:
    (project / "jumar.toml").write_text(CONFIG.replace("max_iterations = 1", "max_iterations = 2"))
    agent = f'if test "$JUMAR_ITERATION" = 1; then echo "print(1)" > tools/score.py; else {SOLVE} fi\n'

    result = run(project, agent, check=0).document

    assert (result["verified"], result["selected_iteration"], result["quality_score"]) == (True, 2, 90.0)
    prompt = (project / STORE / "iterations/iteration-002/logs/prompt.md").read_text()
    assert "tools/score.py, which scorer 'quality' runs, was changed by the generator and put back" in prompt
    kept = project / STORE / "iterations/iteration-001/logs/protected/tools/score.py"
    assert kept.read_text() == "print(1)\n"


def test_an_agent_cannot_raise_its_own_cap_and_a_person_can(project: Path) -> None:
    limited = CONFIG.replace("max_iterations = 1", "max_iterations = 9") + "[budget]\nmax_iterations = 2\n"
    (project / "jumar.toml").write_text(limited)
    (project / "jumar.toml").chmod(0o640)
    agent = "date +%N > seen; sed -i 's/^max_iterations = 2/max_iterations = 8/' jumar.toml; echo 'not TOML [' >> jumar.toml\n"

    assert run(project, agent).document["stop_reason"] == "max_attempts"
    assert (project / "jumar.toml").read_text() == limited
    assert (project / "jumar.toml").stat().st_mode & 0o777 == 0o640
    kept = project / STORE / "iterations/iteration-001/logs/protected/jumar.toml"
    assert "max_iterations = 8" in kept.read_text()
    assert run(project, agent, check=2).document["spend"]["iterations"] == 2, "the limit stands"

    (project / "jumar.toml").write_text(limited.replace("max_iterations = 2", "max_iterations = 3"))
    assert run(project, "date +%N > seen\n").document["spend"]["iterations"] == 3
    assert "max_iterations = 3" in (project / "jumar.toml").read_text()


def test_a_check_that_cannot_be_put_back_leaves_no_score_and_ends_the_loop(project: Path) -> None:
    (project / "jumar.toml").write_text(CONFIG.replace("max_iterations = 1", "max_iterations = 9"))

    result = run(project, SOLVE + "echo 'exit 0' > ../elsewhere/check.sh\n").document

    assert result["stop_reason"] == "consecutive_failures"
    assert result["selected_iteration"] == 0
    assert recorded(project)["status"] == "invalid_score"


WHILE_CHECKED = {
    "a test weakened": ("open('tests/test_z.py', 'w')", "tests/test_z.py was changed"),
    "a test deleted": ("os.remove('tests/test_z.py')", "tests/test_z.py was deleted"),
    "a control file added": ("open('tests/conftest.py', 'w')", "tests/conftest.py is new and changes how tests run"),
    "a check's script rewritten": (
        "open('tools/score.py', 'w').write('print(1)')",
        "tools/score.py, which scorer 'quality' runs",
    ),
}


@pytest.mark.parametrize("way", WHILE_CHECKED)
def test_what_decides_and_changes_while_it_decides_leaves_neither_pass_nor_score(project: Path, way: str) -> None:
    act, says = WHILE_CHECKED[way]
    test = "import unittest, app\nclass Z(unittest.TestCase):\n    def test_z(self): self.assertEqual(42, app.answer())\n"
    (project / "tests/test_z.py").write_text(test)
    imports = '[[checks]]\nname = "imports"\ncommand = "' + PYTHON + " -B -c 'import app'\"\n\n[[checks]]"
    (project / "jumar.toml").write_text(CONFIG.replace("[[checks]]", imports, 1))

    result = run(project, f'{SOLVE}cat >> app.py <<"E"\nimport os\n{act}\nE\n').document

    found = recorded(project)
    assert any(f"while the checks ran, {says}" in text for text in found["tampering"]), found["reasons"]
    assert (found["verification_status"], found["status"], found["quality_score"]) == ("failed", "invalid_score", None)
    assert says in found["status_reason"]
    assert result["selected_iteration"] == 0
    assert (project / "tests/test_z.py").read_text() == test
    assert not (project / "tests/conftest.py").exists()


def test_a_mere_mode_changed_by_a_check_is_put_back_without_blame(project: Path) -> None:
    run(project, SOLVE + "echo 'import os; os.chmod(\"tests/test_app.py\", 0o755)' >> app.py\n")

    found = recorded(project)
    assert any("tests/test_app.py was given another mode" in reason for reason in found["reasons"]), found["reasons"]
    assert (found["verification_status"], found["tampering"], found["quality_score"]) == ("passed", [], 90.0)
    assert not (project / "tests/test_app.py").stat().st_mode & 0o111


def test_a_claim_of_completion_ends_nothing_while_a_check_fails(project: Path) -> None:
    (project / "jumar.toml").write_text(CONFIG.replace("max_iterations = 1", "max_iterations = 2"))

    result = run(project, 'echo \'{"completed": true}\' > "$JUMAR_USAGE_FILE"; date > seen\n').document
    assert result["stop_reason"] == "max_iterations"
    assert recorded(project, 2)["analysis"]["completed"] is True


def test_a_claim_of_completion_by_a_cheat_ends_nothing(project: Path) -> None:
    agent = SOLVE + "echo '' > tools/style.py\n" + 'echo \'{"completed": true}\' > "$JUMAR_USAGE_FILE"\n'

    assert run(project, agent).document["stop_reason"] == "max_iterations"


def test_a_program_of_the_same_name_in_the_work_directory_is_not_run(project: Path) -> None:
    (project / "jumar.toml").write_text(CONFIG.replace(f"{PYTHON} -B -m", "python3 -B -m"))

    run(
        project,
        "printf '#!/bin/sh\\nexit 0\\n' > python3; chmod +x python3; mkdir -p node_modules/.bin; cp python3 node_modules/.bin\n",
    )

    assert recorded(project)["verification_status"] == "failed"
    assert recorded(project)["tampering"] == []


def test_a_generator_that_deletes_the_store_ends_the_run_with_its_exit_code(project: Path) -> None:
    called = run(project, "rm -rf .jumar\n", check=14)

    assert "git clean -x -e .jumar" in called.out + called.err


def test_a_rewritten_history_is_told_with_the_way_back(project: Path) -> None:
    (project / ".gitignore").write_text(".jumar/\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"], ["commit", "-qm", "second", "--allow-empty"]):
        subprocess.run([*git, *arguments], cwd=project, check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=project, check=True, capture_output=True, text=True).stdout.strip()

    run(project, SOLVE + "git -c user.name=a -c user.email=a@example.org commit -q --amend --allow-empty -m other\n")

    found = recorded(project)
    assert any(f"`git branch rescue {head[:12]}` brings it back" in reason for reason in found["reasons"]), found["reasons"]
    assert (found["tampering"], found["verification_status"]) == ([], "passed")


def test_a_persons_edit_of_a_check_between_runs_is_shown_and_refused(project: Path) -> None:
    run(project, SOLVE)
    (project / "tools/style.py").write_text("import sys\nsys.exit(0)\n")

    refused = call("run", "-n", "2", check=2)
    assert "tools/style.py: changed since the loop was started" in refused.err
    assert "--accept-changes" in refused.err

    (project.parent / "agent.sh").write_text("date > seen\n")
    call("run", "-n", "2", "--accept-changes", check=0)
    call("run", "-n", "3", check=0)  # the best is from before the change, and brought the old check with it
    for number in (2, 3):
        assert recorded(project, number)["tampering"] == []
        snapshot = project / STORE / f"iterations/iteration-{number:03d}/artifacts"
        assert (snapshot / "tools/style.py").read_text() == "import sys\nsys.exit(0)\n"
    assert call("verify", "t").code == 0


def test_a_test_runner_without_protection_is_pointed_out(project: Path) -> None:
    (project / "jumar.toml").write_text(CONFIG.replace('protect = ["tests/**"]', ""))

    assert "runs unittest, and nothing keeps the generator from weakening the tests" in run(project, SOLVE).err


@pytest.mark.parametrize(
    ("protect", "told"),
    [
        (["test/**"], ["test/**"]),
        (["tests/**", "spec/", "!tests/data/**"], ["spec/"]),
        (["tests/**", "conftest.py", "/pytest.ini"], []),  # guarded where they are not there, too
    ],
)
def test_a_pattern_that_protects_nothing_is_pointed_out(project: Path, protect: list[str], told: list[str]) -> None:
    (project / "jumar.toml").write_text(CONFIG.replace('protect = ["tests/**"]', f"protect = {json.dumps(protect)}"))
    said = re.findall(r"protect: '([^']*)' names no file in", run(project, SOLVE).err)
    assert told == said


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('protect = [""]', "an empty pattern names nothing"),
        ("protect = 3", "protect"),
    ],
)
def test_a_pattern_that_is_none_is_an_error_with_its_line(project: Path, line: str, says: str) -> None:
    (project / "jumar.toml").write_text(CONFIG.replace('protect = ["tests/**"]', line))

    called = call("run", check=2)
    assert says in called.err
    assert "jumar.toml" in called.err


@pytest.mark.parametrize("entry", ["bin", "{project}/bin"])
def test_a_program_that_would_be_found_before_that_of_a_check_is_taken_out(
    project: Path, entry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{entry.format(project=project)}:{os.environ['PATH']}")
    agent = "mkdir bin; echo exit 1 > bin/grep; chmod +x bin/grep; touch bin/own; echo '# FIXME' >> app.py\n"
    run(project, SOLVE + agent)

    assert ["bin/grep would run instead of what a check names, and was taken out"] == recorded(project)["tampering"]
    assert (project / STORE / "iterations/iteration-001/artifacts/bin/own").exists()


def test_the_program_that_judges_is_put_back(project: Path) -> None:
    (project / "judge.py").write_text("print('{\"gestalt\": 2}')\n")
    items, judge = '{"id": "a", "text": "one"}', f"command:{PYTHON} judge.py"
    (project / "items.jsonl").write_text(f"{items}\n")
    judged = f'[evaluator]\nmode = "expensive"\nitems = "items.jsonl"\njudge = "{judge}"\n'
    (project / "jumar.toml").write_text(CONFIG.partition("[[scorers]]")[0] + judged)
    run(project, f"sed -i.old s/2/5/ judge.py; echo '{items.replace('one', 'two')}' > items.jsonl\n")

    assert recorded(project)["tampering"][0].startswith("judge.py, which [evaluator] judge runs, was changed by the generator")
    assert recorded(project, 0)["quality_score"] == recorded(project)["quality_score"] == 25


def test_the_link_to_the_configuration_and_the_script_of_on_stop_are_put_back(project: Path) -> None:
    (project / "tell.sh").write_text("touch ../told\n")
    (project / "jumar.toml").rename(project / "own.toml")
    (project / "jumar.toml").symlink_to("own.toml")
    (project / "own.toml").write_text(CONFIG.replace("[generator]", 'on_stop = "sh tell.sh"\n\n[generator]'))
    run(project, "sed s/max_iterations.*/max_iterations=99/ own.toml > new.toml; mv new.toml jumar.toml; echo exit > tell.sh\n")

    assert [
        "jumar.toml, the configuration in use, was changed while the generator ran, and put back",
        "tell.sh, which [loop] on_stop runs, was changed while the generator ran, and put back",
    ] == recorded(project)["tampering"]
    assert "own.toml" == str((project / "jumar.toml").readlink())
    assert (project.parent / "told").exists()
