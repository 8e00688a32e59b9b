"""Agents that write where only jumar writes: limits hold, nothing that they say is believed, and the next command goes on."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from bad_passes import BAD_PASSES, IN_SCORING, WHERE, without_rights
from loops import jumar

from jumar.core import leftovers
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.verify import verify
from jumar.model.attempts import MOST_KILLED

# What each attack does, in Python with: number (of the iteration), store (the loop's directory), what AGENT imports.
ATTACKS = {
    "an empty snapshot that waits": "(store / 'pending/iteration-001').mkdir(parents=True, exist_ok=True)",
    "its own snapshot that waits": (
        "shutil.copytree(store / 'iterations/iteration-000', store / f'pending/iteration-{number:03d}', dirs_exist_ok=True)"
    ),
    "the snapshot of the next": (
        "shutil.copytree(store / 'iterations/iteration-000', store / f'pending/iteration-{number + 1:03d}', dirs_exist_ok=True)"
    ),
    "a snapshot and a decision, with the time of their directories set back": (
        "for name in ('pending/iteration-009', 'decisions/0009-select.json'):\n"
        "    path = store / name\n"
        "    path.parent.mkdir(exist_ok=True)\n"
        "    before = os.stat(path.parent)\n"
        "    path.mkdir(exist_ok=True)\n"
        "    os.utime(path.parent, ns=(before.st_atime_ns, before.st_mtime_ns))"
    ),
    "a file where snapshots wait": "shutil.rmtree(store / 'pending'); (store / 'pending').write_text('')",
    "attempts that cost nothing": (
        "[path.write_text(path.read_text().replace('0.01', '0.00')) for path in store.glob('attempts/*.end.json')]"
    ),
    "no attempts": "shutil.rmtree(store / 'attempts')",
    "an end of its own attempt": (
        "path = max(store.glob('attempts/*.start.json'))\n"
        "end = min(store.glob('attempts/*.end.json'), default=None)\n"
        "end and shutil.copy(end, str(path).replace('start', 'end'))"
    ),
    "a perfect score": (
        "[path.write_text(path.read_text().replace('\"quality_score\": 1', '\"quality_score\": 9'))"
        " for path in store.glob('iterations/*/metrics.json')]"
    ),
    "an override": (
        "data = {'format': 1, 'number': 1, 'kind': 'override', 'best_iteration': 1, 'final_iteration': 1, 'delta': None,"
        " 'decision': 'use_specific', 'reason': 'because', 'by': 'root', 'at': '2026-01-01T00:00:00Z', 'data': {}}\n"
        "(store / 'decisions/0001-override.json').write_text(json.dumps(data))"
    ),
    "another limit": (
        "data = json.loads((store / 'loop.json').read_text())\n"
        "data['config']['run']['loop']['max_iterations'] = 99\n"
        "(store / 'loop.json').write_text(json.dumps(data))"
    ),
    "a mark of another machine": (
        "for path in store.glob('iterations/*/metrics.json'):\n"
        "    data = json.loads(path.read_text().replace('\"quality_score\": 1', '\"quality_score\": 9'))\n"
        "    seal = {key: value for key, value in data.items() if key not in {'seal', 'mark'}}\n"
        "    text = json.dumps(seal, separators=(',', ':'), sort_keys=True)\n"
        "    seal['seal'] = hashlib.sha256(text.encode()).hexdigest()\n"
        "    path.write_text(json.dumps(seal, indent=2)[:-2] + ',\\n  \"mark\": \"' + 'ab' * 6 + ':' + '0' * 64 + '\"\\n}\\n')"
    ),
    "a FIFO for its lock": "lock = store.parents[1] / 'locks/t'; lock.unlink(); os.mkfifo(lock)",
    "a person's file for its lock": "lock = store.parents[1] / 'locks/t'; lock.unlink(); os.link(origin / 'text.md', lock)",
    "a directory for its lock": "lock = store.parents[1] / 'locks/t'; lock.unlink(); (lock / 'x').mkdir(parents=True)",
    "a file for all locks": "shutil.rmtree(store.parents[1] / 'locks'); (store.parents[1] / 'locks').write_text('')",
    "what stands for the attempts": "(store / 'attempts.settled').write_text('0 {}\\n')",
}
AGENT = """
import hashlib, json, os, pathlib, shutil, signal, sys
number = int(os.environ["JUMAR_ITERATION"])
store = pathlib.Path({store!r})
origin = store.parents[2]
open({calls!r}, "a").write(f"{{number}}\\n")
pathlib.Path("text.md").write_text(f"words {{number}}\\n")
pathlib.Path(os.environ["JUMAR_USAGE_FILE"]).write_text(json.dumps({{"cost_usd": 0.01}}))
if number >= 2:
    {act}
if {kill} and number == 2 and not os.path.exists({calls!r} + ".killed"):
    open({calls!r} + ".killed", "w").close()
    os.kill(int(os.environ["SPARED"]) if "SPARED" in os.environ else os.getppid(), signal.SIGKILL)
"""
LIMITS = "[budget]\nmax_cost_usd = 0.05\nreserve_cost_usd = 0.01\n[stop]\nconsecutive_failures = 3\n"


@pytest.fixture(autouse=True)
def _nothing_too_deep_stays(tmp_path: Path) -> Iterator[None]:
    """A test that fails leaves its tree: what pytest cannot remove, it dies of at the end of any later session."""
    yield
    leftovers.remove_tree(tmp_path)


COUNTS = {"attacks": 0, "killed": 0, "passed elsewhere": 0, "bad passes": 0}


def project(tmp_path: Path, act: str, *, isolation: str = "none", most: int = 4, kill: bool = False) -> Path:
    place = tmp_path / "project"
    place.mkdir()
    store = place / ".jumar/loops/t"
    agent = AGENT.format(store=str(store), calls=str(tmp_path / "calls.log"), act=act.replace("\n", "\n    "), kill=kill)
    (tmp_path / "agent.py").write_text(agent)
    (place / "text.md").write_text("words 0\n")
    (place / "jumar.toml").write_text(
        f'[loop]\nid = "t"\nobjective = "o"\nmax_iterations = {most}\nisolation = "{isolation}"\n'
        f'[generator]\ncommand = ["{sys.executable}", "{tmp_path}/agent.py"]\n'
        '[[checks]]\nname = "words"\ncommand = "grep -q words text.md"\n'
        '[[scorers]]\ndimension = "quality"\ncommand = "tr -dc 0-9 < text.md | sed \'s/^/0.1/\'"\n' + LIMITS
    )
    return place


def calls(place: Path) -> int:
    return len((place.parent / "calls.log").read_text().split())


def records(place: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted((place / ".jumar/loops/t").glob("iterations/*/metrics.json"))]


def holds(place: Path, most: int, *, older: bool = False) -> None:
    """Limits held, nothing that was said by the agent is in a record, and the store is whole.

    ``older``: attempts that were deleted after jumar was killed are those of an older store, whose limits begin anew.
    """
    found = records(place)
    assert calls(place) <= min(most, 5) + (2 if older else 0) + (1 if (place.parent / "calls.log.killed").exists() else 0)
    assert len(found) <= most + 1
    for one in found:
        number = one["iteration_number"]
        honest = 10.0 if number == 0 else 10.0 + number
        assert one["quality_score"] == honest or (one["quality_score"] is None and number), one
    store = LoopStore.open(place / ".jumar/loops/t")
    assert all(decision.kind != "override" for decision in store.decisions())
    assert verify(store).problems == ()
    COUNTS["attacks"] += 1


@pytest.mark.matrix
@pytest.mark.parametrize("isolation", ["none", "copy"])
@pytest.mark.parametrize("attack", ATTACKS)
def test_what_an_agent_writes_into_the_store_is_not_believed(tmp_path: Path, attack: str, isolation: str) -> None:
    place = project(tmp_path, ATTACKS[attack], isolation=isolation)
    ended = jumar(place, "run", "--no-input", check=None)
    assert ended.returncode in {0, 10, 11}, ended.stderr
    holds(place, 4)
    guilty = [one["iteration_number"] for one in records(place) if one["tampering"]]
    if attack != "what stands for the attempts":  # nothing there is believed, and it is made anew
        assert 2 in guilty, ended.stdout
    assert jumar(place, "status", check=None).returncode in {0, 10, 11}


@pytest.mark.parametrize("attack", ATTACKS)
def test_killed_by_the_agent_the_next_run_believes_nothing_that_it_wrote(tmp_path: Path, attack: str) -> None:
    place = project(tmp_path, ATTACKS[attack], kill=True)
    assert jumar(place, "run", "--no-input", check=None).returncode == -9
    COUNTS["killed"] += 1
    ended = jumar(place, "run", "--no-input", check=None)
    if attack == "another limit":
        assert ended.returncode == 14
        assert "begin another loop with `jumar run --new`" in ended.stderr
        return
    if attack == "a mark of another machine":
        assert ended.returncode == 14
        assert "`jumar repair -y` sets it aside" in " ".join(ended.stderr.split())
        jumar(place, "repair", "t", "-y")
        ended = jumar(place, "run", "--no-input", check=None)
    assert ended.returncode in {0, 10, 11}, ended.stderr + ended.stdout
    if attack != "no attempts":  # an older store is believed as it lies
        holds(place, 4)
    assert jumar(place, "status", check=None).returncode in {0, 10, 11}


STRANGERS = {
    "link": "place.symlink_to(outside)",
    "circle": "place.symlink_to(place.name)",
    "FIFO": "os.mkfifo(place)",
    "file": "place.write_text('')",
}
PLACES = "(root / 'work', root / 'locks', root / 'replies')"


@pytest.mark.matrix
@pytest.mark.parametrize("what", STRANGERS)
@pytest.mark.parametrize(
    ("places", "ends"), [(PLACES, 0), ("(store,)", 14), ("(store.parent,)", 14)], ids=["beside", "loop", "loops"]
)
@pytest.mark.parametrize("kill", [False, True], ids=["ends", "killed"])
def test_what_takes_the_place_of_our_directories_is_set_aside(
    tmp_path: Path, what: str, places: str, ends: int, *, kill: bool
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    act = (
        f"root, outside, once = store.parents[1], pathlib.Path({str(outside)!r}), pathlib.Path({str(tmp_path / 'once')!r})\n"
        f"for place in () if once.exists() else {places}:\n"
        "    place.exists() and place.rename(once.with_name(f'was {place.name}'))\n"
        f"    {STRANGERS[what]}\n"
        "once.touch()"
    )
    place = project(tmp_path, act, isolation="copy", most=3, kill=kill)
    first = jumar(place, "run", "--no-input", check=None)
    assert first.returncode == (-9 if kill else ends), first.stderr
    if kill or ends:
        again = jumar(place, "run", "--no-input", check=None)
        assert again.returncode == 0, again.stderr
        assert "no directory of jumar's: it lies in quarantine/" in " ".join((again.stdout + again.stderr).split())
    assert [*outside.iterdir()] == []
    assert len(records(place)) == 4
    assert jumar(place, "verify").returncode == 0


@pytest.mark.parametrize("who", ["a person", "an agent", "an agent that kills"])
@pytest.mark.parametrize("root", [".jumar", "state"])
def test_a_link_in_the_place_of_the_root_is_the_root(tmp_path: Path, root: str, who: str) -> None:
    act = "moved = origin.parent / 'moved'\nif not moved.exists():\n    store.parents[1].rename(moved)\n"
    act += "    store.parents[1].symlink_to(moved)\npathlib.Path('text.md').write_text('words 0')"
    place = project(tmp_path, act, most=3, kill="kills" in who)
    agent = tmp_path / "agent.py"
    agent.write_text(agent.read_text().replace("/.jumar/", f"/{root}/"))
    if who == "a person":
        (tmp_path / "moved").mkdir()
        (place / root).symlink_to(tmp_path / "moved")
    first = jumar(place, "run", "--no-input", "--root", root, check=None)
    if "kills" in who:
        assert first.returncode == -9
        first = jumar(place, "run", "--no-input", "--root", root, check=None)
    assert first.returncode == 0, first.stderr
    assert "not in the directory" not in first.stdout
    assert 4 == len(list((tmp_path / "moved/loops/t/iterations").iterdir()))
    assert (place / "text.md").read_text() == "words 1\n"
    assert (place / root).is_symlink()
    jumar(place, "apply", "t", "--root", root, check=0)
    assert calls(place) == 3 + ("kills" in who)


@pytest.mark.parametrize("name", ["big.bin", "text.md", "check.sh"])
def test_what_is_too_large_to_be_copied_is_moved_by_the_run_after_a_kill(tmp_path: Path, name: str) -> None:
    place = project(tmp_path, f"open({name!r}, 'a').truncate(1 << 42)", most=3, kill=True)
    (place / "check.sh").write_text("grep -q words text.md\n")
    config = place / "jumar.toml"
    config.write_text(config.read_text().replace('"grep -q words text.md"', '"sh check.sh"'))
    (tmp_path / "agent.py").write_text((tmp_path / "agent.py").read_text().replace("number >= 2", "number == 2"))
    assert jumar(place, "run", "--no-input", check=None).returncode == -9
    (tmp_path / "agent.py").write_text((tmp_path / "agent.py").read_text().replace("number == 2:", "False:"))
    ended = jumar(place, "run", "--no-input", check=0)
    assert "what was there is" in " ".join((ended.stdout + ended.stderr).split())
    moved = [path for path in place.glob(f".jumar/loops/t/quarantine/tree-*/{name}") if path.stat().st_size >= 1 << 42]
    assert 1 == len(moved)
    assert 4 == len(records(place))


def test_a_configuration_of_terabytes_is_refused_unread(tmp_path: Path) -> None:
    place = project(tmp_path, "open('jumar.toml', 'a').truncate(1 << 42)", most=3, kill=True)
    assert jumar(place, "run", "--no-input", check=None).returncode == -9
    assert "bytes, as no configuration has: put it back" in " ".join(jumar(place, "run", check=2).stderr.split())


def test_a_record_of_another_loop_is_not_believed(tmp_path: Path) -> None:
    place = project(tmp_path, "pass")
    jumar(place, "run", "--no-input", "--id", "rich", check=None)
    rich = place / ".jumar/loops/rich/iterations/iteration-003"
    act = f"shutil.copytree('{rich}', store / 'iterations/iteration-003', dirs_exist_ok=True)"
    other = project(tmp_path / "other", act, kill=True) if (tmp_path / "other").mkdir() is None else place
    assert jumar(other, "run", "--no-input", check=None).returncode == -9
    ended = jumar(other, "run", "--no-input", check=None)
    assert "iterations/iteration-003 was not written by jumar" in ended.stdout + ended.stderr
    holds(other, 4)


def test_a_loop_that_was_gone_on_with_by_another_user_is_believed_when_a_person_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = project(tmp_path, "pass", most=2)
    jumar(place, "run", "--no-input")
    assert "believed" not in jumar(place, "apply").stderr
    with monkeypatch.context() as other:
        other.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
        assert "it is believed as it lies" in " ".join(jumar(place, "apply").stderr.split())
        assert "it is believed as it lies" in jumar(place, "run", "--no-input", "-n", "3").stdout
    assert jumar(place, "run", "--no-input", "-n", "4", check=None).returncode == 14
    assert "your mark now" in jumar(place, "repair", "t", "--believe").stdout
    assert jumar(place, "verify").returncode == 0
    assert jumar(place, "run", "--no-input", "-n", "4").returncode == 0
    assert len(records(place)) == 5


@pytest.mark.matrix
@pytest.mark.parametrize("copies", ["shutil.rmtree(copies)", "[path.unlink() for path in copies.rglob('*.py')]"])
@pytest.mark.parametrize("kill", [False, True], ids=["running", "killed"])
def test_without_its_copies_what_is_protected_is_that_of_the_start(tmp_path: Path, copies: str, *, kill: bool) -> None:
    weakens = f"copies = store / 'checks'\nif copies.exists(): {copies}\npathlib.Path('test_text.py').write_text('')"
    place = project(tmp_path, weakens, most=3, kill=kill)
    (place / "test_text.py").write_text("import pathlib, sys\nsys.exit('9' not in pathlib.Path('text.md').read_text())\n")
    config = place / "jumar.toml"
    check = f'[[checks]]\nname = "test"\ncommand = "{sys.executable} -c \'import test_text\'"\n'
    config.write_text(config.read_text().replace("[generator]", "protect = ['test_*.py']\n[generator]") + check)
    ended = jumar(place, "run", "--no-input", check=None)
    if kill:
        jumar(place, "repair", "t", "-y", check=None)
        ended = jumar(place, "run", "--no-input", check=None)
    assert ended.returncode == 10, ended.stdout + ended.stderr
    assert {one["verification_status"] for one in records(place)} == {"failed"}
    shutil.rmtree(place / ".jumar/loops/t/checks", ignore_errors=True)
    jumar(place, "run", "--no-input", "-n", "4", check=None)
    assert {one["verification_status"] for one in records(place)} == {"failed"}


def test_what_was_set_aside_of_a_killed_run_is_no_copy_of_what_decides(tmp_path: Path) -> None:
    act = (
        "pathlib.Path('test_text.py').write_text('')\n"
        "kept = store / 'set-aside/0001'\n"
        "again = kept.exists() and not (store / 'taken').exists()\n"
        "if again: shutil.copytree(kept, store / 'checks/0001', dirs_exist_ok=True, copy_function=shutil.copyfile)\n"
        "if again: (store / 'taken').touch()\n"
        "if again: os.kill(os.getppid(), signal.SIGKILL)"
    )
    place = project(tmp_path, act, most=3, kill=True)
    (place / "test_text.py").write_text("import pathlib, sys\nsys.exit('9' not in pathlib.Path('text.md').read_text())\n")
    config = place / "jumar.toml"
    check = f'[[checks]]\nname = "test"\ncommand = "{sys.executable} -c \'import test_text\'"\n'
    config.write_text(config.read_text().replace("[generator]", "protect = ['test_*.py']\n[generator]") + check)
    ended = [jumar(place, "run", "--no-input", check=None) for _ in range(3)][-1]
    assert (place / ".jumar/loops/t/taken").exists()
    assert ended.returncode == 10, ended.stdout + ended.stderr
    assert {one["verification_status"] for one in records(place)} == {"failed"}


@pytest.mark.parametrize("plugin", [True, False], ids=["plugin", "command"])
def test_a_plugin_that_looks_installed_is_taken_out(tmp_path: Path, *, plugin: bool) -> None:
    act = (
        "made = pathlib.Path('x-1.dist-info')\n"
        "made.mkdir(exist_ok=True)\n"
        "(made / 'METADATA').write_text('Metadata-Version: 2.1\\nName: x\\nVersion: 1\\n')\n"
        f"(made / 'entry_points.txt').write_text('[{'pytest11' if plugin else 'console_scripts'}]\\nx = x\\n')\n"
        "pathlib.Path('x.py').write_text('def pytest_pyfunc_call(pyfuncitem): return True')"
    )
    place = project(tmp_path, act, most=2)
    (place / "test_it.py").write_text("def test_it(): assert 0\n")
    config = place / "jumar.toml"
    check = f'[[checks]]\nname = "test"\ncommand = "{sys.executable} -m pytest -q -p no:cacheprovider"\n'
    config.write_text(config.read_text().replace("[generator]", "protect = ['test_*.py']\n[generator]") + check)
    assert jumar(place, "run", "--no-input", check=None).returncode == 10
    found = records(place)
    assert "failed" == found[-1]["verification_status"]
    assert plugin == any("entry_points.txt is new and changes how tests run" in said for said in found[-1]["tampering"])


@pytest.mark.matrix
@pytest.mark.parametrize("table", ["[hooks]\npython = ['mine:hear']", "[memory]\nenabled = true\nembedder = 'mine:hear'"])
@pytest.mark.parametrize("isolation", ["none", "copy"])
@pytest.mark.parametrize("kill", [False, True], ids=["ends", "killed"])
@pytest.mark.parametrize(
    "act",
    [
        "pathlib.Path('mine.py').write_text(EVIL)",
        "(pathlib.Path('mine').mkdir(exist_ok=True), pathlib.Path('mine/__init__.py').write_text(EVIL))",
        "(origin / 'mine.py').write_text(EVIL)",
    ],
    ids=["module", "package", "elsewhere"],
)
def test_what_jumar_imports_is_as_at_the_start(tmp_path: Path, table: str, isolation: str, act: str, *, kill: bool) -> None:
    mark = tmp_path / "came in"
    evil = f"open({str(mark)!r}, 'w')\ndef hear(texts): return [[1.0] for _ in texts]\n"
    place = project(tmp_path, act.replace("EVIL", repr(evil)), isolation=isolation, most=3, kill=kill)
    honest = "def hear(texts): return [[1.0] for _ in texts]\n" if "memory" in table else "def hear(event): pass\n"
    (place / "mine.py").write_text(honest)
    config = place / "jumar.toml"
    config.write_text(config.read_text() + table + "\n")
    jumar(place, "run", check=None)
    again = jumar(place, "run", "-n", "4", check=None)
    assert not mark.exists()
    if (place / "mine.py").read_text() != honest or (place / "mine").exists():
        assert again.returncode == 2
        assert "would run as jumar itself" in again.stderr
        assert jumar(place, "run", "-n", "4", "--accept-changes", check=None).returncode != 2
    else:
        assert again.returncode != 2, again.stderr


def test_a_configuration_that_an_agent_wrote_beside_a_command_line_imports_nothing_before_it_is_refused(tmp_path: Path) -> None:
    mark, place = tmp_path / "came in", tmp_path / "place"
    place.mkdir()
    (place / "text.md").write_text("a\n")
    tables = '[loop]\nid = "place-1"\n[hooks]\npython = ["evil:hear"]\n[generator]\ncommand = "true"\n'
    toml = f'{tables}[[checks]]\nname = "x"\ncommand = "true"\n'
    lines = ("from pathlib import Path", f"Path('evil.py').write_text({f'open({str(mark)!r}, {chr(119)!r})'!r})")
    program = tmp_path / "agent.py"
    program.write_text("\n".join([*lines, f"Path('jumar.toml').write_text({toml!r})", "import os; os.kill(os.getppid(), 9)"]))
    command = ("--keep-going", "-n", "1", "--check", "true", "--no-input", "--", sys.executable, str(program))
    jumar(place, "run", *command, check=None)
    assert (place / "evil.py").exists()
    refused = jumar(place, "run", "--no-input", check=2)
    assert "the configuration is another one" in refused.stderr
    assert not mark.exists()


def refused_after_a_kill(tmp_path: Path, edit: str, then: str = "") -> tuple[Path, str]:
    """Let an agent edit the configuration and kill jumar; return the project, and how the next run refused to begin."""
    act = f"path = pathlib.Path('jumar.toml'); path.write_text(path.read_text().replace('{edit}')){then}"
    place = project(tmp_path, act, most=3, kill=True)
    assert jumar(place, "run", "--no-input", check=None).returncode == -9
    refused = jumar(place, "run", "--no-input", check=2)
    assert calls(place) == 2
    return place, " ".join(refused.stderr.split())


@pytest.mark.parametrize(
    ("edit", "given"),
    [
        ("max_cost_usd = 0.05', 'max_cost_usd = 9", ("--max-cost", "0.09")),
        ("max_cost_usd = 0.05', '", ("--max-cost", "0.09")),
        ("reserve_cost_usd = 0.01', '", ("--reserve-cost", "0.01")),
        ("max_iterations = 3', 'max_iterations = 50", ("-n", "3")),
        ("max_iterations = 3', '", ("-n", "3")),
        ("[budget]', '[retry]\\ngenerator_failed = 12\\n[budget]", ("--accept-changes",)),
        ("failures = 3', 'failures = 999", ("--accept-changes",)),
        ("[budget]', '[budget]\\nmax_iterations = 99", ("--accept-changes",)),
        ("[budget]', '[budget]\\non_unknown_cost = \"allow\"", ("--accept-changes",)),
        ("[budget]', '[hooks]\\npython = [\"builtins:id\"]\\n[budget]", ("--accept-changes",)),
    ],
)
def test_a_limit_that_was_loosened_after_a_kill_waits_for_a_person(tmp_path: Path, edit: str, given: tuple[str, ...]) -> None:
    place, said = refused_after_a_kill(tmp_path, edit)
    assert "since jumar was killed while an agent ran, which may have written that" in said
    jumar(place, "run", "--no-input", *given, check=0)
    assert calls(place) == 4


ENDED = "; [path.with_name(path.name.replace('start', 'end')).write_text('{}') for path in store.glob('attempts/*.start.json')]"


@pytest.mark.parametrize("then", ["", ENDED], ids=["", "an end of its own"])
def test_a_configuration_that_names_another_loop_after_a_kill_waits_for_a_person(tmp_path: Path, then: str) -> None:
    edit = """id = "t"', 'id = "t-2"').replace('max_iterations = 3', 'max_iterations = 50"""
    place, said = refused_after_a_kill(tmp_path, edit, then)
    assert "loop 't' of this directory did not end" in said
    jumar(place, "run", "--no-input", "--new", "-n", "1", check=0)


def test_the_program_that_resets_before_a_check_is_the_persons(tmp_path: Path) -> None:
    place = project(tmp_path, "pathlib.Path('reset.sh').write_text('echo 99 > told')", most=3)
    (place / "reset.sh").write_text("true\n")
    config = place / "jumar.toml"
    config.write_text(config.read_text().replace("[loop]\n", "[loop]\nreset = ['sh', 'reset.sh']\n", 1))
    done = jumar(place, "run", "--no-input", check=None)
    assert "reset.sh, which [loop] reset runs, was changed by the generator and put back" in " ".join(done.stdout.split())
    assert (place / "reset.sh").read_text() == "true\n"
    assert not (place / "told").exists()


def test_a_report_of_the_generators_own_is_no_score(tmp_path: Path) -> None:
    suite = "<testsuite tests='2'><testcase name='a'/><testcase name='b'>{}</testcase></testsuite>"
    act = f"pathlib.Path('mine.xml').write_text({suite.format('')!r}.replace('2', '1'))"
    place = project(tmp_path, act, most=2)
    (place / "theirs").write_text(suite.format("<failure/>"))
    config = place / "jumar.toml"
    scorer = "[[scorers]]\ndimension = 'tests'\nbuiltin = 'junit'\npath = '*.xml'\n"
    check = "[[checks]]\nname = 'report'\ncommand = 'cp theirs theirs.xml; true'\n"
    config.write_text(config.read_text() + check + scorer + "[weights]\ntests = 1.0\n")
    jumar(place, "run", "--no-input", check=None)
    records = [json.loads(path.read_text()) for path in sorted(place.glob(".jumar/loops/t/iterations/*/metrics.json"))]
    assert [0.5] * 3 == [record["dimensions"]["tests"] for record in records]


ASKING = """import subprocess, time
here = pathlib.Path({answers!r})
if number == 2 and not here.exists():
    here.mkdir()
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(0.5)
    for what in {commands!r}:
        command = {before!r} + [sys.executable, '-m', 'jumar.cli.entry', *what.split()]
        done = subprocess.run(command, capture_output=True, text=True)
        (here / what).write_text(f'{{done.returncode}} {{done.stderr}}')
    (here / 'done').touch()
    time.sleep({lives})
"""
SELECT = "select t --use 1 --reason better"


def asked(tmp_path: Path, *commands: str, before: tuple[str, ...] = (), lives: float = 0) -> tuple[Path, dict[str, str]]:
    """Run an agent that kills jumar and then calls it; return where, and what it was answered."""
    answers = tmp_path / "answers"
    act = ASKING.format(answers=str(answers), commands=commands, before=list(before), lives=lives)
    place = project(tmp_path, act.rstrip())
    assert jumar(place, "run", "--no-input", check=None).returncode == -9
    deadline = time.monotonic() + 30
    while not (answers / "done").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return place, {path.name: " ".join(path.read_text().split()) for path in answers.iterdir()}


@pytest.mark.parametrize(
    "before", [(), ("env", "-u", "JUMAR_LOOP_ID", "-u", "JUMAR_ITERATION", "-u", "JUMAR_STEP"), ("setsid", "-w")]
)
def test_what_a_program_of_the_loop_selects_waits_for_a_person(tmp_path: Path, before: tuple[str, ...]) -> None:
    place, said = asked(tmp_path, SELECT, before=before)
    assert said[SELECT].startswith("2 jumar: iteration 1 is not selected: a program of iteration 2 was there")
    assert "iteration 1 is not selected" in jumar(place, "show", check=0).stderr
    ended = jumar(place, "run", "--no-input", check=0)
    assert "iteration 1 is not selected" in ended.stdout + ended.stderr
    assert "words 4" in (place / "text.md").read_text()
    jumar(place, "select", "--use", "1", "--reason", "a person says so", check=0)
    assert "not selected" not in jumar(place, "show", check=0).stderr
    jumar(place, "apply", check=0)
    assert "words 1" in (place / "text.md").read_text()
    decisions = LoopStore.open(place / ".jumar/loops/t").decisions()
    assert ["held", "override"] == [one.kind for one in decisions if one.kind in {"held", "override"}]


def test_what_is_selected_while_a_program_of_the_loop_runs_waits_too(tmp_path: Path) -> None:
    place, _ = asked(tmp_path, lives=60)
    by_a_person = jumar(place, *SELECT.split(), check=2)
    assert "process" in by_a_person.stderr
    assert "which still runs, was there when that was asked for" in by_a_person.stderr
    jumar(place, "run", "--no-input", check=0)  # it ends what the killed run left
    assert "words 4" in (place / "text.md").read_text()


def at_a_terminal(place: Path, answer: str, *arguments: str) -> tuple[int, str]:
    """Run jumar with a terminal as its input and return its exit code and what it said on stderr."""
    ours, theirs = os.openpty()
    os.write(ours, answer.encode() + b"\n")
    command = [sys.executable, "-m", "jumar.cli.entry", *arguments]
    done = subprocess.run(command, cwd=place, stdin=theirs, capture_output=True, text=True, timeout=60, check=False)
    os.close(ours)
    os.close(theirs)
    return done.returncode, done.stderr


def test_what_is_selected_after_a_kill_waits_until_the_loop_was_resumed(tmp_path: Path) -> None:
    place, _ = asked(tmp_path)
    jumar(place, "status", check=None)
    said = jumar(place, *SELECT.split(), check=2).stderr
    assert "iteration 1 is not selected: a step of iteration 2 that never ended was there" in said
    jumar(place, *SELECT.split(), check=2)
    assert at_a_terminal(place, "n", *SELECT.split())[0] == 2
    jumar(place, "run", "--no-input", check=0)
    assert "words 4" in (place / "text.md").read_text()
    jumar(place, *SELECT.split(), check=0)


def test_somebody_at_a_terminal_may_select_after_a_kill(tmp_path: Path) -> None:
    place, _ = asked(tmp_path)
    code, said = at_a_terminal(place, "y", *SELECT.split())
    assert "jumar was killed in a step of iteration 2 that never ended" in said
    assert code == 0
    assert LoopStore.open(place / ".jumar/loops/t").decisions()[-1].kind == "override"


RECHECKED = """import os, pathlib, signal, subprocess, time
store, once = pathlib.Path({store!r}), pathlib.Path({once!r})
if not once.exists() and (store / 'recheck/begun.json').exists():
    once.touch()
    os.kill(os.getppid(), signal.SIGKILL)
    kept = [name + '=' + os.environ[name] for name in ('PATH', 'HOME', 'XDG_STATE_HOME', 'PYTHONPATH') if name in os.environ]
    wiped = ['env', '-i', *kept, 'setsid', '-f']
    command = {jumar!r} + ' select t --use 1 --reason better > {once}.said 2>&1; touch {once}.done'
    subprocess.run([*wiped, 'sh', '-c', 'cd {place}; ' + command])
    time.sleep(5)
"""


def test_what_a_program_of_the_recheck_selects_waits_for_a_person(tmp_path: Path) -> None:
    place, once = tmp_path / "project", tmp_path / "once"
    act = "pathlib.Path('node_modules').mkdir(exist_ok=True); pathlib.Path('node_modules/x').write_text(str(number))"
    assert project(tmp_path, act, most=3) == place
    (place / ".gitignore").write_text("node_modules\n")
    jumar_command = f"{sys.executable} -m jumar.cli.entry"
    code = RECHECKED.format(store=str(place / ".jumar/loops/t"), once=str(once), jumar=jumar_command, place=place)
    (place / "check.py").write_text(code)
    config = place / "jumar.toml"
    config.write_text(config.read_text().replace('"grep -q words text.md"', f'"exec {sys.executable} check.py"'))
    assert jumar(place, "run", "--no-input", check=None).returncode == -9
    deadline = time.monotonic() + 30
    while not once.with_name("once.done").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    decisions = LoopStore.open(place / ".jumar/loops/t").decisions()
    said = once.with_name("once.said").read_text()
    assert ["held"] == [one.kind for one in decisions if one.kind in {"held", "override"}], said


KILLING = """import os, pathlib, signal, sys, time
once, scratch = pathlib.Path({once!r}), pathlib.Path({scratch!r})
if once.exists():
    sys.exit(0)
time.sleep(1.3)
for beat in scratch.glob('*.beat'):
    {forge}
once.touch()
os.kill(os.getppid(), signal.SIGKILL)
time.sleep(5)
"""


@pytest.mark.parametrize("forge", ["beat.write_text('0.000')", "beat.unlink()"])
def test_a_killed_evaluation_counts_with_its_time_whatever_its_heartbeat_says(tmp_path: Path, forge: str) -> None:
    place = project(tmp_path, "pass", most=1)
    store = place / ".jumar/loops/t"
    code = KILLING.format(once=str(tmp_path / "once"), scratch=str(store / "scratch"), forge=forge)
    (tmp_path / "check.py").write_text(code)
    config = place / "jumar.toml"
    config.write_text(config.read_text().replace('"grep -q words text.md"', f'"exec {sys.executable} {tmp_path}/check.py"'))
    assert jumar(place, "run", "--no-input", check=None).returncode == -9
    jumar(place, "run", "--no-input", check=0)
    attempts = LoopStore.open(store).attempts()
    lost = [each.end.seconds for each in attempts if each.end and each.end.outcome == "lost"]
    assert 1 == len(lost)
    assert 1 <= (lost[0] or 0) < 10


def test_what_changes_a_loop_is_not_done_for_its_programs(tmp_path: Path) -> None:
    commands = ("apply t", "cleanup t --keep 0", "repair t -y", "repair t --believe", "rm t -y", "run -n 99")
    place, said = asked(tmp_path, *commands)
    for command in commands:
        words = f"2 jumar: a program of iteration 2 of loop 't' called `jumar {command.split()[0]}`"
        assert said[command].startswith(words), said[command]
    jumar(place, "run", "--no-input", check=0)
    assert [0, 1, 2, 3, 4] == [one["iteration_number"] for one in records(place)]
    assert verify(LoopStore.open(place / ".jumar/loops/t")).problems == ()


COPYING = """elsewhere = pathlib.Path({elsewhere!r})
if number == 2 and not elsewhere.exists():
    copy = elsewhere / '.jumar/loops/other'
    copy.parent.mkdir(parents=True)
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(0.3)
    shutil.copytree(store, copy)
    [path.unlink() for path in (copy / 'attempts').iterdir() if path.name >= '000005']
    {more}
    mine = pathlib.Path('jumar.toml').read_text().replace('id = "t"', 'id = "other"').replace('grep -q words', 'true')
    (elsewhere / 'jumar.toml').write_text(mine)
    (elsewhere / 'text.md').write_text('best words 9')
    command = [sys.executable, '-m', 'jumar.cli.entry', *{command!r}]
    done = subprocess.run(command, cwd=elsewhere, capture_output=True, text=True)
    (elsewhere / 'said').write_text(f'{{done.returncode}} {{done.stderr}}')"""


@pytest.mark.parametrize(
    ("command", "more"),
    [
        ("run --accept-changes --no-input", "pass"),
        ("run --accept-changes --no-input", "[shutil.rmtree(copy / name) for name in ('attempts', 'iterations')]"),
        ("apply other", "pass"),
        ("repair other --believe", "pass"),
    ],
)
def test_jumar_marks_nothing_in_a_copy_of_the_loop_for_its_programs(tmp_path: Path, command: str, more: str) -> None:
    act = f"import subprocess, time\n{COPYING.format(elsewhere=str(tmp_path / 'elsewhere'), command=command.split(), more=more)}"
    place = project(tmp_path, act)
    assert jumar(place, "run", "--no-input", check=None).returncode == -9
    deadline = time.monotonic() + 30
    while not (tmp_path / "elsewhere/said").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    said = " ".join((tmp_path / "elsewhere/said").read_text().split())
    assert re.match("2 jumar: a program of iteration 2 of loop '(t|other)' called `jumar", said), said


@pytest.mark.parametrize("way", ["a file that is nested too deeply", "a lock that is"])
def test_what_is_nested_too_deeply_beside_a_loop_ends_no_command(tmp_path: Path, way: str) -> None:
    deep = "'{{\"pid\": ' + '[' * 4000" if "lock" in way else "'{{\"a\":' * 50_000"
    paths = ("locks/t",) if "lock" in way else ("loops/zzz/loop.json", "loops/zzz/attempts/000009.end.json")
    act = f"for path in {paths!r}:\n    path = origin / '.jumar' / path\n    path.parent.mkdir(parents=True, exist_ok=True)\n"
    act += f"    path.write_text({deep.replace('{{', '{')})"
    place = project(tmp_path, act, most=2)
    for command in ("run", "status", "show", "apply", "run"):
        done = jumar(place, command, check=None)
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode in {0, 2}, done.stderr


@pytest.mark.matrix
@pytest.mark.parametrize("kind", ["a link", "a FIFO", "a file", "an endless file"])
@pytest.mark.parametrize(
    "place", ["scratch", "undo", "decisions", "checks", "quarantine", "best-tracker.json", "attempts/000009.start.json"]
)
@pytest.mark.parametrize("kill", [False, True], ids=["running", "killed"])
def test_what_stands_in_the_place_of_a_part_of_the_store_is_moved_and_not_gone_through(
    tmp_path: Path, place: str, kind: str, *, kill: bool
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "0001.txt").write_text("a person's")
    make = {
        "a link": f"there.symlink_to('{mine}')",
        "a FIFO": "os.mkfifo(there)",
        "a file": "there.write_text('')",
        "an endless file": "there.symlink_to('/dev/zero')",
    }[kind]
    act = (
        f"there = store / '{place}'\n"
        "if number == 2 and not pathlib.Path(store, 'logs/planted').exists():\n"
        "    (store / 'logs').mkdir(exist_ok=True); (store / 'logs/planted').write_text('')\n"
        "    shutil.rmtree(there) if there.is_dir() else there.unlink(missing_ok=True)\n"
        f"    {make}"
    )
    loop = project(tmp_path, act, most=3, kill=kill)
    if kill:
        assert jumar(loop, "run", "--no-input", check=None).returncode == -9
    ended = jumar(loop, "run", "--no-input", check=None)
    assert ended.returncode in {0, 10, 11}, ended.stderr
    assert {path.name: path.read_text() for path in mine.iterdir()} == {"0001.txt": "a person's"}
    holds(loop, 3)


SCRATCH = {
    "a link for it": "shutil.rmtree(scratch); scratch.symlink_to(mine)",
    "a file for it": "shutil.rmtree(scratch); scratch.write_text('')",
    "a link in it": "(scratch / 'protected').symlink_to(mine); pathlib.Path('jumar.toml').write_text('')",
    "a file larger than the disk": "open(scratch / 'notes.txt', 'wb').truncate(8 << 40)",
    "too many files": "[open(scratch / f'{each}', 'w').close() for each in range(3000)]",
}


@pytest.mark.matrix
@pytest.mark.parametrize("isolation", ["none", "copy"])
@pytest.mark.parametrize("attack", SCRATCH)
def test_what_an_agent_makes_of_its_scratch_folder_is_a_log_at_most(tmp_path: Path, attack: str, isolation: str) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "prompt.md").write_text("a person's")
    scratch = "pathlib.Path(os.environ['JUMAR_USAGE_FILE']).parent"
    act = f"scratch, mine = {scratch}, {str(mine)!r}; os.chdir(origin); {SCRATCH[attack]}"
    place = project(tmp_path, act, isolation=isolation, most=3)
    ended = jumar(place, "run", "--no-input", check=None)
    assert ended.returncode in {0, 10, 11}, ended.stderr
    assert {path.name: path.read_text() for path in mine.iterdir()} == {"prompt.md": "a person's"}
    logs = place / ".jumar/loops/t/iterations/iteration-002/logs"
    kept = [path.stat() for path in logs.rglob("*")]
    assert len(kept) < 1200
    assert sum(each.st_size for each in kept) < 100 << 20
    assert (logs / "left-out.txt").exists() == ("larger" in attack or "many" in attack)
    holds(place, 3)


def test_no_pattern_in_a_gitignore_holds_up_a_loop(tmp_path: Path) -> None:
    act = "pathlib.Path('.gitignore').write_text('*a' * 30 + 'b\\n'); pathlib.Path('a' * 200).write_text('')"
    place = project(tmp_path, act, most=3)
    jumar(place, "run", "--no-input", check=0, timeout=60)
    assert [one["quality_score"] for one in records(place)] == [10.0, 11.0, 12.0, 13.0]


@pytest.mark.matrix
@pytest.mark.parametrize("isolation", ["none", "copy"])
@pytest.mark.parametrize("act", ["open('.gitignore', 'w')", "pathlib.Path('env/.gitignore').unlink(missing_ok=True)"])
def test_what_git_ignored_at_the_start_is_not_removed_for_an_agent(tmp_path: Path, act: str, isolation: str) -> None:
    worse = f"number % 2 or ({act}, open('text.md', 'w').write('words 0'), open('new.bin', 'w'))"
    place = project(tmp_path, worse, isolation=isolation)
    (place / "env").mkdir()
    for path, content in ((".gitignore", "*.bin\n"), ("keep.bin", "a person's"), ("env/.gitignore", "*\n"), ("env/keep", "too")):
        (place / path).write_text(content)
    jumar(place, "run", "--no-input", check=0)
    assert [one["parent"] for one in records(place)] == [None, 0, 1, 1, 3]
    assert len(records(place)[2]["artifacts_detail"]) > len(records(place)[1]["artifacts_detail"])
    work = place if isolation == "none" else place / ".jumar/work/t"
    for tree in (place, work):
        assert ((tree / "keep.bin").read_text(), (tree / "env/keep").read_text()) == ("a person's", "too")
    for number in ("4", "3"):
        jumar(place, "select", "t", "--use", number, "--reason", "because", check=0)
        jumar(place, "apply", "t", check=0)
    while jumar(place, "apply", "t", "--undo", check=None).returncode == 0:
        assert ((place / "keep.bin").read_text(), (place / "env/keep").read_text()) == ("a person's", "too")
    assert ((place / "text.md").read_text(), (place / ".gitignore").read_text()) == ("words 0\n", "*.bin\n")


CLOSED = {
    "the loop": "{store}",
    "its iterations": "{store}/iterations",
    "its attempts": "{store}/attempts",
    "what waits": "{store}/pending",
    "its other parts": "{store}/decisions {store}/checks {store}/recheck {store}/scratch/*",
    "a snapshot": "{store}/iterations/iteration-001/artifacts",
    "another iteration": "{store}/iterations/iteration-000",
    "the checks that it has": "{store}/checks/0001",
    "all loops": "{store}/..",
    "a loop that is none": "$(mkdir -p {store}/../zz && echo {store}/../zz)",
    "the root": "{store}/../..",
    "the locks": "{store}/../../locks {store}/../../locks/*",
    "all trees": "{store}/../../work",
}


@pytest.mark.skipif(without_rights() is None, reason="every file can be read here")
@pytest.mark.matrix
@pytest.mark.parametrize("kill", [False, True], ids=["", "killed"])
@pytest.mark.parametrize("isolation", ["none", "copy"])
@pytest.mark.parametrize("attack", CLOSED)
def test_what_is_closed_to_its_owner_is_opened_again(tmp_path: Path, attack: str, isolation: str, *, kill: bool) -> None:
    act = f"if number == 2: os.system(f'chmod 0 {CLOSED[attack]} 2>/dev/null')"
    place = project(tmp_path, act, isolation=isolation, kill=kill)
    for code in (-9, 0) if kill else (0,):
        ended = run_without_rights(place)
        assert code == ended.returncode, ended.stdout + ended.stderr
    assert [one["quality_score"] for one in records(place)] == [10.0, 11.0, 12.0, 13.0, 14.0]
    assert verify(LoopStore.open(place / ".jumar/loops/t")).problems == ()


@pytest.mark.skipif(without_rights() is None, reason="every file can be read here")
@pytest.mark.parametrize("isolation", ["none", "copy"])
def test_the_folder_of_a_check_that_is_closed_before_a_kill_is_opened_again(tmp_path: Path, isolation: str) -> None:
    act = f"os.path.exists('{tmp_path}/calls.log.killed') or os.system('rm -r tests; mkdir tests; chmod 0 tests')"
    place = project(tmp_path, act, isolation=isolation, kill=True)
    (place / "tests").mkdir()
    (place / "tests/check.sh").write_text("grep -q words text.md\n")
    config = (place / "jumar.toml").read_text().replace("grep -q words text.md", "sh tests/check.sh")
    (place / "jumar.toml").write_text(config)
    for code in (-9, 0):
        ended = run_without_rights(place)
        assert code == ended.returncode, ended.stdout + ended.stderr
    assert [one["verification_status"] for one in records(place)] == ["passed"] * 5


def run_without_rights(place: Path) -> subprocess.CompletedProcess[str]:
    command = [*(without_rights() or []), sys.executable, "-m", "jumar.cli.entry", "run", "--no-input"]
    return subprocess.run(command, cwd=place, capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL)


ACL = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", tag, 0, 0xFFFFFFFF) for tag in (1, 4, 32))  # no rights for anybody


def has_acls(directory: Path) -> bool:
    with contextlib.suppress(OSError, AttributeError):
        os.setxattr(directory, "system.posix_acl_default", ACL)
        os.removexattr(directory, "system.posix_acl_default")
        return True
    return False


@pytest.mark.skipif(without_rights() is None, reason="every file can be read here")
@pytest.mark.matrix
@pytest.mark.parametrize("kill", [False, True])
@pytest.mark.parametrize("isolation", ["none", "copy"])
@pytest.mark.parametrize(
    "where", ["store.rglob('.')", "store.parents[1].glob('*/')", "[os.getcwd()]", "[os.mkdir('sub') or 'sub']"]
)
def test_an_acl_that_closes_what_is_made_in_a_directory_goes(tmp_path: Path, where: str, isolation: str, *, kill: bool) -> None:
    if not has_acls(tmp_path):
        pytest.skip("no ACLs here")
    act = f"[os.setxattr(one, 'system.posix_acl_default', {ACL!r}) for one in {where} if os.path.isdir(one)]\n"
    act += "'sub' in os.listdir() and pathlib.Path('sub/text.md').write_text('words')"
    place = project(tmp_path, act, isolation=isolation, kill=kill)
    for code in (-9, 0) if kill else (0,):
        ended = run_without_rights(place)
        assert code == ended.returncode, ended.stdout + ended.stderr
    assert [0, 1, 2, 3, 4] == [one["iteration_number"] for one in records(place)]
    assert verify(LoopStore.open(place / ".jumar/loops/t")).problems == ()


BROKEN_GIT = {
    "a directory for a lock": "os.system('mkdir -p $(git rev-parse --absolute-git-dir)/index.lock/x')",
    "a file for the repository": "os.system('rm -rf .git; echo hi > .git')",
    "a link to itself": "os.system('rm -rf .git; ln -s .git .git')",
    "a FIFO": "os.system('rm -rf .git; mkfifo .git')",
    "the person's repository": "os.system(f'rm -rf .git; echo gitdir: {origin}/.git > .git')",
    "a link to the person's repository": "os.system(f'rm -rf .git; ln -s {origin}/.git .git')",
    "a FIFO among all worktrees": (
        "os.system(f'mkdir -p {origin}/.git/worktrees/zz; mkfifo {origin}/.git/worktrees/zz/gitdir; rm -rf .git')"
    ),
}


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.matrix
@pytest.mark.parametrize("isolation", ["copy", "worktree"])
@pytest.mark.parametrize("attack", BROKEN_GIT)
def test_what_becomes_of_git_in_a_tree_of_ours_ends_nothing(tmp_path: Path, attack: str, isolation: str) -> None:
    place = project(tmp_path, BROKEN_GIT[attack], isolation=isolation)
    for command in ("init -q", "add -A", "-c user.name=a -c user.email=a@b commit -qm a"):
        subprocess.run(["git", *command.split()], cwd=place, check=True)
    (place / ".git/index.lock").write_text("of a git that runs")
    jumar(place, "run", "--no-input", "-n", "3", check=0)
    jumar(place, "run", "--no-input", "-n", "4", check=0)
    assert [one["quality_score"] for one in records(place)] == [10.0, 11.0, 12.0, 13.0, 14.0]
    assert (place / ".git/index.lock").exists()
    jumar(place, "cleanup", "t", "--trees", check=0)


@pytest.mark.matrix
@pytest.mark.parametrize("isolation", ["none", "copy"])
@pytest.mark.parametrize("rule", ["text.md", "*", "new/"])
def test_what_an_agent_ignores_itself_is_in_its_snapshot_all_the_same(tmp_path: Path, rule: str, isolation: str) -> None:
    act = f"""pathlib.Path('new').mkdir(exist_ok=True); pathlib.Path('new/text.md').write_text(f'{{number}}')
    number == 3 and pathlib.Path('.gitignore').write_text({rule + chr(10)!r})
    number == 4 and pathlib.Path('text.md').write_text('words 0')"""
    place = project(tmp_path, act.replace("\n    ", "\n"), isolation=isolation)
    (place / ".gitignore").write_text("")
    jumar(place, "run", "--no-input", check=0)
    assert [one["parent"] for one in records(place)] == [None, 0, 1, 2, 3]
    for number in range(2, 5):
        kept = place / f".jumar/loops/t/iterations/iteration-{number:03d}/artifacts"
        written = "words 0" if number == 4 else f"words {number}\n"
        assert ((kept / "text.md").read_text(), (kept / "new/text.md").read_text()) == (written, f"{number}")
        assert (kept / ".gitignore").read_text() == ("" if number == 2 else f"{rule}\n")
    jumar(place, "apply", "t", check=0 if isolation == "copy" else None)
    assert ((place / "text.md").read_text(), (place / "new/text.md").read_text()) == ("words 3\n", "3")
    jumar(place, "select", "t", "--use", "1", "--reason", "because", check=0)
    jumar(place, "apply", "t", check=0)
    while jumar(place, "apply", "t", "--undo", check=None).returncode == 0:
        pass
    assert (place / "text.md").read_text() == "words 0\n"
    assert not (place / "new/text.md").exists()


SUICIDAL = """
import os, pathlib, signal
if os.environ["JUMAR_ITERATION"] == "1":
    scratch = max(pathlib.Path(".jumar/loops/t/attempts").glob("*.start.json")).name[:6]
    usage = pathlib.Path(".jumar/loops/t/scratch", scratch, "usage.json")
    usage.parent.mkdir(parents=True, exist_ok=True)
    usage.write_text('{"cost_usd": 0, "tokens_used": 0}')
    shell = pathlib.Path(f"/proc/{os.getppid()}/stat").read_text().split()
    os.kill(int(shell[3]) if shell[1] == "(sh)" else os.getppid(), signal.SIGKILL)
print(0.5)
"""
JUDGE = """
import json, sys
open(sys.argv[1], "a").write("asked\\n")
print(json.dumps({"gestalt": 3, "usage": {"cost_usd": 0.05, "input_tokens": 1, "output_tokens": 1}}))
"""


@pytest.mark.parametrize(("most", "kills"), [(0.25, 3), (9, MOST_KILLED)], ids=["limited", "plenty"])
def test_what_kills_jumar_while_it_is_scored_is_paid_for_and_given_up(tmp_path: Path, most: float, kills: int) -> None:
    place = project(tmp_path, "pass", most=2)
    (tmp_path / "judge.py").write_text(JUDGE)
    (place / "prog.py").write_text(SUICIDAL)
    config = (place / "jumar.toml").read_text().replace("max_cost_usd = 0.05", f"max_cost_usd = {most}")
    (place / "jumar.toml").write_text(
        config
        + "[[scorers]]\ndimension = 'judged'\nbuiltin = 'judge'\nitems = 'text.md'\nrubric = 'text'\nrepeat = 1\ncache = false\n"
        f"judge = 'command:{sys.executable} {tmp_path}/judge.py {tmp_path}/asked.log'\nreserve_cost = 0.05\n"
        f"[[scorers]]\ndimension = 'program'\ncommand = '{sys.executable} prog.py'\n"
    )
    ends = [jumar(place, "run", "--no-input", check=None).returncode for _ in range(kills + 1)]
    assert (ends[:-1], ends[-1] in {0, 10, 11}) == ([-9] * kills, True)
    assert [one["status"] for one in records(place)[1:2]] == ["validator_broken"]
    assert f"jumar was killed {kills} times while it was evaluated" in records(place)[1]["status_reason"]
    paid = 0.05 * len((tmp_path / "asked.log").read_text().split())
    cost = json.loads(jumar(place, "status", "t", "--json", check=0).stdout)["spend"]["cost_usd"]
    assert paid <= cost <= most


@pytest.mark.parametrize("isolation", ["none", "copy"])
def test_what_kills_jumar_while_it_generates_is_a_failed_iteration_in_the_end(tmp_path: Path, isolation: str) -> None:
    kill = "os.kill(os.getppid(), signal.SIGKILL) if number != 2 else None"
    place = project(tmp_path, kill, isolation=isolation, most=3)
    (tmp_path / "agent.py").write_text((tmp_path / "agent.py").read_text().replace("number >= 2", "True"))
    config = (place / "jumar.toml").read_text()
    (place / "jumar.toml").write_text(config.replace("max_cost_usd = 0.05", "max_cost_usd = 9"))
    ends = [jumar(place, "run", "--no-input", check=None) for _ in range(2 * MOST_KILLED + 1)]
    assert [end.returncode for end in ends[:-1]] == [-9] * (2 * MOST_KILLED)
    assert ends[-1].returncode in {0, 10, 11}, ends[-1].stderr
    assert calls(place) == 2 * MOST_KILLED + 1
    assert [one["status"] for one in records(place)] == ["ok", "generator_failed", "ok", "generator_failed"]
    assert records(place)[1]["status_reason"] == f"jumar was killed {MOST_KILLED} times while its generator ran"
    for number, held in enumerate(("words 0\n", "words 0\n", "words 2\n", "words 2\n")):
        assert (place / f".jumar/loops/t/iterations/iteration-{number:03d}/artifacts/text.md").read_text() == held
    assert verify(LoopStore.open(place / ".jumar/loops/t")).problems == ()


MORE = {
    "takes a test away": "pathlib.Path('test_text.py').unlink(missing_ok=True)",
    "makes its test say yes": "pathlib.Path('test_text.py').write_text('')",
    "configures the tests": "pathlib.Path('conftest.py').write_text('import os; os._exit(0)')",
    "plants bytecode": (
        "import py_compile\npathlib.Path('other.py').write_text('WORDS = 99')\npy_compile.compile('other.py', cfile='text.pyc')"
    ),
    "deletes what it works in": "[shutil.rmtree(path) if path.is_dir() else path.unlink() for path in pathlib.Path('.').iterdir()"
    " if path.name not in {'.jumar', 'jumar.toml'}]",
    "a limit in the configuration": (
        "path = pathlib.Path('jumar.toml')\n"
        "path.exists() and path.write_text(path.read_text().replace('max_iterations = 3', 'max_iterations = 9'))"
    ),
    "asks jumar itself": "os.system(f'{sys.executable} -m jumar.cli.entry select t --use 0 --reason better >/dev/null 2>&1')",
    "nothing": "pass",
}
LIMITED = "[artifacts]\nmax_file_mb = 1\nmax_files = 50\n"


def bad_pass(tmp_path: Path, isolation: str, protect: bool, *, act: str = "pass", check: str = ":") -> Path:
    """A loop of four iterations of which the second does ``act``, or its check does ``check`` in the shell."""
    act = "if number == 2:\n    " + act.strip().replace("\n", "\n    ")
    place = project(tmp_path, act, isolation=isolation)
    (place / "kept").mkdir()
    (place / "kept/words.md").write_text("words\n")
    (place / "test_text.py").write_text("")
    act = check.format(store=place / ".jumar/loops/t", origin=place).replace('"', '\\"')
    config = (place / "jumar.toml").read_text()
    config = config.replace("grep -q words text.md", f"if [ $JUMAR_ITERATION = 2 ]; then {act}; else grep -q words text.md; fi")
    config = config.replace("[generator]", "protect = ['test_*.py']\n[generator]") if protect else config
    (place / "jumar.toml").write_text(config + LIMITED)
    if isolation == "worktree":
        for command in ("init -q", "add -A", "-c user.name=a -c user.email=a@b commit -qm a"):
            subprocess.run(["git", *command.split()], cwd=place, check=True)
    return place


def goes_on(place: Path) -> list[dict[str, Any]]:
    """Run the loop; return its records: every iteration is there, the others are good, and the person's files are theirs."""
    ended = run_without_rights(place)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found = records(place)
    assert [one["status"] for one in found if one["iteration_number"] != 2] == ["ok"] * 4
    assert [one["verification_status"] for one in found if one["iteration_number"] != 2] == ["passed"] * 4
    assert calls(place) == 4
    assert sum(one["token_cost_usd"] or 0 for one in found) == pytest.approx(0.04)
    assert verify(LoopStore.open(place / ".jumar/loops/t")).problems == ()
    if "work" in {path.name for path in (place / ".jumar").iterdir()}:
        assert (place / "text.md").read_text() == "words 0\n"
    COUNTS["bad passes"] += 1
    return found


def cells(attacks: Mapping[str, str]) -> list[tuple[str, str]]:
    kinds = ("none", "copy", "worktree") if shutil.which("git") else ("none", "copy")
    return [(name, isolation) for name in attacks for isolation in kinds if isolation in WHERE.get(name, kinds)]


@pytest.mark.matrix
@pytest.mark.parametrize("protect", [False, True], ids=["", "protected"])
@pytest.mark.parametrize(("attack", "isolation"), cells(BAD_PASSES))
def test_a_tree_that_cannot_be_kept_fails_its_iteration_and_no_other(
    tmp_path: Path, attack: str, isolation: str, *, protect: bool
) -> None:
    if "unreadable" in attack and without_rights() is None:
        pytest.skip("every file can be read here")
    place = bad_pass(tmp_path, isolation, protect, act=BAD_PASSES[attack])
    found = goes_on(place)
    assert (found[2]["status"], found[2]["failure"], found[2]["quality_score"]) == ("snapshot_failed", "snapshot_failed", None)
    assert found[2]["status_reason"]
    assert [detail["path"] for detail in found[3]["artifacts_detail"]] == [
        detail["path"] for detail in found[1]["artifacts_detail"]
    ]
    assert [one["parent"] for one in found] == [None, 0, 1, 1, 3]
    prompt = (place / ".jumar/loops/t/iterations/iteration-003/logs/prompt.md").read_text()
    assert "it cannot be kept" in prompt


@pytest.mark.matrix
@pytest.mark.parametrize("protect", [False, True], ids=["", "protected"])
@pytest.mark.parametrize(("attack", "isolation"), cells(IN_SCORING))
def test_a_snapshot_or_a_tree_deleted_while_it_is_scored_ends_nothing(
    tmp_path: Path, attack: str, isolation: str, *, protect: bool
) -> None:
    place = bad_pass(tmp_path, isolation, protect, check=IN_SCORING[attack] + "; grep -q words text.md")
    with (place / "jumar.toml").open("a") as config:
        config.write("[[checks]]\nname = 'after it'\ncommand = 'true'\n")
    found = goes_on(place)
    assert [each.name for each in (place / "kept").iterdir()] == ["words.md"]
    assert found[2]["verification_status"] in {"failed", "skipped"}
    assert found[2]["quality_score"] in {None, 12.0}


def test_the_folder_of_a_protected_file_that_is_closed_while_it_is_scored_ends_nothing(tmp_path: Path) -> None:
    if without_rights() is None:
        pytest.skip("every file can be read here")
    place = bad_pass(tmp_path, "none", True, check="rm -r kept; mkdir -p kept/x; chmod 0 kept; grep -q words text.md")
    (place / "kept/test_more.py").write_text("")
    found = goes_on(place)
    assert found[2]["verification_status"] == "failed"
    assert (place / "kept/test_more.py").exists()


RUNS = {"full": 500}.get(os.environ.get("JUMAR_SWEEP", ""), 60)

TEST = "import text\nassert text.WORDS < 50\n"


def mixed(tmp_path: Path, seed: int) -> Path:
    """A loop whose agent does several of all these things in each of its iterations, and may kill jumar in the second."""
    draw = random.Random(seed)
    isolation = draw.choice(["none", "none", "copy"])
    bad = {name: act for name, act in BAD_PASSES.items() if isolation in WHERE.get(name, (isolation,))}
    every = {**ATTACKS, **MORE, **bad}
    kill = draw.random() < 0.3
    ends = {"another limit", "a limit in the configuration"} if kill else {"another limit"}  # a configuration is a person's then
    acts = [every[name] for name in draw.sample(sorted(every), k=draw.randint(1, 4)) if name not in ends]
    act = "\n".join(f"try:\n    {one.replace(chr(10), chr(10) + '    ')}\nexcept OSError:\n    pass" for one in acts or ["pass"])
    place = project(tmp_path, act, isolation=isolation, most=3, kill=kill)
    (place / "text.py").write_text("WORDS = 0\n")
    (place / "test_text.py").write_text(TEST)
    config = place / "jumar.toml"
    protect = "protect = ['test_*.py']\n" if draw.random() < 0.5 else ""
    check = f'[[checks]]\nname = "test"\ncommand = "{sys.executable} test_text.py"\n'
    config.write_text(config.read_text().replace("[generator]", f"{protect}[generator]") + check + LIMITED)
    return place


def test_without_its_attempts_what_a_killed_run_left_of_a_test_waits_for_a_person(tmp_path: Path) -> None:
    place = project(tmp_path, MORE["makes its test say yes"] + "\n" + ATTACKS["no attempts"], most=3, kill=True)
    (place / "test_text.py").write_text(TEST)
    (place / "text.py").write_text("WORDS = 0\n")
    config = place / "jumar.toml"
    config.write_text(config.read_text() + f'[[checks]]\nname = "test"\ncommand = "{sys.executable} test_text.py"\n')
    assert jumar(place, "run", "--no-input", check=None).returncode == -9
    refused = jumar(place, "run", "--no-input", check=2)
    assert "test_text.py: changed since the loop was started" in refused.stderr
    (place / "test_text.py").write_text(TEST)
    jumar(place, "run", "--no-input", check=0)
    holds(place, 3, older=True)


@pytest.mark.sweep
@pytest.mark.parametrize("first", range(0, RUNS, 10))
def test_agents_that_mix_all_of_it(tmp_path: Path, first: int) -> None:
    for seed in range(first, first + 10):
        (tmp_path / str(seed)).mkdir()
        place = mixed(tmp_path / str(seed), seed)
        try:
            ended = jumar(place, "run", "--no-input", check=None)
            if ended.returncode == -9:
                COUNTS["killed"] += 1
                ended = jumar(place, "run", "--no-input", check=None)
            if ended.returncode == 14:  # only a person can say whether that is so
                assert "bears the mark of another machine or user" in ended.stderr
                jumar(place, "repair", "t", "-y", check=0)
                ended = jumar(place, "run", "--no-input", check=None)
            if ended.returncode == 2:  # without its attempts nobody knows that an agent ran: then it is a person's change
                assert ATTACKS["no attempts"] in (place.parent / "agent.py").read_text()
                assert "test_text.py" in ended.stderr
                assert "since the loop was started" in ended.stderr
                (place / "test_text.py").write_text(TEST)
                ended = jumar(place, "run", "--no-input", check=None)
            assert ended.returncode in {0, 10, 11}, ended.stdout + ended.stderr
            holds(place, 3, older=True)
            passes_elsewhere(place, tmp_path / f"{seed}-clean")
        except BaseException:
            print(f"seed {seed}")
            raise
        shutil.rmtree(place)


def passes_elsewhere(place: Path, clean: Path) -> None:
    """The selected iteration, where it is verified, passes its checks in a folder that nobody else has written in."""
    store = LoopStore.open(place / ".jumar/loops/t")
    selected = store.last_end()
    if selected is None or selected.best_iteration is None:
        return
    record = store.record(selected.best_iteration)
    if record.verification_status != "passed":
        return
    shutil.copytree(store.artifacts(record.iteration_number), clean)
    for check in ("grep -q words text.md", f"{sys.executable} test_text.py"):
        assert subprocess.run(["sh", "-c", check], cwd=clean, check=False).returncode == 0, check
    COUNTS["passed elsewhere"] += 1


@pytest.mark.sweep
def test_counts_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(
            f"\nforging agents: {COUNTS['attacks']} attacks held, {COUNTS['killed']} after the agent killed jumar, "
            f"{COUNTS['passed elsewhere']} verified selections passed in a clean folder, "
            f"{COUNTS['bad passes']} bad passes ended no loop"
        )
