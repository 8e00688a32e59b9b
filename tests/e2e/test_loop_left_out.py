"""Commands without LOOP: the loop that runs, else the newest, else the demo's; each as it is typed."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from loops import calls, jumar, jumar_json, write_loop


def test_from_the_demo_to_its_undo_no_loop_is_named(tmp_path: Path) -> None:
    shown = jumar(tmp_path, "demo", check=0).stdout
    assert "jumar apply --undo " in shown
    document = tmp_path / "jumar-demo/document.md"
    best = document.read_bytes()
    assert "jumar · demo · " in jumar(tmp_path, "show", check=0).stdout
    assert "wrote r.html" in jumar(tmp_path, "report", "-o", "r.html", check=0).stdout
    assert b"<title" in (tmp_path / "r.html").read_bytes()
    undone = jumar(tmp_path, "apply", "--undo", check=0)
    assert "loop      demo, the newest in jumar-demo/.jumar\n" == undone.stderr
    last = (tmp_path / "jumar-demo/.jumar/loops/demo/iterations/iteration-008/artifacts/document.md").read_bytes()
    assert last == document.read_bytes()
    assert last != best
    assert "demo" in jumar(tmp_path, "list", check=0).stdout
    for words in (["diff"], ["diff", "0", "3"], ["select"], ["status"], ["verify"], ["logs"], ["watch", "--once"], ["cleanup"]):
        assert jumar(tmp_path, *words, check=0).stdout
    jumar(tmp_path, "apply", check=0)
    assert best == document.read_bytes()
    assert "no loop is running" in jumar(tmp_path, "stop", check=2).stderr
    assert "holds no loops" in jumar(tmp_path, "show", "--root", ".jumar", check=2).stderr


def test_a_loop_of_the_root_comes_before_the_demos_and_the_newest_before_others(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.6, 0.7])
    jumar(tmp_path, "run", check=0)
    shown = jumar(tmp_path, "demo", "-n", "4", check=0).stdout
    assert "jumar apply jumar-demo/.jumar/loops/demo --undo" in shown
    jumar(tmp_path, "run", "--new", check=0)
    assert "t-2" == jumar_json(tmp_path, "show")["loop_id"]
    assert "demo" == jumar_json(tmp_path, "show", "demo")["loop_id"]
    jumar(tmp_path, "select", "t", "--use", "1", "--reason", "x", check=0)
    said = jumar(tmp_path, "apply", "t", check=0).stdout
    assert "jumar apply t --undo" in said
    assert "loop      t-2, the newest in .jumar\n" == jumar(tmp_path, "select", "--use", "1", "--reason", "x", check=0).stderr
    told = jumar(tmp_path, "apply", "--json", check=0)
    assert ("", "jumar apply t-2 --undo") == (told.stderr, json.loads(told.stdout)["undo"])
    assert ["t", "t-2"] == [loop["loop_id"] for loop in jumar_json(tmp_path, "list")["loops"]]


def test_the_loop_that_runs_is_meant_also_where_a_newer_one_has_ended(tmp_path: Path) -> None:
    write_loop(tmp_path, ["hang"], loop="isolation = 'copy'")
    process = subprocess.Popen([sys.executable, "-m", "jumar.cli.entry", "run", "-q"], cwd=tmp_path)
    try:
        deadline = time.monotonic() + 30
        while jumar_json(tmp_path, "status")["loops"][:1] == [] or not calls(tmp_path / ".jumar/work/t"):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        # the same loop's configuration, another name: finished after the one that runs had begun its step
        other = tmp_path / "other"
        write_loop(other, [0.6])
        jumar(other, "run", "--root", str(tmp_path / ".jumar"), "--id", "later", check=0)
        assert "t" == jumar_json(tmp_path, "show")["loop_id"]
        assert "t is being written" in jumar(tmp_path, "apply", check=13).stderr.replace("loop 't'", "t")
        stopped = jumar_json(tmp_path, "stop")
        assert ("t", True) == (stopped["loop_id"], stopped["running"])
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
    assert "t" == jumar_json(tmp_path, "show")["loop_id"], "its step ended last"


def test_what_two_words_mean_does_not_depend_on_the_loops_that_are_there(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.6, 0.7])
    jumar(tmp_path, "run", check=0)
    shutil.copytree(tmp_path / ".jumar/loops/t", tmp_path / ".jumar/loops/2")  # a loop that is called like an iteration
    assert (0, 1) == tuple(jumar_json(tmp_path, "diff", "0", "1")[key] for key in "ab")
    assert (1, 2) == tuple(jumar_json(tmp_path, "diff", "1", "2")[key] for key in "ab")
    assert (0, 1) == tuple(jumar_json(tmp_path, "diff", "2", "0", "1")[key] for key in "ab")
    assert (0, 2) == tuple(jumar_json(tmp_path, "diff", "2")[key] for key in "ab")
    assert "'t' is no iteration" in jumar(tmp_path, "diff", "t", "1", check=2).stderr
    assert "loop 't' has no iteration 3" in jumar(tmp_path, "diff", "3", check=2).stderr


def test_the_beginning_of_a_name_is_never_another_loops_number(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.6])
    for name in ("calc-12", "calc-20260128-100000-ab12"):
        jumar(tmp_path, "run", "--id", name, check=0)
    assert "no loop called 'calc-1' in .jumar" in jumar(tmp_path, "show", "calc-1", check=2).stderr
    assert "calc-20260128-100000-ab12" == jumar_json(tmp_path, "show", "calc-2026")["loop_id"]
    assert "no loop called '.'" in jumar(tmp_path, "show", ".", check=2).stderr
