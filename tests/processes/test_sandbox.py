"""The sandbox, tried for real: what a generator can reach, change, see and leave running."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from threading import Event

import pytest

from jumar.errors import ConfigError
from jumar.loop.generators.generators import CommandGenerator, PythonGenerator
from jumar.model import GenerateOutcome, StepContext
from jumar.processes.process_tree import MARKER
from jumar.processes.sandbox import SECRET_PLACES, Sandbox


def _works() -> str | None:
    """Return why there can be no sandbox on this machine, None when there can."""
    try:
        Sandbox(root=Path("/nonexistent")).check(Path.cwd())
    except ConfigError as error:
        return str(error)
    return None


_REFUSED = _works()
real = pytest.mark.skipif(_REFUSED is not None, reason=f"no sandbox here: {_REFUSED}")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A home with secrets, a project with a store and a history in it, and a neighbour."""
    for name in SECRET_PLACES:
        secret = tmp_path / "home" / name
        secret.parent.mkdir(parents=True, exist_ok=True)
        if name in {".netrc", ".git-credentials", ".pypirc"}:
            secret.write_text("SECRET")
        else:
            secret.mkdir()
            (secret / "key").write_text("SECRET")
    project = tmp_path / "project"
    for folder in (project / ".jumar/loops/t/scratch/000001", project / ".jumar/loops/t/iterations", project / ".git/hooks"):
        folder.mkdir(parents=True)
    (project / ".jumar/loops/t/loop.json").write_text("{}")
    (project / ".git/config").write_text("")
    (tmp_path / "neighbour.txt").write_text("n")
    return tmp_path


def context_of(place: Path, workdir: Path | None = None) -> StepContext:
    scratch = place / "project/.jumar/loops/t/scratch/000001"
    for name in ("prompt.md", "feedback.json"):
        (scratch / name).write_text("the prompt")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(place / "home"),
        "TMPDIR": "/var/tmp",
        "SSH_AUTH_SOCK": "/x",
        "JUMAR_PROMPT_FILE": str(scratch / "prompt.md"),
        "JUMAR_USAGE_FILE": str(scratch / "usage.json"),
    }
    return StepContext(
        loop_id="t",
        iteration=1,
        workdir=workdir or place / "project",
        prompt_file=scratch / "prompt.md",
        feedback_file=scratch / "feedback.json",
        usage_file=scratch / "usage.json",
        log_directory=scratch,
        environment=environment,
        nonce="5ec0ffee5ec0ffee",
    )


def run(place: Path, command: str, sandbox: Sandbox | None = None, **options: object) -> GenerateOutcome:
    sandbox = sandbox or Sandbox(root=place / "project/.jumar")
    return CommandGenerator(command, wrap=sandbox.wrap, **options).generate(context_of(place))  # type: ignore[arg-type]


@real
def test_the_work_directory_and_the_usage_file_are_writable_and_the_rest_is_not(place: Path) -> None:
    script = """
    echo made > made.txt; cat "$JUMAR_PROMPT_FILE"; echo '{"tokens_used": 7}' > "$JUMAR_USAGE_FILE"
    for f in ../neighbour.txt "$HOME/new" /etc/new .git/hooks/pre-commit .git/config .jumar/new .jumar/loops/t/new; do
      (echo x > "$f") 2>/dev/null && echo "CHANGED $f"
    done; true"""
    outcome = run(place, script)

    assert None is outcome.failure, outcome.output_tail
    assert "the prompt" in outcome.stdout
    assert "n" == (place / "neighbour.txt").read_text()
    assert not (place / "home/new").exists()
    assert not re.search(r"CHANGED (/etc|\.)", outcome.stdout.replace("../", "up/"))
    assert 7 == outcome.usage.tokens_used
    assert "made\n" == (place / "project/made.txt").read_text()
    assert not (place / "project/.jumar/new").exists()


IDENTITY = "-c user.name=a -c user.email=a@example.org"
SHAPES = {
    "an ordinary repository": "git init -q",
    "no hooks directory": "git init -q --template=",
    "no settings and no hooks": "git init -q --template=; rm .git/config",
    "hooks in the working directory": "git init -q; git config core.hooksPath tools/hooks; mkdir -p tools/hooks",
    "hooks that are not there yet": "git init -q; git config core.hooksPath tools/hooks",
    "settings in the work tree": "git init -q; git config include.path ../tools/git.ini; mkdir tools; touch tools/git.ini",
    "settings that are not there yet": "git init -q; git config include.path ../tools/git.ini",
    "settings of the working directory": "git init -q; git config extensions.worktreeConfig true",
    "a repository elsewhere below": "mkdir tools; git init -q --separate-git-dir=tools/repository",
    "hooks below the hooks": "git init -q; mkdir -p .git/hooks/a/b; git config core.hooksPath .git/hooks/a/b",
    "a linked worktree": "git init -q ../m; cd ../m; git IDENTITY commit -qm 0 --allow-empty; git worktree add -q ../project",
}
ATTACK = """
evil() { mkdir -p "$1/hooks"; printf '#!/bin/sh\ntouch RAN\n' > "$1/hooks/pre-commit"; chmod +x "$1/hooks/pre-commit"
  printf '[core]\nrepositoryformatversion=0\nfsmonitor=touch RAN;:\n' >> "$1/config"; cp "$1/config" "$1/config.worktree"; }
plant() { mkdir -p tools/hooks; cp "$1/hooks/pre-commit" tools/hooks/; cat "$1/config" > tools/git.ini; }
mkdir own; evil own; evil .git; cp own/hooks/* .git/hooks/a/b/; evil tools/repository; plant own
mv .git .g && cp -r .g .git; evil .git
mv .git/hooks .git/h; rm -rf .git/hooks .git/config; evil .git
mv tools/repository tools/r && cp -r tools/r tools/repository; evil tools/repository
mv tools t && cp -r t tools; plant own
rm -f .git && cp -r own .git
echo changed > file
"""


@real
@pytest.mark.parametrize("shape", SHAPES)
def test_git_outside_runs_nothing_that_was_left_inside(place: Path, shape: str) -> None:
    project = place / "project"
    if "worktree add" in SHAPES[shape]:
        shutil.rmtree(project)
    make = "rm -rf .git; " + SHAPES[shape].replace("IDENTITY", IDENTITY)
    where = project if project.exists() else place / "home"
    subprocess.run(["sh", "-ec", make], cwd=where, check=True, env=git_environment(place))
    (project / ".jumar/loops/t/scratch/000001").mkdir(parents=True, exist_ok=True)
    Sandbox(root=project / ".jumar").check(project)

    run(place, ATTACK)

    after = f"git status; git add file; git {IDENTITY} commit -qm after; git log --oneline"
    done = subprocess.run(
        ["sh", "-c", after], cwd=project, check=False, capture_output=True, text=True, env=git_environment(place)
    )
    assert (project / "file").read_text() == "changed\n"
    assert not list(place.rglob("RAN")), done
    assert "after" in done.stdout, done


@real
@pytest.mark.parametrize("shape", [name for name in SHAPES if "linked" not in name])
def test_an_agent_commits_branches_and_packs_inside(place: Path, shape: str) -> None:
    project = place / "project"
    subprocess.run(["sh", "-ec", "rm -r .git; " + SHAPES[shape]], cwd=project, check=True, env=git_environment(place))
    commit = (
        f"touch new; git add new; git {IDENTITY} commit -qm inside && git checkout -qb other && git gc -q && git log --format=%s"
    )

    outcome = run(place, commit)

    assert outcome.stdout == "inside\n", outcome.output_tail
    said = subprocess.run(["git", "fsck"], cwd=project, check=True, capture_output=True, text=True, env=git_environment(place))
    assert "error" not in said.stdout + said.stderr


@pytest.mark.parametrize("name", [".git", ".git/hooks", ".git/config"])
def test_a_link_that_a_generator_could_replace_is_refused(place: Path, name: str) -> None:
    path = place / "project" / name
    path.rename(place / "there")
    path.symlink_to(place / "there")

    with pytest.raises(ConfigError, match=rf"{name} is a symbolic link, which a generator could replace"):
        Sandbox(root=place / "project/.jumar").check(place / "project")


def git_environment(place: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(place), "GIT_CONFIG_NOSYSTEM": "1"}


@real
def test_secrets_and_the_store_are_hidden(place: Path) -> None:
    look = 'grep -rl SECRET "$HOME" 2>/dev/null; ls .jumar/loops/t; test -e .jumar/loops/t/loop.json && echo SEEN; true'
    outcome = run(place, look)

    assert "scratch\n" == outcome.stdout
    assert "SECRET" == (place / "home/.netrc").read_text()
    print(f"{len(SECRET_PLACES)} places of secrets hidden")


@real
def test_temporary_files_are_private_and_the_session_outside_is_out_of_reach(place: Path) -> None:
    mark = Path("/tmp") / f"jumar-test-{os.getpid()}"
    mark.write_text("outside")
    try:
        look = f"ls {mark} 2>/dev/null; echo x > /tmp/inside-{mark.name}; echo $TMPDIR $SSH_AUTH_SOCK; ls /run | wc -l"
        outcome = run(place, look)
    finally:
        mark.unlink()

    first, second = outcome.stdout.split("\n")[:2]
    assert "/tmp" == first
    assert int(second) <= 1
    assert not Path(f"/tmp/inside-{mark.name}").exists()


@real
def test_what_is_named_writable_is(place: Path) -> None:
    state = place / "home" / ".agent"
    state.mkdir()
    sandbox = Sandbox(root=place / "project/.jumar", writable=(state, place / "home/.aws"))
    sandbox.check(place / "project")
    outcome = run(place, 'echo s > "$HOME/.agent/state"; cat "$HOME/.aws/key"', sandbox)

    assert "SECRET" == outcome.stdout
    assert "s\n" == (state / "state").read_text()


@real
@pytest.mark.parametrize("network", [True, False])
def test_the_network_is_a_choice(place: Path, network: bool) -> None:
    code = "import socket,sys; s=socket.create_connection(('127.0.0.1', int(sys.argv[1])), 2); print(s.recv(5).decode())"
    server = (
        "import socket; s=socket.create_server(('127.0.0.1',0)); print(s.getsockname()[1], flush=True); "
        "c,_=s.accept(); c.sendall(b'hello')"
    )
    with subprocess.Popen([sys.executable, "-c", server], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        sandbox = Sandbox(root=place / "project/.jumar", network=network, readable=(Path(sys.prefix),))
        outcome = CommandGenerator([sys.executable, "-c", code, port], wrap=sandbox.wrap).generate(context_of(place))
        process.kill()

    assert ("hello\n" if network else "") == outcome.stdout, outcome.output_tail


@real
@pytest.mark.parametrize("ends", ["by itself", "out of time", "stopped"])
def test_nothing_it_started_is_left_running(place: Path, ends: str) -> None:
    stop = Event()
    wait = "true" if ends == "by itself" else "echo up > up; sleep 600"
    if ends == "stopped":
        stop.set()
    timeout = 1.0 if ends == "out of time" else 30.0
    outcome = run(place, f"env -i setsid sleep 600 & (setsid sleep 600 &) ; {wait}", timeout=timeout, stop=stop)

    assert (ends == "out of time", ends == "stopped") == (outcome.timed_out, outcome.interrupted)
    until = time.monotonic() + 5
    while (left := _inside(place)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not left


def _inside(place: Path) -> list[str]:
    """Return the processes that work in the project, or carry the step's mark."""
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                here = os.readlink(entry / "cwd") == str(place / "project")
                marked = f"{MARKER}=5ec0ffee5ec0ffee".encode() in (entry / "environ").read_bytes()
            except OSError:
                continue
            if here or marked:
                found.append(entry.name)
    return found


@real
def test_a_python_generator_runs_inside_too(place: Path) -> None:
    (place / "project" / "agent.py").write_text(
        "import pathlib\n"
        "def go(context):\n"
        "    pathlib.Path('made.txt').write_text(context.prompt_file.read_text())\n"
        "    try: pathlib.Path('../neighbour.txt').write_text('x')\n"
        "    except OSError: pass\n"
        "    return {'tokens_used': 3}\n"
    )
    packages = Path(__file__).resolve().parents[2] / "src"
    sandbox = Sandbox(root=place / "project/.jumar", readable=(Path(sys.prefix), Path(sys.base_prefix), packages))
    outcome = PythonGenerator("agent:go", wrap=sandbox.wrap).generate(context_of(place))

    assert 3 == outcome.usage.tokens_used, outcome.output_tail
    assert "the prompt" == (place / "project/made.txt").read_text()
    assert "n" == (place / "neighbour.txt").read_text()


@real
def test_a_tree_below_the_root_is_writable_and_its_neighbours_are_not_seen(place: Path) -> None:
    tree = place / "project/.jumar/work/t@c01"
    tree.mkdir(parents=True)
    tree.with_name("t@c02").mkdir()
    sandbox = Sandbox(root=place / "project/.jumar")
    outcome = CommandGenerator("echo x > made; ls ..", wrap=sandbox.wrap).generate(context_of(place, tree))

    assert "t@c01\n" == outcome.stdout, outcome.output_tail
    assert (tree / "made").exists()


def test_what_cannot_be_is_refused_with_the_way_out(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = Sandbox(root=place / ".jumar", writable=(place / "home/.none",))
    with pytest.raises(ConfigError, match=r"sandbox_writable: .*\.none does not exist; create it"):
        sandbox.check(place)
    programs = place / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    with pytest.raises(ConfigError, match="install the package bubblewrap"):
        Sandbox(root=place / ".jumar").check(place)
    (programs / "bwrap").write_text("#!/bin/sh\necho 'setting up uid map: Permission denied' >&2; exit 1\n")
    (programs / "bwrap").chmod(0o755)
    with pytest.raises(ConfigError, match=r"cannot make a sandbox here \(setting up uid map.*apparmor"):
        Sandbox(root=place / ".jumar").check(place)


@real
def test_a_whole_loop_in_the_sandbox(fresh_place: Path) -> None:
    from loops import jumar, jumar_json, write_loop

    write_loop(fresh_place, [0.6, 0.9, 0.7], loop='isolation = "sandbox"\nnetwork = false')
    agent = fresh_place / "agent.py"
    reach_out = "try:\n    open('../out', 'w')\nexcept OSError:\n    pass\n"
    agent.write_text(reach_out + agent.read_text())
    result = jumar_json(fresh_place, "run")
    rows = json.loads(jumar(fresh_place, "doctor", "--json").stdout)["rows"]

    assert 2 == result["selected_iteration"]
    assert "0.9" == (fresh_place / "score.txt").read_text()
    assert not (fresh_place.parent / "out").exists()
    assert [("green", "without network")] == [(row["state"], row["detail"][-15:]) for row in rows if row["name"] == "sandbox"]
