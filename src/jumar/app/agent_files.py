"""What a coding agent reads in a project: a section that tells it of jumar, and where it finds the MCP server.

All of it is planned before a byte is written. What a person wrote stays as it is, comments and layout too.
"""

from __future__ import annotations

import json
import re
import stat
import tomllib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final, cast

from jumar.app.agents import Agent, AgentFiles
from jumar.core.files import make_directory, read_bytes, replace_file
from jumar.core.text import escape
from jumar.errors import ConfigError

_NAME: Final = "jumar"
_BEGIN: Final = "<!-- jumar: what stands up to the end mark is written by `jumar init --agent` -->"
_END: Final = "<!-- /jumar -->"
_SECTION: Final = re.compile(r"<!-- jumar: [^\n]*-->\r?\n.*?<!-- /jumar -->", re.DOTALL)
_MARK: Final = re.compile(r"<!-- (jumar: [^\n]*|/jumar )-->")
_SPACE: Final = re.compile(r"[\s,]*")


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """``path`` as it is told, ``target`` with links followed; ``text`` is None where it says what it should already."""

    path: Path
    target: Path
    text: str | None
    mode: int

    def write(self) -> bool:
        """Write it, with the mode that it had; return whether it had to be."""
        if self.text is not None:
            make_directory(self.target.parent)
            replace_file(self.target, self.text.encode(), mode=self.mode)
        return self.text is not None


def plan_agent_files(agent: Agent, directory: Path) -> list[PlannedFile]:
    """Return what ``agent`` reads in ``directory`` and how it has to be. Errors: :class:`ConfigError` for what is broken."""
    if agent.files is None:
        return []
    servers = directory / agent.files.servers
    text, target, mode = _read(servers, directory)
    add = _added_to_toml if servers.suffix == ".toml" else _added_to_json
    planned = [PlannedFile(servers, target, add(servers, text, agent.files), mode)]
    instructions = _instructions(agent.files, directory, text)
    text, target, mode = _read(instructions, directory)
    return [*planned, PlannedFile(instructions, target, _with_section(instructions, text or ""), mode)]


def _instructions(files: AgentFiles, directory: Path, settings: str | None) -> Path:
    """Return the file that the agent reads: what its settings name, else the first that is there, else the last."""
    if files.named_by:
        found: Any = json.loads(settings or "{}")
        for key in files.named_by:
            found = cast("dict[str, Any]", found).get(key) if isinstance(found, dict) else None
        names = [name for name in (cast("list[object]", found) if isinstance(found, list) else [found]) if isinstance(name, str)]
        if names:
            return directory / ("AGENTS.md" if "AGENTS.md" in names else names[0])
    there = [name for name in files.instructions if (directory / name).exists()]
    return directory / (there or files.instructions[-1:])[0]


def _read(path: Path, directory: Path) -> tuple[str | None, Path, int]:
    """Return a file's text (None: there is none yet), where it really lies, and its mode. Errors: :class:`ConfigError`."""
    shown = escape(str(path))
    try:
        target, top = path.resolve(), directory.resolve()
        if top not in target.parents:
            raise ConfigError(f"{shown}: leads out of {escape(str(directory))}; put a file of its own there")
        mode = stat.S_IMODE(target.stat().st_mode)
        text = read_bytes(target).decode()
    except FileNotFoundError:
        return None, path.resolve(), 0o644
    except UnicodeDecodeError as error:
        raise ConfigError(f"{shown}: not UTF-8 at byte {error.start}") from None
    except (OSError, RuntimeError) as error:
        raise ConfigError(f"{shown}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not mode & 0o222:
        raise ConfigError(f"{shown}: is read-only; chmod u+w it first")
    return text, target, mode


def _with_section(path: Path, text: str) -> str | None:
    """Return ``text`` with the section in it, None where it is there as it should be. Errors: :class:`ConfigError`."""
    words = resources.files("jumar.app").joinpath("templates", "agents.md").read_text(encoding="utf-8")
    section = f"{_BEGIN}\n{words}{_END}"
    marks, found = [*_MARK.finditer(text)], [*_SECTION.finditer(text)]
    if len(marks) != 2 * len(found) or len(found) > 1:
        line = text.count("\n", 0, marks[len(marks) - 1].start()) + 1
        raise ConfigError(f"{escape(str(path))}:{line}: half a mark of jumar's section, or a second one: remove the marks")
    if found:
        new = text[: found[0].start()] + section.replace("\n", _line_end(text)) + text[found[0].end() :]
    else:
        new = _appended(text, section)
    return None if new == text else new


def _added_to_toml(path: Path, text: str | None, files: AgentFiles) -> str | None:
    """Return ``text`` with the server as a table at its end; None where there is one. Errors: :class:`ConfigError`."""
    try:
        before = tomllib.loads(text or "")
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{escape(str(path))}: not valid TOML: {error}; mend it, then run this again") from None
    servers: Any = before.get(files.key, {})
    if isinstance(servers, dict) and _NAME in servers:
        return None
    table = "\n".join([f"[{files.key}.{_NAME}]", *(f"{key} = {json.dumps(value)}" for key, value in files.entry.items())])
    new = _appended(text or "", table)
    try:
        fits = tomllib.loads(new) == {**before, files.key: {**servers, _NAME: dict(files.entry)}}
    except (tomllib.TOMLDecodeError, TypeError):
        fits = False
    if not fits:
        raise ConfigError(f"{escape(str(path))}: nothing can be added to `{files.key}` as it is written; add by hand:\n{table}")
    return new


def _added_to_json(path: Path, text: str | None, files: AgentFiles) -> str | None:
    """Return ``text`` with the server as a member of ``key``; None where there is one. Errors: :class:`ConfigError`."""
    shown, text = escape(str(path)), text if text and text.strip() else "{}\n"
    entry = json.dumps({_NAME: dict(files.entry)}, indent=2)
    by_hand = f"add to `{files.key}` by hand:\n{entry[2:-2]}"
    try:
        before: Any = json.loads(text)
    except json.JSONDecodeError as error:
        said = f"{shown}:{error.lineno}: not plain JSON: {error.msg}"
        raise ConfigError(f"{said}; mend it and run this again, or, where it has comments, {by_hand}") from None
    except RecursionError:
        raise ConfigError(f"{shown}: nested too deeply; {by_hand}") from None
    servers: Any = cast("dict[str, Any]", before).get(files.key, {}) if isinstance(before, dict) else None
    if not isinstance(servers, dict):
        raise ConfigError(f"{shown}: {files.key} is no object; {by_hand}")
    if _NAME in servers:
        return None
    whole = files.key not in before
    member = json.dumps({files.key: {_NAME: dict(files.entry)}} if whole else {_NAME: dict(files.entry)}, indent=2)[1:-2]
    at = text.index("{") if whole else _value_of(text, files.key)
    inner, close = (member, "\n") if whole else (member.replace("\n", "\n  "), "\n  ")
    more, rest = (before if whole else servers) != {}, text[at + 1 :]
    return text[: at + 1] + (f"{inner},{rest}" if more else f"{inner}{close}{rest.lstrip()}")


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _appended(text: str, block: str) -> str:
    """Return ``text`` with ``block`` behind it, an empty line between them, and lines ended as there."""
    end = _line_end(text)
    between = "" if not text else end if text.endswith("\n") else 2 * end
    return f"{text}{between}" + block.replace("\n", end) + end


def _value_of(text: str, key: str) -> int:
    """Return where the value of a member of the object that ``text`` is begins; of several the last, as JSON has it."""
    decoder, found = json.JSONDecoder(), -1
    at = _after_space(text, text.index("{") + 1)
    while text[at] != "}":
        name, at = decoder.raw_decode(text, at)
        begin = _after_space(text, text.index(":", at) + 1)
        found = begin if name == key else found
        _, at = decoder.raw_decode(text, begin)
        at = _after_space(text, at)
    return found


def _after_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return at if space is None else space.end()
