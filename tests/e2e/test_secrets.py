"""Planted secrets: none is written anywhere but where a program of the person's put it, in a file that is kept."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from loops import jumar, jumar_json

VALUES = {
    "PRINTED_TOKEN": "printed-4711-abcdefgh",
    "CHECKED_TOKEN": 'checked-"4711"-\\abcdefgh',
    "REASON_SECRET": "reason-4711-ßabcdefgh",
    "USAGE_PASSWORD": "usage/4711+abcdefgh",
    "KEPT_TOKEN": "kept-4711-abcdefgh",
    "NAMED_TOKEN": "named-4711-abcdefgh",
    "OBJECTIVE_TOKEN": "objective-4711-abcdefgh",
    "COMMAND_TOKEN": "command-4711-abcdefgh",
}
SHAPE = "ghp_" + "a1B2" * 9
NAMED_SHAPE = "glpat-" + "z9Y8" * 5  # a file has it in its name
CHOSEN = "geheim-4711"

AGENT = f"""
import json, os, sys, time
def half(stream, text):
    for part in (text[:7], text[7:]):
        stream.write(part); stream.flush(); time.sleep(0.05)
half(sys.stdout, "out " + os.environ["PRINTED_TOKEN"] + " end\\n")
half(sys.stderr, "error: " + os.environ["PRINTED_TOKEN"] + "\\n")
print("{SHAPE}")
usage = {{"model": "m-" + os.environ["USAGE_PASSWORD"], "tokens_used": 7, "x": os.environ["PRINTED_TOKEN"]}}
json.dump(usage, open(os.environ["JUMAR_USAGE_FILE"], "w"))
open("kept.txt", "w").write("pass " + os.environ["JUMAR_ITERATION"] + " " + os.environ["KEPT_TOKEN"])
open("note-" + os.environ["NAMED_TOKEN"] + ".txt", "w").write("pass")
open("note_{NAMED_SHAPE}.txt", "w").write(os.environ["JUMAR_ITERATION"])
print("login: password={CHOSEN}, saved to note_{NAMED_SHAPE}.txt")
open(os.path.join(os.path.dirname(os.environ["JUMAR_USAGE_FILE"]), "own.log"), "w").write(os.environ["PRINTED_TOKEN"])
if os.environ["JUMAR_ITERATION"] == "2":
    sys.exit(os.environ["PRINTED_TOKEN"])
"""
CHECK = """
import os, sys
print("FAILED", os.environ["CHECKED_TOKEN"])
open(os.path.join(os.path.dirname(os.environ["JUMAR_USAGE_FILE"]), "check-own.log"), "w").write(os.environ["CHECKED_TOKEN"])
sys.exit(1)
"""
SCORE = """
import json, os
print(json.dumps({"score": 0.1 * int(os.environ["JUMAR_ITERATION"]), "reason": "because of " + os.environ["REASON_SECRET"]}))
"""


def write(directory: Path, extra: str = "") -> None:
    for name, text in (("agent.py", AGENT), ("check.py", CHECK), ("score.py", SCORE)):
        (directory / name).write_text(text)
    (directory / "kept.txt").write_text("start")
    python = json.dumps(sys.executable)
    (directory / "jumar.toml").write_text(
        f"""
[loop]
id = "t"
objective = "never say {VALUES["OBJECTIVE_TOKEN"]}"
max_iterations = 3
env = ["*_TOKEN", "*_SECRET", "*_PASSWORD"]
apply = "never"
[artifacts]
include = ["*.txt"]
[generator]
command = [{python}, "agent.py", "{VALUES["COMMAND_TOKEN"]}"]
[[checks]]
name = "c"
command = [{python}, "check.py"]
[[scorers]]
dimension = "q"
command = [{python}, "score.py"]
{extra}
"""
    )


def holding(directory: Path, value: str) -> list[str]:
    """The files below that hold the value, as it is or as JSON has it; links are named each."""
    forms = {value.encode(), json.dumps(value)[1:-1].encode(), json.dumps(value, ensure_ascii=False)[1:-1].encode()}
    return sorted(
        str(path.relative_to(directory))
        for path in directory.rglob("*")
        if path.is_file() and not path.is_symlink() and any(form in path.read_bytes() for form in forms)
    )


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    directory = tmp_path_factory.mktemp("planted")
    write(directory)
    done = jumar(directory, "run", env=VALUES)
    return directory, done.stdout + done.stderr


@pytest.fixture
def planted(ran: tuple[Path, str], tmp_path: Path) -> tuple[Path, str]:
    """A copy for each test: they run in any order."""
    directory, said = ran
    shutil.copytree(directory, tmp_path / "planted", symlinks=True)
    return tmp_path / "planted", said


def test_grep_finds_none_but_in_the_files_that_were_kept(planted: tuple[Path, str]) -> None:
    directory, said = planted
    loop = directory / ".jumar"
    recorded = list((loop / "loops" / "t" / "iterations").iterdir())
    assert len(recorded) == 4, said
    assert "[redacted: PRINTED_TOKEN]" in (recorded[0].parent / "iteration-001" / "logs" / "generator.log").read_text()
    looked = [path for path in loop.rglob("*") if path.is_file()]
    for name, value in {**VALUES, "a shape": SHAPE, "a shape as NAME": NAMED_SHAPE, "a password": CHOSEN}.items():
        found = holding(loop, value)
        if name == "KEPT_TOKEN":
            assert found
            assert {Path(path).name for path in found} == {"kept.txt"}
        elif name in {"NAMED_TOKEN", "a shape as NAME"}:  # a file has that name: records and manifests lead to it
            assert {Path(path).name for path in found} <= {"manifest.json", "metrics.json", "best-output-tracking.json"}
        else:
            assert found == [], name
    print(f"files looked at: {len(looked)}, secrets planted: {len(VALUES) + 1}")


def test_nothing_secret_is_printed_and_a_kept_one_is_told(planted: tuple[Path, str]) -> None:
    directory, said = planted
    asked = [("show", "--iteration", "1"), *(("report", "--format", form) for form in ("md", "html", "csv", "junit"))]
    printed = [jumar(directory, *command, "t", env=VALUES, check=0).stdout for command in asked]
    for text in (said, *printed):
        assert [value for value in (*VALUES.values(), SHAPE, NAMED_SHAPE, CHOSEN) if value in text] == []
    assert "the snapshot holds a secret: kept.txt has the value of KEPT_TOKEN" in said
    assert "delete the snapshot (`jumar cleanup t`) or the loop (`jumar rm t`)" in said
    verified = jumar(directory, "verify", "t", env=VALUES, check=0)
    assert "kept.txt: holds a secret, the value of KEPT_TOKEN" in verified.stdout
    assert VALUES["KEPT_TOKEN"] not in verified.stdout
    loop = jumar_json(directory, "verify", "t", env=VALUES)["loops"][0]
    assert {tuple(one["values_of"]) for one in loop["planted"]} == {("KEPT_TOKEN",)}
    assert "secret" not in jumar(directory, "verify", "t", check=0).stdout


def test_a_finished_loop_with_secrets_in_its_configuration_is_still_the_same_loop(
    planted: tuple[Path, str],
) -> None:
    directory, _ = planted
    config = directory / "jumar.toml"
    config.write_text(config.read_text().replace("max_iterations = 3", "max_iterations = 4"))
    done = jumar(directory, "run", env=VALUES)
    assert "the configuration differs" not in done.stderr
    assert len(list((directory / ".jumar" / "loops" / "t" / "iterations").iterdir())) == 5, done.stderr


def test_values_and_patterns_of_ones_own_and_none_at_all(fresh_place: Path) -> None:
    env = {**VALUES, "MY_LOGIN": "some-login-name"}
    write(fresh_place, '[redact]\nvalues_of = ["MY_LOGIN", "NOT_SET"]\npatterns = ["acme-[0-9]{4}"]')
    (fresh_place / "agent.py").write_text('print("some-login-name acme-1234 acme-x")')
    jumar(fresh_place, "run", "--max-iterations", "1", env=env)
    log = fresh_place / ".jumar" / "loops" / "t" / "iterations" / "iteration-001" / "logs" / "generator.log"
    assert log.read_text() == "[redacted: MY_LOGIN] [redacted] acme-x\n"
    write(fresh_place, "[redact]\nenabled = false")
    (fresh_place / "agent.py").write_text(f'print("{SHAPE}")')
    jumar(fresh_place, "run", "--new", "--max-iterations", "1", env=env)
    assert holding(fresh_place / ".jumar" / "loops" / "t-2", SHAPE)


@pytest.mark.parametrize(
    ("table", "env", "message"),
    [
        ('patterns = ["("]', {}, "is no regular expression"),
        ('patterns = ["x*"]', {}, "also matches nothing at all"),
        ('values_of = ["A B"]', {}, "values_of"),
        ('values_of = ["MINE"]', {"MINE": "short"}, "the value of MINE is shorter than 8 characters"),
        ('values_of = ["MINE"]', {"MINE": "password"}, "the value of MINE is a common word"),
    ],
)
def test_a_table_that_means_nothing_is_refused(fresh_place: Path, table: str, env: dict[str, str], message: str) -> None:
    write(fresh_place, f"[redact]\n{table}")
    done = jumar(fresh_place, "run", env={**VALUES, **env}, check=2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (fresh_place / ".jumar").exists()


def test_other_commands_take_for_a_secret_what_the_loop_was_recorded_with(fresh_place: Path) -> None:
    env = {"ONE_OF_MINE": "mine-4711-abcdefgh"}
    agent = "import os; open('out.txt', 'w').write('pass ' + os.environ['ONE_OF_MINE'])"
    (fresh_place / "out.txt").write_text("start")
    (fresh_place / "jumar.toml").write_text(
        f"""
loop = {{ id = "t", max_iterations = 1, env = ["ONE_OF_MINE"] }}
artifacts = {{ include = ["out.txt"] }}
generator = {{ command = [{json.dumps(sys.executable)}, "-c", {json.dumps(agent)}] }}
checks = [{{ name = "is there", command = "test -s out.txt" }}]
stop = {{ keep_going = true }}
redact = {{ values_of = ["ONE_OF_MINE"], patterns = ["acme-[0-9]+"] }}
"""
    )
    jumar(fresh_place, "run", "--quiet", env=env, check=0)
    document = jumar_json(fresh_place, "verify", "t", env=env)
    assert ["ONE_OF_MINE"] in [planted["values_of"] for planted in document["loops"][0]["planted"]]

    reason = "it has mine-4711-abcdefgh and acme-42"
    jumar(fresh_place, "select", "t", "--use", "1", "--reason", reason, env=env, check=0)
    decided = "".join(path.read_text() for path in (fresh_place / ".jumar/loops/t/decisions").iterdir())
    assert "it has [redacted: ONE_OF_MINE] and [redacted]" in decided
    assert ("mine-4711" in decided, "acme-42" in decided) == (False, False)


def test_a_secret_in_the_name_of_a_file_is_not_printed(fresh_place: Path) -> None:
    write(fresh_place, "")
    config = fresh_place / "jumar.toml"
    agent = f"open('named-{SHAPE}.txt', 'w').write('x\\n'); open('out.txt', 'w').write('pass 1')"
    config.write_text(
        f"""
loop = {{ id = "t", max_iterations = 1, apply = "never" }}
artifacts = {{ include = ["*.txt"] }}
generator = {{ command = [{json.dumps(sys.executable)}, "-c", {json.dumps(agent)}] }}
checks = [{{ name = "is there", command = "test -e out.txt" }}]
stop = {{ keep_going = true }}
"""
    )
    jumar(fresh_place, "run", "--quiet", check=0)
    jumar(fresh_place, "select", "--use", "1", "--reason", "it", check=0)
    (fresh_place / f"named-{SHAPE}.txt").unlink()
    said = ""
    asked = ("diff t 0 1", "diff t 0 1 --stat", "diff t 0 1 --json", "apply --dry-run", "apply --dry-run --json", "apply --json")
    for command in (*asked, "apply --undo --dry-run", "apply --undo --dry-run --json", "apply --undo"):
        done = jumar(fresh_place, *command.split(), check=0)
        said += done.stdout + done.stderr
        assert "named-" not in done.stdout or "[redacted]" in done.stdout, command
    assert SHAPE not in said
    assert said.count("named-[redacted].txt") >= 6
