"""Runs ``jumar`` commands in forks of a process that has imported everything already.

One JSON request a line on stdin: ``{"cwd", "argv", "out", "err"}``. Answers with the child's pid, and with its wait status when
it has ended. With ``env`` the child is as the program itself would be, with this environment; without it, one to be traced, which
does nothing beside the command: with ``stop`` it stops itself before it begins, so that a tracer can be attached.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys


def run(request: dict[str, object]) -> None:
    os.chdir(str(request["cwd"]))
    for name, number in (("out", 1), ("err", 2)):
        os.dup2(os.open(str(request[name]), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if "env" in request:
        os.environ.clear()
        os.environ.update(request["env"])  # type: ignore[call-overload]
        sys.path[0] = os.getcwd()
        sys.argv = ["jumar", *request["argv"]]  # type: ignore[misc]
        sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115 - the standard input of the whole process
        from jumar.cli.entry import main as whole

        whole()
    from jumar.cli.application import run_application

    if request.get("stop"):
        os.kill(os.getpid(), signal.SIGSTOP)
    code = 70
    try:
        code = run_application(list(request["argv"]))  # type: ignore[call-overload]
    except BaseException:  # noqa: BLE001 - the point is to see what nobody expected
        import traceback

        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                code = code or 1
        os._exit(code)


def main() -> None:
    from jumar.cli.table import COMMANDS, GROUPS

    for table in (COMMANDS, *(group.commands for group in GROUPS.values())):
        for target, _ in table.values():
            importlib.import_module(target.partition(":")[0])
    for module in (
        *(
            "jumar.app.run.prepare",
            "jumar.app.run.request",
            "jumar.app.config.config",
            "jumar.loop.store.verify",
            "pathspec",
            "psutil",
        ),
        *(
            "jumar.app.run_cases",
            "jumar.app.evaluate",
            "jumar.app.config.config",
            "jumar.cases.verify",
            "jmespath",
            "sqlite3",
        ),
    ):
        importlib.import_module(module)
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            run(request)
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(status, flush=True)


if __name__ == "__main__":
    main()
