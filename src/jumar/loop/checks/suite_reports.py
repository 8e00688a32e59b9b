"""Where the tests of a check are told: the JUnit file that pytest is asked for, files that the command writes, or its output.

pytest is asked through ``PYTEST_ADDOPTS``, so that the command stays the person's word for word, and for a file in the scratch
folder of the step; go is asked for names through ``GOFLAGS``. Where the person has a report written already, that one is read.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from jumar.core.files import UnreadableFileError, as_write_error
from jumar.loop.checks.runners import SuiteRun, joined, read_junit, read_runs, read_sessions, together
from jumar.model.protocols import StepContext
from jumar.processes.process import ProcessResult
from jumar.processes.written_files import FileIdentity, find_files, identity, log_name, read_regular

DEFAULT_PLACES: Final = (
    *("junit*.xml", "*-junit.xml", "*_junit.xml", "test-results.xml", "rspec.xml", "tmp/rspec*.xml"),
    *("test-results/*.xml", "test-reports/*.xml", "reports/*.xml", "build/junit*.xml", "build/logs/junit*.xml"),
    *("target/surefire-reports/TEST-*.xml", "target/failsafe-reports/TEST-*.xml", "*/target/surefire-reports/TEST-*.xml"),
    *("build/test-results/*/TEST-*.xml", "*/build/test-results/*/TEST-*.xml", "target/nextest/*/junit.xml"),
    *("TestResults/*.xml", "*/TestResults/*.xml"),
)
"""Where runners usually write JUnit files, relative to the working directory; ``junit = GLOB`` names other places."""

_ADDOPTS: Final = "PYTEST_ADDOPTS"
_OWN: Final = re.compile(r"--junit-?xml(?:=|\s+)(\"[^\"\n]+\"|'[^'\n]+'|[^\s\"',\]]+)")
_ENTERED: Final = re.compile(r"\bcd\s+([^\s;&|\"'$()]+)")
_PLACE: Final = re.compile(r"(?:\bcd|\s-C)\s+([^\s;&|()]+)")
_STOPS: Final = re.compile(
    r"(?m)^> .*(?:\b(?:unittest|manage\.py test)\b[^;&|\n]*\s(?:--failfast|-[bcqv]*f[bcqv]*)"
    r"|\bmocha\b[^;&|\n]*\s(?:--bail|-b))(?=[\s;&|)]|$)"
)  # these do not say that they stopped
_COMMENT: Final = re.compile(r"(?m)^[^\S\n]*[#;].*$")
_SETTINGS: Final = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
_LARGEST: Final = 64 << 20  # bytes of one report, and of all that pytest is asked for
_PATIENCE: Final = 1.0  # seconds that a report may be held open by a process that survived its check


class _Inbox:
    """A named pipe at ``path``, which keeps what every writer puts into it: a file would keep the report of the last session.

    Where the file system has no pipes it is a file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._content = bytearray()
        self._thread: threading.Thread | None = None
        self._writer: int | None = None
        with as_write_error("write", path):
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            os.mkfifo(path)
            reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            self._writer = os.open(path, os.O_WRONLY)  # so that it does not end between two sessions
            os.set_blocking(reader, True)
            self._thread = threading.Thread(target=self._take, args=(reader,), daemon=True)
            self._thread.start()

    def _take(self, reader: int) -> None:
        with os.fdopen(reader, "rb", buffering=0) as pipe:
            while chunk := pipe.read(1 << 16):
                self._content += chunk if len(self._content) <= _LARGEST else b""

    def reports(self) -> list[bytes]:
        """Return what was written by the commands that have ended; nothing is taken any more. Empty where it is too much."""
        if self._thread is None:
            with contextlib.suppress(FileNotFoundError, UnreadableFileError):
                return [read_regular(self.path, limit=_LARGEST)]
            return []
        self.close()
        whole = bytes(self._content) if len(self._content) <= _LARGEST else b""
        return [report for report in re.split(rb"(?=<\?xml )", whole) if report]

    def close(self) -> None:
        """Remove it: what it took is in the record."""
        if self._writer is not None:
            os.close(self._writer)
            self._writer = None
        if self._thread is not None:
            self._thread.join(_PATIENCE)
        with contextlib.suppress(OSError):
            self.path.unlink()


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteReports:
    """The reports of one run of a check, ``command``. ``environment`` is what the command is to see.

    ``asked`` takes what pytest is asked for; it is None where the person asks it for a report, which ``own`` names, or names
    other reports. ``own`` and ``places`` are globs of files that the command may write, and ``before`` is what lay there: a
    report from an earlier run is none.
    """

    workdir: Path
    command: str
    environment: Mapping[str, str]
    asked: _Inbox | None
    own: tuple[str, ...]
    places: tuple[str, ...]
    named: bool
    before: Mapping[Path, FileIdentity | None]

    @classmethod
    def of(
        cls, name: str, command: str | Sequence[str], junit: str | None, context: StepContext, *, ask: bool = True
    ) -> SuiteReports:
        """Return the reports of the check ``name`` before it runs; ``junit`` is the glob that its table names.

        ``ask`` False asks pytest for none, and looks nowhere but there. Who makes them closes them.
        """
        workdir, environment = context.workdir, {"CI": "1", **context.environment}
        line = command if isinstance(command, str) else shlex.join(command)
        ask = ask and junit is None
        given = environment.get(_ADDOPTS, "")
        own = tuple(dict.fromkeys(_own_reports(line, given, workdir, environment))) if ask else ()
        places = (junit,) if junit is not None else DEFAULT_PLACES if ask else ()
        before = {path: identity(path) for path in _files(workdir, (*own, *places))}
        asked = None
        if ask and not own:
            asked = _Inbox((context.log_directory / log_name("check", name)).absolute().with_suffix(".xml"))
            environment[_ADDOPTS] = f"{given} --junit-xml={shlex.quote(str(asked.path))}".strip()
        if ask:
            environment |= _naming_go(environment)
        return cls(
            workdir=workdir,
            command=line,
            environment=environment,
            asked=asked,
            own=own,
            places=places,
            named=junit is not None,
            before=before,
        )

    def refused_by(self, result: ProcessResult) -> SuiteReports | None:
        """Return the reports to run once more with, where pytest writes none (``-p no:junitxml``) and said so; else None."""
        if self.asked is None or result.exit_code == 0:
            return None
        said = f"{result.stderr}\n{result.stdout}"
        # to argparse, an unknown option with a space in it is a file
        refused = ("unrecognized arguments: ", "file or directory not found: ")
        if not any(f"{words}--junit-xml={self.asked.path}" in said for words in refused):
            return None
        environment = dict(self.environment)
        given = environment[_ADDOPTS].removesuffix(f"--junit-xml={shlex.quote(str(self.asked.path))}").strip()
        environment |= {_ADDOPTS: given}
        if not given:
            del environment[_ADDOPTS]
        return replace(self, environment=environment, asked=None)

    def read(self, result: ProcessResult) -> tuple[SuiteRun | None, str | None]:
        """Return the tests of the run that ended with ``result``, and why a report that the check's table names cannot be used.

        All runners that are recognised are summed: the sessions of pytest, the files that were written, and what others said in
        the output. What a runner says of tests that a file has too is not counted again: pytest of its sessions, and of a file
        the runner that tells of the nearest number. Where pytest's closing lines tell of more sessions than it wrote reports of,
        the lines are counted, without names.
        """
        # as npm tells what it runs
        text = f"> {self.command.replace(chr(10), ' ')}\n{result.stdout}\n{result.stderr}"
        spoken = read_runs(text)
        if result.truncated:
            spoken = [replace(run, cut_short=False, truncated=True) for run in spoken]
        problem: str | None = None
        written: SuiteRun | None = None
        try:
            written = self._written()
            problem = f"the command did not write '{self.places[0]}'" if written is None and self.named else None
        except (UnreadableFileError, FileNotFoundError) as error:
            problem = f"the report '{self.places[0]}' {error}" if self.named else None
        if self.named:
            run = written if written is not None and written.told else joined(spoken) or written
        else:
            run = self._summed(spoken, self._sessions(), written)
        if run is not None and run.failed and _STOPS.search(text):
            run = replace(run, cut_short=True)
        return run, problem

    def _summed(self, spoken: Sequence[SuiteRun], sessions: Sequence[SuiteRun], written: SuiteRun | None) -> SuiteRun | None:
        said: dict[str, list[SuiteRun]] = {}
        for run in spoken:
            said.setdefault(run.runner, []).append(run)
        runs: list[SuiteRun] = []
        if any(run.told for run in sessions):
            closing = said.pop("pytest", [])
            lost = len(closing) > 1 and sum(run.told for run in sessions) < sum(run.told for run in closing)
            cut_short = any(run.cut_short for run in closing)
            places = set(_PLACE.findall(self.command))
            reports = sessions if len(places) > 1 or any("$" in place for place in places) else together(sessions)
            runs += closing if lost else [replace(run, cut_short=cut_short) for run in reports]
        if written is not None and written.told:
            told = {runner: sum(run.told for run in found) for runner, found in said.items()}
            twin = said.pop(min(told, key=lambda runner: abs(told[runner] - written.told)), []) if told else []
            lost = len(twin) > 1 and twin[0].runner == "pytest" and written.told < sum(run.told for run in twin)
            runs += twin if lost else [replace(written, cut_short=any(run.cut_short for run in twin))]
        runs += [run for found in said.values() for run in found]
        return joined(runs) or joined(sessions) or written

    def close(self) -> None:
        """Remove what pytest was asked to write to."""
        if self.asked is not None:
            self.asked.close()

    def _sessions(self) -> list[SuiteRun]:
        """Return the sessions of pytest that wrote a report where they were asked to."""
        reports = self.asked.reports() if self.asked is not None else []
        for path in self._fresh(_files(self.workdir, self.own)):
            with contextlib.suppress(FileNotFoundError, UnreadableFileError):
                reports.append(read_regular(path, limit=_LARGEST))
        return read_sessions(reports)

    def _written(self) -> SuiteRun | None:
        """Return what the files of this run say; None without one. Errors: as of reading files and :func:`read_junit`."""
        files = find_files(self.workdir, self.places[0]) if self.named else _files(self.workdir, self.places)
        own = _files(self.workdir, self.own)
        fresh = [path for path in self._fresh(files) if path not in own]
        return read_junit(read_regular(path, limit=_LARGEST) for path in fresh) if fresh else None

    def _fresh(self, files: Iterable[Path]) -> list[Path]:
        now = ((path, identity(path)) for path in files)
        return [path for path, found in now if found is not None and found.written_since(self.before.get(path))]


def _naming_go(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what makes ``go test`` name its tests, of which it says nothing otherwise; flags of ``go env -w`` are left alone."""
    flags = environment.get("GOFLAGS", "")
    home = Path(environment.get("HOME") or "/") / ("Library/Application Support" if sys.platform == "darwin" else ".config")
    settings = environment.get("GOENV") or Path(environment.get("XDG_CONFIG_HOME") or home, "go", "env")
    with contextlib.suppress(OSError, UnreadableFileError):
        if not flags and b"GOFLAGS=" in read_regular(Path(settings), limit=1 << 20):
            return {}
    return {} if {"-v", "-json"} & set(flags.split()) else {"GOFLAGS": f"{flags} -v".strip()}


def _files(workdir: Path, places: Sequence[str]) -> tuple[Path, ...]:
    """Return the files of all places; those of one that cannot be looked through are left out."""
    found: dict[Path, None] = {}
    for place in places:
        with contextlib.suppress(UnreadableFileError, OSError, ValueError):
            found.update(dict.fromkeys([Path(place)] if place.startswith("/") else find_files(workdir, place)))
    return tuple(found)


def _own_reports(line: str, options: str, workdir: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield where the person's own ``--junitxml`` writes: in the command, PYTEST_ADDOPTS, or the settings of the project.

    Relative to ``workdir``, or absolute where it lies elsewhere.
    """
    directories = ("", *_ENTERED.findall(line))
    texts = [line, options]
    for directory in directories:
        for name in _SETTINGS:
            with contextlib.suppress(OSError, UnreadableFileError):
                content = read_regular(workdir / directory / name, limit=1 << 20).decode("utf-8", "replace")
                texts.append(_COMMENT.sub("", content))
    for text in texts:
        for match in _OWN.finditer(text):
            for directory in directories:
                yield _place(Path(directory, _expanded(match[1].strip("\"'"), environment)), workdir)


def _place(path: Path, workdir: Path) -> str:
    whole = os.path.normpath(workdir / path)
    return os.path.relpath(whole, workdir) if Path(whole).is_relative_to(workdir) else whole


def _expanded(path: str, environment: Mapping[str, str]) -> str:
    """Return ``path`` as pytest or the shell would understand it; a variable that is not set stays."""
    home = environment.get("HOME", "~")
    path = f"{home}{path[1:]}" if path.startswith("~/") else path
    return re.sub(r"\$(?:(\w+)|\{(\w+)\})", lambda found: environment.get(found[1] or found[2], found[0]), path)
