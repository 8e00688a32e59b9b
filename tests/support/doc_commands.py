"""The commands of a page of documentation, run as they are typed, their output compared with what the page shows.

A page has its commands in fenced blocks. In ``console`` blocks a line that begins with ``$ `` is typed and the lines below it are
what it prints; in ``sh`` blocks every line is typed. A block with a ``title`` is a file of that name, a ``python`` block
without one is run. A line ``…`` of an output stands for any number of lines, also for none. Times and the width of columns
differ from machine to machine and are not compared. Blocks of a page are run in order, in one directory; ``<!-- in: NAME -->``
before a block is for one that is run in a sample directory, ``<!-- not run: WHY -->`` for one that is not.
"""

from __future__ import annotations

import re
import subprocess
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

__all__ = ["Block", "Command", "blocks_of", "differences", "run_block"]

_FENCE: Final = re.compile(r"^( *)(?P<ticks>`{3,})(?P<info>[^\n`]*)\n(?P<body>.*?)^\1(?P=ticks) *$", re.MULTILINE | re.DOTALL)
_REMARK: Final = re.compile(r"<!-- (in|not run): ((?:(?!-->).)*) -->\s*\Z", re.DOTALL)
_INDENTED: Final = re.compile(r"(?:\A|\n)\n(?: {4}|\t)\S")
_ELLIPSIS: Final = "…"
_VARIES: Final = (
    (re.compile(r"\b(?:\d+h )?(?:\d+m )?\d+(?:\.\d+)? ?(?:ms|s)\b"), "TIME"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?"), "WHEN"),
    (re.compile(r"\s+"), " "),  # columns are as wide as their times
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command as typed, and the lines that it prints; None where the page does not say."""

    typed: str
    prints: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block: its commands, or the file that it is. ``sample`` is where it is run; ``unrun`` why it is not."""

    line: int
    language: str
    commands: tuple[Command, ...] = ()
    file: str | None = None
    content: str = ""
    sample: str | None = None
    unrun: str | None = None


@dataclass(slots=True, kw_only=True)
class _Typed:
    typed: str
    prints: list[str] = field(default_factory=list)


def blocks_of(page: str) -> Iterator[Block]:
    """Yield the blocks of a page in order. Errors: ``AssertionError`` for code that no test could run."""
    prose = _FENCE.sub("", page)
    assert not _INDENTED.search(prose), "code is in fenced blocks, so that it can be run"
    for match in _FENCE.finditer(page):
        language, _, rest = match["info"].strip().partition(" ")
        remark = _REMARK.search(page[: match.start()])
        title = re.search(r'title="([^"]+)"', rest)
        body = textwrap.dedent(match["body"])
        block = Block(
            line=page.count("\n", 0, match.start()) + 1,
            language=language,
            commands=() if title else tuple(_commands(language, body)),
            file=title[1] if title else None,
            content=body,
            sample=remark[2] if remark and remark[1] == "in" else None,
            unrun=" ".join(remark[2].split()) if remark and remark[1] == "not run" else None,
        )
        assert block.commands or block.file or block.unrun or language in {"", "text"}, (
            f"line {block.line}: a block of {language!r} that is not run: give it a title, or say why"
        )
        yield block


def _commands(language: str, body: str) -> Iterator[Command]:
    if language == "python":
        yield Command(typed=f"python - <<'END_OF_PAGE'\n{body}\nEND_OF_PAGE", prints=None)
        return
    if language == "sh":
        joined = body.replace("\\\n", " ")
        yield from (Command(typed=line.strip(), prints=None) for line in joined.splitlines() if line.strip(" #"))
        return
    if language != "console":
        return
    found: list[_Typed] = []
    continued = False
    for line in body.splitlines():
        if continued:
            found[-1].typed += "\n" + line
        elif line.startswith("$ "):
            found.append(_Typed(typed=line[2:]))
        else:
            assert found, f"a console block begins with a command: {line!r}"
            found[-1].prints.append(line)
        continued = (continued or line.startswith("$ ")) and line.endswith("\\")
    yield from (Command(typed=one.typed, prints=tuple(one.prints)) for one in found)


def run_block(block: Block, directory: Path, environment: Mapping[str, str], *, timeout: float = 120) -> list[str]:
    """Type the commands of ``block``, or write its file; return what is not as the page says, a sentence each."""
    if block.file is not None:
        (directory / block.file).write_text(block.content, encoding="utf-8")
        return []
    wrong: list[str] = []
    for command in block.commands:
        done = subprocess.run(
            ["bash", "-c", command.typed],
            cwd=directory,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            check=False,
        )
        if "Traceback (most recent call last)" in done.stdout or done.returncode in {1, 2, 14, 126, 127}:
            wrong.append(f"line {block.line}: `{command.typed}` ends with {done.returncode}:\n{done.stdout}")
        elif command.prints is not None:
            wrong += [f"line {block.line}: `{command.typed}`: {one}" for one in differences(command.prints, done.stdout)]
    return wrong


def differences(shown: tuple[str, ...], printed: str) -> list[str]:
    """Return a sentence when ``printed`` is not what a page shows; nothing when it is."""
    want = [_comparable(line) for line in shown if line.strip()]
    got = [_comparable(line) for line in printed.splitlines() if line.strip()]
    if _matches(want, got):
        return []
    return ["the page shows\n" + "\n".join(shown) + "\nand it prints\n" + printed]


def _comparable(line: str) -> str:
    for pattern, stands_for in _VARIES:
        line = pattern.sub(stands_for, line)
    return line.strip()


def _matches(want: list[str], got: list[str]) -> bool:
    """Whether ``got`` is ``want``, an ellipsis being any lines: one iteration a line shown, each set of places reached kept."""
    reached = {0}
    for line in want:
        if line == _ELLIPSIS:
            reached = set(range(min(reached), len(got) + 1)) if reached else set()
        else:
            reached = {place + 1 for place in reached if place < len(got) and got[place] == line}
    return len(got) in reached
