"""setup, reset, on_stop and sessions around real loops: what runs when, in which tree, and what becomes of a failure."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from loops import jumar, jumar_json, write_loop


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file outside of all trees that commands write into."""
    path = tmp_path / "book"
    monkeypatch.setenv("JUMAR_BOOK", str(path))
    return path


def keys(**commands: str) -> str:
    told = {**commands, "recheck": "off"}  # which would be one more step
    return "\n".join(f"{name} = {json.dumps(command)}" for name, command in told.items())


def record(directory: Path, number: int) -> dict[str, object]:
    return json.loads((directory / f".jumar/loops/t/iterations/iteration-{number:03d}/metrics.json").read_text())


def test_setup_and_reset_run_around_every_step_in_order(fresh_place: Path, book: Path) -> None:
    write_loop(
        fresh_place,
        [0.6, 0.7],
        loop=keys(setup="echo setup >> $JUMAR_BOOK", reset="echo reset >> $JUMAR_BOOK"),
        check="echo check >> $JUMAR_BOOK",
    )
    with (fresh_place / "agent.py").open("a") as agent:
        agent.write("\nopen(os.environ['JUMAR_BOOK'], 'a').write('agent\\n')\n")
    jumar(fresh_place, "run", check=0)

    scored = ["reset", "check"]
    assert ["setup", *scored, *(["reset", "agent", *scored] * 2)] == book.read_text().split()
    assert (fresh_place / ".jumar/loops/t/iterations/iteration-001/logs/reset-generate.log").exists()


def test_a_server_of_setup_serves_every_step_and_is_gone_afterwards(fresh_place: Path, book: Path) -> None:
    server = fresh_place / "server.py"
    server.write_text(
        "import os, socketserver, http.server\n"
        "class H(http.server.BaseHTTPRequestHandler):\n"
        "    def do_GET(self):\n"
        "        self.send_response(200); self.end_headers(); self.wfile.write(b'here')\n"
        "    def log_message(self, *a): pass\n"
        "s = socketserver.TCPServer(('127.0.0.1', int(os.environ['JUMAR_PORT'])), H)\n"
        "open(os.environ['JUMAR_BOOK'], 'w').write(str(os.getpid()))\n"
        "s.serve_forever()\n"
    )
    ask = "import os, urllib.request as u; assert b'here' == u.urlopen('http://127.0.0.1:' + os.environ['JUMAR_PORT']).read()"
    wait = "until test -s $JUMAR_BOOK; do sleep 0.05; done"
    setup = f"{sys.executable} server.py >/dev/null 2>&1 & {wait}"
    write_loop(fresh_place, [0.6, 0.7], loop=keys(setup=setup), check=f'{sys.executable} -c "{ask}"')
    result = jumar_json(fresh_place, "run")

    assert True is result["verified"]
    assert (
        not psutil.pid_exists(server_pid := int(book.read_text())) or psutil.Process(server_pid).status() == psutil.STATUS_ZOMBIE
    )


def test_a_setup_that_fails_ends_the_run_before_anything_is_paid(fresh_place: Path, book: Path) -> None:
    stop = 'cat > "$JUMAR_BOOK"'
    write_loop(fresh_place, [0.6], loop=keys(setup="echo no database; exit 4", on_stop=stop))
    failed = jumar(fresh_place, "run", check=1)

    assert "[loop] setup: exit code 4: no database; nothing was paid" in failed.stderr
    assert "no database\n" == (fresh_place / ".jumar/loops/t/logs/setup-main.log").read_text().splitlines(keepends=True)[0]
    assert [] == list((fresh_place / ".jumar/loops/t/attempts").iterdir())
    told = json.loads(book.read_text())
    assert ("t", "error", 1) == (told["loop_id"], told["stop_reason"], told["exit_code"])
    assert "no database" in told["stop_detail"]


def test_a_reset_that_fails_is_nobodys_score(fresh_place: Path, book: Path) -> None:
    reset = (
        'echo x >> "$JUMAR_BOOK"; case "$JUMAR_ITERATION" in 1) test -e text.md && ! grep -q "pass 1" text.md;; 2) false;; esac'
    )
    write_loop(fresh_place, [0.6, 0.7, 0.8], loop=keys(reset=f"{reset} || {{ echo no server; exit 5; }}"))
    ran = jumar(fresh_place, "run", "--json")
    result = json.loads(ran.stdout)
    told = [line for line in ran.stderr.splitlines() if "[loop] reset: exit code 5: no server" in line]
    assert ["1", "2"] == [line.split()[0] for line in told if line.split()[0].isdigit()], "in the rows of the iterations"
    first, second = record(fresh_place, 1), record(fresh_place, 2)

    assert ("validator_broken", None) == (first["status"], first["quality_score"])
    assert "[loop] reset: exit code 5: no server" in str(first["status_reason"])
    for number in ("1", "2"):
        shown = jumar(fresh_place, "show", "t", "--iteration", number).stdout
        assert "[loop] reset: exit code 5: no server" in shown
        assert "check 'reset'" not in shown
    assert ("generator_failed", None) == (second["status"], second["quality_score"])
    assert "[loop] reset: exit code 5: no server" in str(second["status_reason"])
    assert 0 == second["token_cost_usd"]
    assert 3 == result["selected_iteration"]
    assert 1 + 3 + 2 + 2 == len(
        book.read_text().split()
    )  # the start; generated, and scored twice; refused twice; both of the last


@pytest.mark.parametrize("isolation", ["none", "copy", "worktree"])
def test_parallel_candidates_have_trees_slots_and_ports_of_their_own(fresh_place: Path, book: Path, isolation: str) -> None:
    if isolation == "worktree" and shutil.which("git") is None:
        pytest.skip("git is not installed")
    setup = 'echo "$JUMAR_SLOT $JUMAR_PORT $(basename $PWD)" >> "$JUMAR_BOOK"'
    write_loop(
        fresh_place,
        [0.6, 0.7, 0.8, 0.5],
        loop=f'isolation = "{isolation}"\ncandidates = 2\nworkers = 2\n{keys(setup=setup)}',
    )
    identity = ("-c", "user.name=a", "-c", "user.email=a@x")
    if isolation == "worktree":
        for command in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "x")):
            subprocess.run(["git", *identity, *command], cwd=fresh_place, check=True)
    result = jumar_json(fresh_place, "run")
    slots, ports, trees = zip(*(line.split() for line in book.read_text().splitlines()), strict=True)

    assert ("0", "1", "2") == slots
    assert 3 == len(set(ports))
    assert ("here" if isolation == "none" else "t", "t@c01", "t@c02") == trees
    assert 3 == result["selected_iteration"]
    assert ("0.8" if isolation == "none" else "0.5") == (fresh_place / "score.txt").read_text()
    assert not list((fresh_place / ".jumar/work").glob("*@*"))
    if isolation == "worktree":
        listed = subprocess.run(["git", "worktree", "list"], cwd=fresh_place, check=True, capture_output=True, text=True).stdout
        assert 2 == len(listed.splitlines())


SESSIONS = """
import json, os, sys
n = int(os.environ["JUMAR_ITERATION"])
with open(os.environ["JUMAR_BOOK"], "a") as book:
    book.write(f"{n} {sys.argv[1]} {sys.argv[2] or '-'} {os.environ['JUMAR_SESSION_ID'] or '-'}\\n")
open("text.md", "w").write(f"pass {n}\\n")
open("score.txt", "w").write(["", "0.6", "0.9", "0.7", "0.8", "0.8", "0.8"][n])
json.dump({"session_id": f"s{n}"}, open(os.environ["JUMAR_USAGE_FILE"], "w"))
sys.exit(1 if n == 4 else 0)
"""


@pytest.mark.parametrize(
    ("continue_from", "expected"),
    [
        # after the failed iteration 4 the next from the same parent begins afresh, and hands on its own
        ("previous", ["1 new - -", "2 on s1 s1", "3 on s2 s2", "4 on s3 s3", "5 new - -", "6 on s5 s5"]),
        ("best", ["1 new - -", "2 on s1 s1", "3 on s2 s2", "4 on s2 s2", "5 new - -", "6 new - -"]),
    ],
)
def test_a_pass_goes_on_with_the_session_of_its_parent(
    fresh_place: Path, book: Path, continue_from: str, expected: list[str]
) -> None:
    command = json.dumps([sys.executable, "agent.py", "on", "{session_id}"])
    write_loop(
        fresh_place,
        [0.5] * 6,
        loop=f'continue_from = "{continue_from}"',
        generator=f'session = "resume"\nresume_command = {command}',
    )
    config = fresh_place / "jumar.toml"
    config.write_text(config.read_text().replace('"agent.py"]', '"agent.py", "new", "{session_id}"]', 1))
    (fresh_place / "agent.py").write_text(SESSIONS)
    jumar(fresh_place, "run", check=0)

    assert expected == book.read_text().splitlines()
    assert "s3" == record(fresh_place, 3)["usage"]["session_id"]  # type: ignore[index]


def test_the_end_is_told_with_the_final_document_and_changes_no_exit_code(fresh_place: Path, book: Path) -> None:
    read_back = f"{sys.executable} -m jumar.cli.entry report t --format json > report.json"
    write_loop(fresh_place, [0.6, 0.9], loop=keys(on_stop=f'cat > "$JUMAR_BOOK"; {read_back}; echo oh no; exit 3'))
    done = jumar(fresh_place, "run", "--json", check=0)

    assert json.loads(done.stdout) == json.loads(book.read_text())
    assert json.loads((fresh_place / "report.json").read_text())
    assert "[loop] on_stop: exit code 3: oh no; its output is in" in done.stderr
    book.unlink()
    jumar(fresh_place, "run", check=2)
    assert not book.exists()  # nothing ran


def test_the_end_is_told_of_a_run_that_was_terminated(fresh_place: Path, book: Path) -> None:
    write_loop(fresh_place, ["hang"], loop=keys(on_stop='cat > "$JUMAR_BOOK"'))
    command = [sys.executable, "-m", "jumar.cli.entry", "run", "--quiet"]
    with subprocess.Popen(command, cwd=fresh_place, stdin=subprocess.DEVNULL, env=dict(os.environ)) as running:
        while not (fresh_place / "calls.log").exists():
            assert running.poll() is None
        running.send_signal(signal.SIGTERM)
        code = running.wait(30)

    assert 143 == code
    told = json.loads(book.read_text())
    assert ("terminated", 143) == (told["stop_reason"], told["exit_code"])


def test_what_the_commands_around_the_steps_run_decides_nothing_for_the_person(fresh_place: Path, book: Path) -> None:
    wanted = ("select t --use 2 --reason better", "apply t", "run -n 9")
    attack = "; ".join(f"{sys.executable} -m jumar.cli.entry {words} >> $JUMAR_BOOK 2>&1" for words in wanted)
    write_loop(fresh_place, [0.9, 0.6], loop=keys(setup=f"{attack}; true", on_stop=attack))
    jumar(fresh_place, "run", check=0)

    assert 5 <= book.read_text().count("a program of setup or on_stop")  # setup has nothing to select yet
    loop = fresh_place / ".jumar/loops/t"
    assert 3 == len(list((loop / "iterations").iterdir()))
    assert not list((loop / "decisions").glob("*override*"))


KILL = "import os, psutil\nme = psutil.Process()\n[p.kill() for p in me.parents() if p.pid == int(open('jumar.pid').read())]\n"


@pytest.mark.parametrize("breaks", ["raise SystemExit('broken')", KILL])
def test_a_setup_that_breaks_on_what_an_iteration_left_runs_on_the_start(fresh_place: Path, breaks: str) -> None:
    (fresh_place / "deps.py").write_text("")
    config = write_loop(fresh_place, [0.6, 0.7], loop=keys(setup=f"{sys.executable} -Bc 'import deps'"))
    config.write_text(config.read_text().replace('"text.md"]', '"text.md", "deps.py"]'))
    with (fresh_place / "agent.py").open("a") as agent:
        agent.write(f"\nopen('deps.py', 'w').write({breaks!r})\n")
    jumar(fresh_place, "run", "--steps", "1", check=0)
    note_pid = "import os; open('jumar.pid', 'w').write(str(os.getpid())); from jumar.cli.entry import main; main()"
    codes, said = list[int](), ""
    while 0 not in codes and len(codes) < 7:
        command = [sys.executable, "-c", note_pid, "run"]
        done = subprocess.run(command, cwd=fresh_place, capture_output=True, text=True, check=False)
        codes.append(done.returncode)
        said = " ".join((done.stdout + done.stderr).split())

    assert codes == ([-signal.SIGKILL] * 5 if breaks == KILL else []) + [0]
    why = "jumar was killed 5 times while [loop] setup ran" if breaks == KILL else "[loop] setup: exit code 1: broken"
    assert f"{why}; so it runs on the files of the start" in said
    assert 70 == record(fresh_place, 2)["quality_score"]
