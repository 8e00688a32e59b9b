"""A generator that misbehaves in every way that agents have: run as a script with the names of what to do, in order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

SLEEP = 300


def forked(then):
    """Run ``then`` in a child process and return at once."""
    if os.fork() == 0:
        then()
        os._exit(0)


def detached(then):
    """Run ``then`` as a daemon does: double fork, a session of its own, no open file."""

    def middle():
        os.setsid()
        if os.fork() == 0:
            null = os.open(os.devnull, os.O_RDWR)
            for fd in (0, 1, 2):
                os.dup2(null, fd)
            then()
        os._exit(0)

    forked(middle)
    os.wait()


def deaf():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(SLEEP)


def flood():
    block = b"x" * 1023 + b"\n"
    for _ in range(100 * 1024):
        os.write(1, block)
    os.write(2, b"the end of stderr\n")
    os.write(1, b"the end of stdout\n")


def close_output():
    os.close(1)
    os.close(2)
    time.sleep(0.3)


def wiped_child():
    """A child in the same session, in a group of its own, without an environment and with the pipe open."""
    subprocess.Popen(["/bin/sleep", str(SLEEP)], env={}, process_group=0)


def wiped_orphan():
    """As hard to find as possible while the parent lives: own session, no environment; only the parent gives it away."""
    subprocess.Popen(["/bin/sleep", str(SLEEP)], env={}, start_new_session=True)


ACTIONS = {
    "hang": lambda: time.sleep(SLEEP),
    "deaf": deaf,
    "ignore": lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),
    "flood": flood,
    "background": lambda: forked(lambda: time.sleep(SLEEP)),
    "setsid": lambda: forked(lambda: (os.setsid(), time.sleep(SLEEP))),
    "daemon": lambda: detached(lambda: time.sleep(SLEEP)),
    "deaf-daemon": lambda: detached(deaf),
    "many": lambda: [forked(lambda: time.sleep(SLEEP)) for _ in range(20)],
    "wiped-child": wiped_child,
    "wiped-orphan": wiped_orphan,
    "close": close_output,
    "segv": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "escapes": lambda: os.write(1, b"\x1b[2J\x1b]0;title\x07\x1b[31mred\x1b[0m \xff\xfe end\n"),
    "echo-stdin": lambda: os.write(1, sys.stdin.buffer.read()),
    "environment": lambda: os.write(1, "\n".join(sorted(os.environ)).encode()),
    "both": lambda: (os.write(1, b"out\n"), os.write(2, b"err\n")),
    "fail": lambda: sys.exit(3),
    "usage": lambda: Path(os.environ["JUMAR_USAGE_FILE"]).write_text('{"tokens_used": 12, "token_cost_usd": 0.5}'),
    "ready": lambda: Path("ready").touch(),
}

if __name__ == "__main__":
    for name in sys.argv[1:]:
        ACTIONS[name]()
