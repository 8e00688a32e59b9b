"""Commands that misbehave: bounded time, bounded output, and nothing left running."""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import stat
import subprocess
import sys
import threading
import time
import tracemalloc
from pathlib import Path

import pytest
from steps_kit import carriers, sleepers, wait_for, wild

from jumar.errors import ConfigError, StoreWriteError
from jumar.processes import process as process_module
from jumar.processes import process_tree as strays
from jumar.processes.process import check_command, check_timeout, describe_exit, run_command, tail
from jumar.processes.process_tree import Family, end_strays


def run(command, tmp_path: Path, **options):
    values = {"cwd": tmp_path, "env": dict(os.environ), "timeout": 30.0, "log": None} | options
    return run_command(command, **values)


def run_until_ready(command, tmp_path: Path, **options):
    """Run ``command`` and set the stop event as soon as it has made the file ``ready``: no race with a busy machine."""
    stop = threading.Event()
    ready = str(tmp_path / "ready")

    def watch():
        wait_for(lambda: os.access(ready, os.F_OK), 60)
        stop.set()

    watcher = threading.Thread(target=watch)
    watcher.start()
    result = run(command, tmp_path, timeout=120.0, stop=stop, **options)
    watcher.join()
    assert (True, "interrupted") == (result.interrupted, result.failure)
    return result


def fds() -> int:
    return len(os.listdir("/dev/fd"))


# ------------------------------------------------------------------------------------------------------ what is run


def test_a_string_goes_to_the_shell_and_a_list_does_not(tmp_path):
    assert "a b\n" == run("echo $(echo a) b", tmp_path).stdout
    assert "$(echo a)\n" == run(["echo", "$(echo a)"], tmp_path).stdout


def test_the_command_runs_in_its_directory_with_its_environment_only(tmp_path):
    result = run("pwd; env", tmp_path, env={"PATH": os.environ["PATH"], "ONE": "1"})
    assert 0 == result.exit_code
    lines = result.stdout.splitlines()
    assert str(tmp_path) == lines[0]
    assert {"ONE", "PATH", "JUMAR_STEP", "PWD"} >= {line.partition("=")[0] for line in lines[1:]} - {"_", "SHLVL", "OLDPWD"}


def test_standard_input_is_empty_unless_it_is_given(tmp_path):
    assert "" == run("cat", tmp_path).stdout
    text = "ä" * 300_000  # more than a pipe holds
    assert text == run(wild("echo-stdin"), tmp_path, stdin=text.encode(), output_cap=1 << 20).stdout


def test_a_pipe_that_is_full_for_a_moment_is_written_later(tmp_path, monkeypatch):
    real = os.write
    refused = []

    def full_once(fd, data):
        if stat.S_ISFIFO(os.fstat(fd).st_mode) and not refused:
            refused.append(fd)
            raise BlockingIOError
        return real(fd, data)

    monkeypatch.setattr(os, "write", full_once)
    assert ("hello", 1) == (run("cat", tmp_path, stdin=b"hello").stdout, len(refused))


def test_input_that_nobody_reads_is_no_failure(tmp_path):
    result = run("exec 0<&-; echo done", tmp_path, stdin=b"x" * 1_000_000)
    assert (0, "done\n", None) == (result.exit_code, result.stdout, result.failure)


@pytest.mark.parametrize(
    ("command", "code", "failure"),
    [
        ("true", 0, None),
        ("exit 3", 3, "exit code 3"),
        (["sh", "-c", "kill -SEGV $$"], -11, "killed by SIGSEGV"),
        ("sh -c 'kill -SEGV $$'; exit $?", 139, "exit code 139 (128 + SIGSEGV)"),
        ("no-such-command", 127, "exit code 127"),
        ("exit 255", 255, "exit code 255"),
    ],
)
def test_exit_codes_are_told_in_words(command, code, failure, tmp_path):
    result = run(command, tmp_path)
    assert (code, failure, None) == (result.exit_code, result.failure, result.error)


@pytest.mark.parametrize(
    ("code", "words"), [(-15, "killed by SIGTERM"), (-200, "killed by signal 200"), (None, "its exit code is unknown")]
)
def test_describe_exit(code, words):
    assert words == describe_exit(code)


def test_a_command_that_cannot_be_started_says_why(tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("echo hi\n")
    lost = tmp_path / "lost"
    lost.write_text("#!/no/such/interpreter\n")
    lost.chmod(0o755)
    no_shebang = tmp_path / "no-shebang"
    no_shebang.write_bytes(b"\0\0\0")
    no_shebang.chmod(0o755)
    where, fix = repr(str(tmp_path)), "check its spelling, or give its absolute path"
    expected = [
        (["no-such-command"], "the command 'no-such-command' was not found: check its spelling and the PATH that jumar sees"),
        (
            ["../gone"],
            f"the command '../gone' was not found, seen from {where} where it runs: {fix}",
        ),
        (["/no/such/agent"], "the command '/no/such/agent' was not found: check its spelling"),
        (["./lost"], "the command './lost' cannot be run: the program that its first line (#!) names was not found"),
        (["./plain"], "the command './plain' is not executable: `chmod +x` it, or name its interpreter"),
        (["./no-shebang"], "the command './no-shebang' is not executable: it needs a first line such as #!/bin/sh"),
        (["echo", "x" * 3_000_000], "the command line of 'echo' is too long: pass {prompt_file} or stdin instead of {prompt}"),
        (["echo", "a\0b"], "the command 'echo' cannot be run: it holds a NUL byte"),
        ([], "the command '' cannot be run: it is empty"),
    ]
    for command, sentence in expected:
        result = run(command, tmp_path, log=tmp_path / "log")
        assert (None, sentence, sentence) == (result.exit_code, result.error, result.failure)
        assert f"\n[jumar: {sentence}]\n" == (tmp_path / "log").read_text()


def test_a_work_directory_that_is_gone_is_named(tmp_path):
    gone = tmp_path / "gone"
    assert f"the working directory {str(gone)!r} does not exist" == run(["true"], tmp_path, cwd=gone).error


def test_checks_of_configuration():
    assert ("a", "b") == check_command(["a", "b"], where="x")
    assert 3.0 == check_timeout(3.0, where="x")
    assert None is check_timeout(None, where="x")
    for command in ("", "  ", [], [""]):
        with pytest.raises(ConfigError, match="x: the command is empty"):
            check_command(command, where="x")
    for timeout in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match=r"x: timeout = .* should be a positive number of seconds"):
            check_timeout(timeout, where="x")


# ---------------------------------------------------------------------------------------------------------- output


def test_both_outputs_are_kept_apart_and_logged_together(tmp_path):
    log = tmp_path / "log"
    result = run(wild("both"), tmp_path, log=log)
    assert ("out\n", "err\n", "err\n") == (result.stdout, result.stderr, result.stderr_tail)
    assert sorted(["out", "err"]) == sorted(log.read_text().splitlines())
    assert sorted(["out", "err"]) == sorted(result.output_tail.splitlines())
    assert 8 == result.output_bytes


def test_a_flood_is_read_to_its_end_and_kept_to_the_cap(tmp_path):
    log = tmp_path / "log"
    tracemalloc.start()
    result = run(wild("flood"), tmp_path, log=log, output_cap=200_000, timeout=300.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    printed = 100 * 1024 * 1024 + 2 * len("the end of stdout\n")
    assert (0, True, printed) == (result.exit_code, result.truncated, result.output_bytes)
    assert result.stdout.endswith("\nthe end of stdout\n")
    assert "the end of stderr\n" == result.stderr
    assert len(result.stdout) < 200_100
    content = log.read_bytes()
    assert f"\n[jumar: {printed - 200_000:,} bytes left out here]\n".encode() in content
    assert b"\nthe end of stdout\n" in content[-60:]
    assert 200_000 < len(content) < 200_060
    assert peak < 3_000_000, "memory grew with the output"


def test_a_gigabyte_costs_little_more_than_printing_it(tmp_path, capsys):
    """It goes by at the speed of the pipe: three times what it takes into ``cat``, where 30 times were usual."""
    printing = ["head", "-c", "1000000000", "/dev/zero"]
    for _ in range(5):  # a busy machine may be slower for one of the two
        began = time.monotonic()
        subprocess.run(f"{shlex.join(printing)} | cat > /dev/null", shell=True, check=True)
        alone = time.monotonic() - began
        result = run(printing, tmp_path, log=tmp_path / "log", timeout=300.0)
        with capsys.disabled():
            print(f"\n1 GB: {result.seconds:.2f} s, into cat {alone:.2f} s: {result.seconds / alone:.1f}x")
        assert (10**9, True) == (result.output_bytes, result.truncated)
        if result.seconds < 3 * alone + 1:
            return
    raise AssertionError("1 GB took over three times as long as into cat, five times in a row")


def test_a_secret_in_the_end_of_a_flood_is_taken_out(tmp_path, monkeypatch):
    monkeypatch.setenv("API_TOKEN", "correct-horse-battery")
    log = tmp_path / "log"
    flood = "import sys; [sys.stdout.write('x' * 99 + 'correct-horse-battery\\n') for _ in range(20_000)]"
    result = run([sys.executable, "-c", flood], tmp_path, log=log)
    for text in (result.stdout, result.output_tail, log.read_text()):
        assert "horse" not in text
        assert text.rstrip().endswith("x[redacted: API_TOKEN]")


@pytest.mark.parametrize("size", [0, 1, 9_999, 10_000, 10_001, 17_499, 30_000])
def test_what_is_left_out_is_counted_to_the_byte(size, tmp_path):
    log = tmp_path / "log"
    text = "".join(chr(ord("a") + index % 26) for index in range(size))
    (tmp_path / "text").write_text(text)
    result = run("cat text", tmp_path, log=log, output_cap=10_000)
    if size <= 10_000:
        assert (text, False, text) == (result.stdout, result.truncated, log.read_text())
    else:
        gap = f"\n[jumar: {size - 10_000:,} bytes left out here]\n"
        assert text[:5_000] + gap + text[-5_000:] == result.stdout
        assert text[:7_500] + gap + text[-2_500:] == log.read_text()
        assert result.truncated
    assert text[-8192:] == result.output_tail


def test_bytes_that_are_no_text_are_shown_and_escapes_are_kept_for_the_record(tmp_path):
    log = tmp_path / "log"
    result = run(wild("escapes"), tmp_path, log=log)
    assert "\x1b[2J\x1b]0;title\x07\x1b[31mred\x1b[0m \\xff\\xfe end\n" == result.stdout
    assert b"\x1b[2J\x1b]0;title\x07\x1b[31mred\x1b[0m \xff\xfe end\n" == log.read_bytes()


def test_a_character_is_not_cut_in_two_by_the_tail(tmp_path):
    (tmp_path / "text").write_text("€" * 10_000)
    result = run("cat text", tmp_path, output_cap=10_001)
    assert "\\x" not in result.stdout.rpartition("\n")[2]
    assert "\\x" not in result.output_tail
    assert set("€") == set(result.output_tail)


def test_tail_begins_at_a_line_where_one_is_near():
    assert "short" == tail("short")
    assert "b" * 90 + "\n" == tail("a" * 100 + "\n" + "b" * 90 + "\n", 100)
    assert "b" * 10 == tail("a\n" + "b" * 100, 10)


def test_the_log_ends_with_what_happened(tmp_path):
    log = tmp_path / "log"
    run("echo before; exit 4", tmp_path, log=log)
    assert "before\n\n[jumar: exit code 4]\n" == log.read_text()


def test_a_log_that_cannot_be_made_is_refused_before_anything_runs(tmp_path):
    with pytest.raises(StoreWriteError, match="could not create the log"):
        run("touch ran", tmp_path, log=tmp_path / "missing" / "log")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "plant",
    [
        lambda log: log.symlink_to("target"),
        lambda log: log.hardlink_to(log.with_name("target")),
        os.mkfifo,
    ],
)
def test_a_log_is_a_new_file_whatever_stood_there(tmp_path, plant):
    (tmp_path / "target").write_text("mine")
    plant(tmp_path / "log")
    run("echo theirs", tmp_path, log=tmp_path / "log")
    assert "mine" == (tmp_path / "target").read_text()
    assert "theirs\n" == (tmp_path / "log").read_text()


def test_a_log_that_stops_taking_bytes_does_not_end_the_command(tmp_path, monkeypatch):
    real = os.write

    def full(fd, data):
        if stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(28, "No space left on device")
        return real(fd, data)

    monkeypatch.setattr(os, "write", full)
    result = run("echo one", tmp_path, log=tmp_path / "log")
    assert (0, "one\n", "the log is incomplete: No space left on device") == (result.exit_code, result.stdout, result.log_error)


# ------------------------------------------------------------------------------------------------- time and stopping


def test_a_command_that_hangs_is_ended_after_its_timeout(tmp_path):
    result = run("echo out; exec sleep 300", tmp_path, timeout=1.5)
    assert (True, False, -15, "timed out after 1.5 s") == (result.timed_out, result.interrupted, result.exit_code, result.failure)
    assert "out\n" == result.stdout
    assert 1.5 <= result.seconds < 60


def test_a_command_that_ignores_sigterm_is_killed_two_seconds_later(tmp_path):
    result = run_until_ready(wild("ignore", "ready", "hang"), tmp_path)
    assert -9 == result.exit_code
    assert 2.0 <= result.seconds < 60


def test_what_is_printed_on_sigterm_is_still_read(tmp_path):
    script = "trap 'head -c 300000 /dev/zero | tr \"\\0\" y; exit 5' TERM; touch ready; while :; do sleep 0.05; done"
    result = run_until_ready(script, tmp_path)
    assert (5, 300_000) == (result.exit_code, result.stdout.count("y"))


@pytest.mark.parametrize("start", ["exec", "setsid -w"])
def test_sigterm_is_said_once_to_each_process(start, tmp_path):
    code = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: os.write(1, b'asked '))\n"
        "open('ready', 'w')\n"
        "end = time.monotonic() + 1\n"
        "while time.monotonic() < end: time.sleep(0.01)\n"
    )
    if shutil.which(start.split()[0]) is None and start != "exec":
        pytest.skip("setsid: not on this system")
    (tmp_path / "agent.py").write_text(code)
    assert "asked " == run_until_ready(f"{start} {sys.executable} agent.py", tmp_path).stdout


def test_the_stop_event_ends_a_command(tmp_path):
    result = run_until_ready(wild("ready", "hang"), tmp_path)
    assert (False, -15) == (result.timed_out, result.exit_code)
    assert result.seconds < 60


def test_an_event_that_is_set_already_ends_a_command_at_once(tmp_path):
    stop = threading.Event()
    stop.set()
    assert run(wild("hang"), tmp_path, stop=stop).interrupted


def test_a_command_that_closes_its_output_is_waited_for(tmp_path):
    result = run(wild("close", "fail"), tmp_path)
    assert 3 == result.exit_code
    assert result.seconds >= 0.3


def test_an_exception_in_the_reader_ends_the_command_all_the_same(tmp_path, monkeypatch):
    nonce = secrets.token_hex(8)
    real = process_module._Run.pump
    calls = []

    def interrupted(self, seconds):
        calls.append(seconds)
        if len(calls) == 1:
            assert wait_for((tmp_path / "ready").exists, 60)
            raise KeyboardInterrupt
        return real(self, seconds)

    monkeypatch.setattr(process_module._Run, "pump", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(wild("daemon", "background", "ready", "hang"), tmp_path, marker=nonce)
    assert [] == carriers(nonce)


# ------------------------------------------------------------------------------------------- nothing is left running


@pytest.mark.parametrize(
    ("actions", "strays_ended"),
    [
        (["background"], 1),
        (["setsid"], 1),
        (["daemon"], 1),
        (["many"], 20),
        (["background", "setsid", "daemon", "fail"], 3),
        (["wiped-child"], 1),
    ],
)
def test_what_a_command_leaves_running_is_ended(actions, strays_ended, tmp_path):
    nonce = secrets.token_hex(8)
    began = time.monotonic()
    result = run(wild(*actions), tmp_path, marker=nonce)
    assert strays_ended == result.strays
    assert [] == carriers(nonce)
    assert time.monotonic() - began < 60, "a child that keeps the pipe open must not be waited for"
    assert (3 if "fail" in actions else 0) == result.exit_code


@pytest.mark.parametrize("actions", [["deaf-daemon"], ["deaf-daemon", "background", "fail"]])
def test_strays_that_ignore_sigterm_are_killed(actions, tmp_path):
    nonce = secrets.token_hex(8)
    result = run(wild(*actions), tmp_path, marker=nonce)
    assert len(actions) - ("fail" in actions) == result.strays
    assert [] == carriers(nonce)


@pytest.mark.parametrize(
    ("actions", "strays_ended"),
    [(["daemon"], 1), (["many", "setsid", "daemon"], 22), (["wiped-orphan"], 1)],
)
def test_a_stop_ends_what_escaped_too(actions, strays_ended, tmp_path):
    nonce = secrets.token_hex(8)
    assert strays_ended == run_until_ready(wild(*actions, "ready", "hang"), tmp_path, marker=nonce).strays
    assert [] == carriers(nonce)


def test_a_process_without_the_marker_is_found_by_its_parent(tmp_path):
    slept = f"{300 + secrets.randbelow(10**6) / 10**7:.7f}"
    code = (
        f"import subprocess, time; subprocess.Popen(['/bin/sleep', '{slept}'], env={{}}, start_new_session=True); "
        "open('ready', 'w'); time.sleep(300)"
    )
    assert 1 == run_until_ready([sys.executable, "-c", code], tmp_path).strays
    assert [] == sleepers(slept)


def test_a_fork_storm_is_ended(tmp_path):
    nonce = secrets.token_hex(8)
    # each generation starts the next one and ends: SIGTERM alone would always come too late
    script = "f() { sleep 0.01; f & }; f; f; sleep 300"
    result = run(["bash", "-c", script], tmp_path, timeout=1.0, marker=nonce)
    assert result.timed_out
    assert [] == wait_for(lambda: carriers(nonce) or [], 0.2)


def test_the_step_of_a_jumar_inside_a_step_is_ended_with_it(tmp_path):
    nonce = secrets.token_hex(8)
    inner = (
        "import os, pathlib; from jumar.processes.process import run_command; "
        "run_command('touch ready; exec sleep 300', cwd=pathlib.Path('.'), env=dict(os.environ), timeout=None, log=None)"
    )
    assert 1 == run_until_ready([sys.executable, "-c", inner], tmp_path, marker=nonce).strays
    assert [] == carriers(nonce)


def test_other_steps_and_processes_are_left_alone(tmp_path):
    nonce, stop = secrets.token_hex(8), threading.Event()
    other = Family(nonce)
    results = []
    ours = threading.Thread(
        target=lambda: results.append(run(["sleep", "300"], tmp_path, marker=nonce, stop=stop, timeout=120.0))
    )
    ours.start()
    assert wait_for(lambda: len(other.living()) == 1, 60)
    assert 1 == run(wild("daemon"), tmp_path).strays
    assert 1 == len(other.living())
    assert [] == results
    stop.set()
    ours.join()
    assert [True] == [result.interrupted for result in results]


def test_processes_of_a_killed_run_are_found_by_their_nonce(tmp_path):
    nonce = secrets.token_hex(8)
    runner = (
        "import os, pathlib, sys; from jumar.processes.process import run_command; "
        f"run_command({wild('daemon', 'ready', 'hang')!r}, cwd=pathlib.Path('.'), env=dict(os.environ), "
        f"timeout=None, log=None, marker='{nonce}')"
    )
    pid = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, "-c", runner])
    assert wait_for(lambda: Path("ready").exists(), 60)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    assert 2 == len(carriers(nonce))
    assert 2 == end_strays(nonce)
    assert [] == carriers(nonce)
    assert 0 == end_strays(nonce)
    assert 0 == end_strays("")


def test_without_proc_the_library_finds_the_same_processes(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "exists", lambda self: False)
    nonce = secrets.token_hex(8)
    assert 3 == run_until_ready(wild("setsid", "daemon", "background", "ready", "hang"), tmp_path, marker=nonce).strays
    assert [] == carriers(nonce)


def test_a_process_that_is_gone_has_no_start_and_no_environment():
    pid = os.spawnv(os.P_NOWAIT, "/bin/true", ["true"])
    os.waitpid(pid, 0)
    assert (None, None) == (strays._started_from_psutil(pid), strays._started_from_proc(pid))
    assert ([], []) == (strays._environment_from_psutil(pid), strays._environment_from_proc(pid))


def test_a_system_without_waitid_gets_the_same_answers(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "waitid")
    nonce = secrets.token_hex(8)
    result = run(wild("setsid", "fail"), tmp_path, marker=nonce)
    assert (3, 1) == (result.exit_code, result.strays)
    assert [] == carriers(nonce)


def test_an_exit_code_that_somebody_else_took_is_unknown(tmp_path, monkeypatch):
    def taken(*_):
        raise ChildProcessError

    monkeypatch.setattr(os, "waitid", taken)
    result = run("exit 0", tmp_path)
    assert (None, "its exit code is unknown") == (result.exit_code, result.failure)


def test_a_process_that_nothing_can_kill_is_reported_and_not_waited_for(tmp_path, monkeypatch):
    seen = []

    def immortal(self, *, grace, wait):
        seen.append(self._leader)
        return frozenset({self._leader}), (self._leader,)

    monkeypatch.setattr(Family, "end", immortal)
    began = time.monotonic()
    result = run(wild("hang"), tmp_path, timeout=0.3)
    assert time.monotonic() - began < 60
    assert None is result.exit_code
    assert f"timed out after 0.3 s, but process {seen[0]} could not be killed: it hangs in the kernel" == result.failure
    os.killpg(seen[0], 9)
    os.waitpid(seen[0], 0)


def test_no_file_descriptor_is_left_open(tmp_path):
    run("true", tmp_path, log=tmp_path / "log")
    before = fds()
    for command in ("true", "exit 1", ["no-such-command"], wild("daemon"), wild("close")):
        run(command, tmp_path, log=tmp_path / "log")
    run(wild("hang"), tmp_path, timeout=0.2, stdin=b"x" * 100_000)
    assert before == fds()
