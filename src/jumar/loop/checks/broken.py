"""Whether a check or scorer that says no could not begin: then it says the same of every iteration, whatever the agent does.

A check that *fails* on the start is what a loop is for. One whose program, script or module is not there, that was killed or took
too long, or that pytest refused to run (its exit codes 3 and 4) would fail after every paid iteration. So would a scorer that
gives no number. ``jumar run`` does not begin with such a start, and ``jumar doctor`` shows it as a red row.
"""

from __future__ import annotations

import functools
import itertools
import os
import re
import shlex
import shutil
import signal
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from jumar.core.text import escape, without_escapes
from jumar.model import CheckResult, ScoreReading
from jumar.model.protocols import StepContext
from jumar.processes.command_words import simple_commands
from jumar.processes.process import describe_exit


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Why ``part``, a check or scorer, says nothing of an iteration: ``what`` is so, and the ``fix``.

    Not ``sure``: it may be what the agent is to mend. ``passing``: another try may go better. ``output`` is the end of what it
    printed, where that is known, and ``dimension`` that of a scorer.
    """

    part: str
    what: str
    fix: str
    sure: bool = True
    passing: bool = False
    output: str = ""
    dimension: str | None = None


class _Row(NamedTuple):
    """One way in which a program says that it could not begin: in its output, with this exit code where one is named."""

    pattern: re.Pattern[str]
    what: str
    fix: str
    codes: frozenset[int]
    sure: bool


_INSTALL: Final = "install {0}, or edit the command; [loop] env passes on what its PATH needs"
_NOT_FOUND: Final = "cannot do its work: {0} was not found"
_NOT_OPENED: Final = "cannot begin: {0} cannot be opened"
_BY_HAND: Final = "run its command by hand in the working directory, then mend it, or raise its timeout"
_SCRIPT: Final = "give the script's path as seen from the working directory"
_NO_PACKAGE: Final = "add the package to package.json and install it, or edit the command"
_PACKAGE: Final = "write the script that runs the tests into package.json, or edit the command"


def _row(pattern: str, what: str, fix: str, *codes: int, sure: bool = True) -> _Row:
    return _Row(re.compile(pattern, re.MULTILINE), what, fix, frozenset(codes), sure)


_ROWS: Final = (
    _row(
        r"^(\S*(?:python|pypy)[\w.]*): (?:Error while finding module specification.*)?No module named '?([\w.]+)",
        "cannot begin: {0} has no module {1}",
        "install it: {0} -m pip install {2}; or edit the command",
    ),
    _row(r"^\S*(?:python|pypy)[\w.]*: can't open file '?([^':\n]+)", _NOT_OPENED, _SCRIPT, 2),
    _row(r"^\S*sh: \d+: (?:\.: )?(?:cannot|can't|Can't) open '?([^\s:']+)", _NOT_OPENED, _SCRIPT, 2),
    _row(
        # a shell says the same of a file that it reads with <, which the agent may be to write
        r"^(?:\S*/)?(?:ba)?sh: (?:line \d+: )?(?:\.: )?([^\s:]*(?:\bactivate|rc|env|sh)): "
        r"(?:No such file or directory|file not found)\Z",
        _NOT_OPENED,
        _SCRIPT,
        1,
    ),
    _row(r"^\S*sh: \d+: cannot create (\S+): Directory nonexistent\Z", "cannot begin: {0} cannot be written", _SCRIPT, 2),
    _row(
        r"^\S*sh: (?:\d+: cd: can't cd to |(?:line \d+: )?cd: )([^\s:]+)(?:: No such file or directory)?\Z",
        "cannot begin: there is no directory {0}",
        "give its path as seen from the working directory",
        *(1, 2),
    ),
    _row(r"^Can't open perl script \"([^\"\n]+)\"", _NOT_OPENED, _SCRIPT, 2),
    _row(r"^ruby: No such file or directory -- (\S+)", _NOT_OPENED, _SCRIPT),
    _row(r"^Error: Cannot find module '([^'\n]+)'\n(?s:.*)requireStack: \[\]", _NOT_OPENED, _SCRIPT, 1),
    _row(r"^\S+: (?:line )?\d+: (\S+): (?:command )?not found\Z", _NOT_FOUND, _INSTALL),
    _row(r"^\S*sh:(?:\d+:)? command not found: (\S+)\Z", _NOT_FOUND, _INSTALL),
    _row(r"^g?make: ([^\s:]+): No such file or directory(?:\ng?make: \*\*\* .*)?\Z", _NOT_FOUND, _INSTALL),
    _row(r"^g?make(?:\[\d+\])?: \*\*\* \[.*\] (Killed|Segmentation fault|Aborted|Bus error)", "was cut short: {0}", _BY_HAND, 2),
    _row(
        r"^g?make: \*\*\* No rule to make target '([^'\n]+)'\.",
        "cannot begin: there is no target {0}",
        "name one that is there",
        2,
    ),
    _row(
        r"^(?:npm (?:error|ERR!)|.*ERR_PNPM_NO_SCRIPT.*) Missing script: \"?([\w:.-]+)",
        "cannot begin: package.json has no script {0}",
        _PACKAGE,
    ),
    _row(r"^npm (?:error|ERR!) 404 +(?:The requested resource )?'(@?[^@'\n]+)@", _NOT_FOUND, _NO_PACKAGE),
    _row(r"^npm (?:error|ERR!) (?:npx )?canceled due to missing packages .*: \[\"?(@?[^@\"\]\n]+)", _NOT_FOUND, _NO_PACKAGE),
    _row(r"^npm (?:error|ERR!) could not determine executable to run", "cannot begin: npx finds no program to run", _NO_PACKAGE),
    _row(
        r"^npm (?:error|ERR!) code (E(?:NOTFOUND|AI_AGAIN|CONNREFUSED|TIMEDOUT))$",
        "cannot begin: npm does not reach its registry ({0})",
        "install what the command needs beforehand",
    ),
    _row(r"^error: no such command: `([^`\n]+)`", _NOT_FOUND, "install cargo-{0}, or edit the command", 101),
    _row(r"^error: Failed to spawn: `([^`\n]+)`", _NOT_FOUND, _INSTALL, 2),
    _row(r"^(?:Command not found: |error Command \")([\w./@:-]+?)(?:\" not found\..*)?\Z", _NOT_FOUND, _INSTALL, 1),
    _row(r"^Cannot connect to the (Docker daemon)\b", "cannot begin: the {0} is not reached", "start it, or edit the command", 1),
    _row(r"^npm (?:error|ERR!) enoent Could not read (package\.json)", "cannot begin: there is no {0}", "run it where that is"),
    _row(r"^Error: no test specified\Z", "cannot begin: the test script of package.json is the one of `npm init`", _PACKAGE),
    _row(
        r"^(?:E\s+)?(?:ModuleNotFoundError|ImportError): No module named '?([\w.]+)[^\n]*(?:\n[^\n]*){0,2}\Z",
        "fails because it finds no module {0}",
        "install it for the Python of this check, unless {0} is what the agent is to write",
        sure=False,
    ),
)

_WRAPPER: Final = re.compile(
    r"^(?:g?make(?:\[\d+\])?: (?:\*\*\* .* Error (\d+)$|\*\*\* Waiting|(?:Enter|Leav)ing )"
    r"|nox > Command .* exit code (\d+)|task: Failed to run task .* exit status (\d+)).*\n?",
    re.MULTILINE,
)
"""The lines in which a program that runs others says how they ended; its own code says only that they did."""
_PYTEST: Final = re.compile(r"^(?:ERROR: |ImportError while loading conftest|INTERNALERROR>|.*\bpytest: error: )", re.MULTILINE)
_TIMED_OUT: Final = 124  # of the program timeout
_PYTEST_CODES: Final = {3: "an internal error", 4: "a usage error"}
_KILLED: Final = frozenset(
    128 + number
    for number in (
        *(signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL),
        *(signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGTRAP),
    )
)
_NPX: Final = ", but node_modules has it: "
_COPIES: Final = "it also runs the tests in the copies that jumar keeps in "
_COPIED: Final = re.compile(
    r"loops/[\w.-]{1,100}/(?:pending|iterations)/iteration-\d{3,9}/artifacts(?=/)|\.jumar/work/[\w.@-]{1,120}(?=/)"
)
_BEFORE_PATH: Final = re.compile(r"[\s'\"()\[\]]|file://")
_NAMED: Final = 100  # copies that are looked for
_LONGEST: Final = 1_000  # characters of a path
_ELSEWHERE: Final = (
    "name a new folder with --root, outside of this directory (in a JavaScript project it may be anywhere: its loops lie below a "
    "node_modules); or have the runner leave {0} out: testPathIgnorePatterns of jest, test.exclude of vitest, norecursedirs of "
    "pytest"
)
_TREES: Final = "`jumar cleanup LOOP --trees` removes them when the loop has ended; or have the runner leave {0} out"


def runs_copies(output: str, workdir: Path) -> str | None:
    """Return that a test run also ran the tests of our snapshots or trees below ``workdir``, None where its output names none."""
    text, here = without_escapes(output), Path(os.path.realpath(workdir))
    for place in (here, workdir):  # its own name may have blanks
        text = text.replace(f"{place}/", " ")
    for found in itertools.islice(_COPIED.finditer(text), _NAMED):
        above = _BEFORE_PATH.split(text[max(0, found.start() - _LONGEST) : found.start()])[-1].removeprefix("./")
        copy = here / re.sub(r"^(?:\.\./)+", "", f"{above}{found[0]}")  # of a package below, it is told from there
        if copy != here and copy.is_relative_to(here) and copy.is_dir():
            root, kind = re.split(r"/(?:node_modules/)?(loops|work)/", f"/{copy.relative_to(here).as_posix()}")[:2]
            return f"{_COPIES}{f'{root}/{kind}'.removeprefix('/')}"
    return None


def runs_with_npx(command: str | Sequence[str], context: StepContext) -> str | None:
    """Return that a program that was not found is one of the package's, which only npm finds; None where it is not."""
    here, path = context.workdir.resolve(), context.environment.get("PATH")
    for words in simple_commands(command):
        name = next((word for word in words if not re.match(r"\w+=", word)), "")
        owned = name and "/" not in name and any((place / "node_modules/.bin" / name).exists() for place in (here, *here.parents))
        if owned and shutil.which(name, path=path) is None:
            line = command if isinstance(command, str) else shlex.join(command)
            better = re.sub(rf"(?<!\S){re.escape(name)}(?!\S)", f"npx {name}", line, count=1)
            return f"{name} is no program on PATH{_NPX}{better}"
    return None


def troubles(checks: Iterable[CheckResult], readings: Iterable[ScoreReading]) -> tuple[Trouble, ...]:
    """Return what keeps checks and scorers from saying anything of the start; empty where nothing certain does."""
    found = [*map(trouble_of_check, checks), *map(trouble_of_scorer, readings)]
    return tuple(trouble for trouble in found if trouble is not None and trouble.sure)


def trouble_of_check(check: CheckResult) -> Trouble | None:
    """Return why ``check`` could not begin; None for one that passes or fails as a check does."""
    part, output, code = f"check '{check.name}'", without_escapes(check.output_tail).strip(), check.exit_code
    if check.broken is None and code in {0, None}:
        return None
    codes = {code, *(int(each) for found in _WRAPPER.findall(output) for each in found if each)}
    said = _said(part, codes, (output, _WRAPPER.sub("", output).strip()))
    told = functools.partial(Trouble, part=part, output=output)
    if check.broken is not None and check.broken.startswith(_COPIES):
        folder = escape(check.broken.removeprefix(_COPIES))
        fix = (_TREES if folder.endswith("/work") else _ELSEWHERE).format(folder)
        return told(what=f"counts too much: {check.broken}", fix=fix, output="")
    if check.broken is not None and _NPX in check.broken:
        what, _, better = check.broken.partition(_NPX)
        return told(what=f"cannot run: {what}", fix=f"--check {shlex.quote(better)}")
    if check.broken is not None:
        fix = said.fix if said is not None and said.sure else _BY_HAND
        return told(what=f"cannot run: {check.broken}", fix=fix, passing=code not in {None, 126, 127})
    if said is not None and said.sure:
        return said
    killed = [each for each in codes if each is not None and (each < 0 or each in _KILLED)]
    if killed:
        return told(what=f"was cut short: {describe_exit(killed[0])}", fix=_BY_HAND, passing=True)
    if _TIMED_OUT in codes and check.tests is None:
        what = f"was cut short: exit code {_TIMED_OUT}, with which `timeout` ends what takes too long"
        return told(what=what, fix=_BY_HAND, passing=True)
    refused = next((each for each in _PYTEST_CODES if each in codes), None)
    if refused is None or not _PYTEST.search(output):
        return said
    what = f"cannot begin: pytest ended with {_PYTEST_CODES[refused]} (exit code {refused})"
    if said is not None:
        return told(what=f"{what}; it {said.what}", fix=said.fix)
    return told(what=what, fix="edit the command, or pytest's configuration, as it says")


def _said(part: str, codes: Collection[int | None], outputs: Sequence[str]) -> Trouble | None:
    for row in _ROWS:
        for output in outputs if not row.codes or row.codes & set(codes) else ():
            found = row.pattern.search(output)
            if found is not None:
                named = [escape(group) for group in found.groups("")]
                package = named[-1].partition(".")[0] if named else ""
                fix, what = row.fix.format(*named, package), row.what.format(*named)
                return Trouble(part=part, what=what, fix=fix, sure=row.sure, output=outputs[0])
    return None


def trouble_of_scorer(reading: ScoreReading) -> Trouble | None:
    """Return why a scorer gave no number; None where it gave one."""
    what, passing = f"gives no usable number: {reading.invalid or reading.reason}", False
    if reading.broken is not None:
        what, passing = f"cannot run: {reading.broken}", re.search(r"\bexit code 12[67]\b|not found", reading.broken) is None
    elif reading.score is not None:
        return None
    fix = "run it by hand in the working directory; it should print one number from 0 to 1, or JSON with score and reason"
    fix += "; or raise its timeout" if passing else ""
    part = f"scorer '{reading.dimension}'"
    return Trouble(part=part, what=what, fix=fix, passing=passing, dimension=reading.dimension)
