"""Secrets out of what is written: known values and the shapes of well-known tokens become ``[redacted: NAME]``.

What a generator, a check or a judge prints is kept for ever and shown to the next iteration. Whatever writes such text asks
:func:`current` first; ``app/`` wires it once per process from ``[redact]``, and without that it knows the environment's secrets
and the shapes. The files of a snapshot are never altered: they are the person's, to the byte.

Everything works on UTF-8 bytes. A text without secrets costs one search for each known value and what
:mod:`jumar.core.secret_formats` costs, and comes back as the same object.
"""

from __future__ import annotations

import fnmatch
import html
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast
from urllib.parse import quote

from jumar.core.secret_formats import COMMON, LONGEST, may_name_secret, secrets_in

SECRET_NAMES: Final = ("*TOKEN*", "*SECRET*", "*PASSWORD*", "*PASSWD*", "*CREDENTIAL*", "*AUTH", "*_auth*", "*_KEY", "*_PAT")
"""Names of variables that look like secrets. ``*`` stands for any characters; case matters."""

LEAST: Final = 8
"""Shorter values are never searched for: they would be found by chance. Bytes of UTF-8."""

_WORDS_TO: Final = 12  # letters alone, or digits alone, up to this length are words and numbers
_PATH: Final = re.compile(r"(?:~|\.{1,2})?/[^\s:=+]*|[A-Za-z]:\\.*")
_MARK: Final = re.compile(rb"\[redacted(?:: [A-Za-z0-9_.-]{1,100})?\]")
_MARKED: Final = b"[redacted"
_PLAIN: Final = b"[redacted]"
_ROUNDS: Final = 20
_HELD: Final = 64 << 10  # bytes of a line without an end that a stream holds back at most


def unfit(value: str) -> str | None:
    """Return why ``value`` cannot be searched for without finding what is no secret; None when it can."""
    if len(value.encode("utf-8", "surrogatepass")) < LEAST:
        return f"is shorter than {LEAST} characters, and would be found by chance"
    if value.lower() in COMMON or len(set(value)) < 3:
        return "is a common word, and would be found where it is no secret"
    return None


def environment_secrets(environment: Mapping[str, str], also: Iterable[str] = ()) -> dict[str, str]:
    """Return the variables whose name looks like a secret, and those that ``also`` names, where the value is fit to be found.

    Of the first kind, values that are words, numbers or paths are left out: they are settings.
    """
    named = set(also)
    found: dict[str, str] = {}
    for name, value in environment.items():
        if name in named:
            usable = unfit(value) is None
        else:
            usable = any(fnmatch.fnmatchcase(name, pattern) for pattern in SECRET_NAMES) and not _is_setting(value)
        if usable:
            found[name] = value
    return found


def _is_setting(value: str) -> bool:
    if unfit(value) is not None or _PATH.fullmatch(value):
        return True
    return len(value) < _WORDS_TO and (value.isalpha() or value.isdigit())


class _Span(NamedTuple):
    start: int
    end: int
    label: bytes


class Redactor:
    """Finds and replaces secrets. Made of values by name, of regular expressions, and of the known shapes.

    A value that :func:`unfit` refuses is not searched for. Values are also found as they stand in JSON and in an address.
    A pattern is matched against UTF-8 bytes, ``^`` and ``$`` at the ends of lines; the callers have checked it. Immutable; may
    be shared between threads.
    """

    def __init__(
        self,
        values: Mapping[str, str] | None = None,
        *,
        patterns: Iterable[str] = (),
        shapes: bool = True,
    ) -> None:
        literals: dict[bytes, bytes] = {}
        for name, value in (values or {}).items():
            if unfit(value) is None:
                for form in _forms(value):
                    literals.setdefault(form, _label(name, value))
        self._literals: Sequence[tuple[bytes, bytes]] = tuple(sorted(literals.items(), key=lambda item: -len(item[0])))
        self._patterns = tuple(re.compile(pattern.encode(), re.MULTILINE) for pattern in patterns)
        self._shapes = shapes
        self._longest = max((len(literal) for literal, _ in self._literals), default=0)

    def redact(self, text: str) -> str:
        """Return ``text`` without secrets; the same object when there are none. Doing it twice changes nothing more."""
        data = text.encode("utf-8", "surrogatepass")
        done = self.redact_bytes(data)
        if done is data:
            return text
        try:
            return done.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:  # a pattern of single bytes took a part of a character
            return done.decode("utf-8", "replace")

    def redact_bytes(self, data: bytes) -> bytes:
        """Return ``data`` without secrets; the same object when there are none."""
        for _ in range(_ROUNDS):  # what stood on both sides of a secret may be one, now that they meet its replacement
            spans = self._spans(data)
            if not spans:
                break
            data = _replaced(data, spans)
        return data

    def finds(self, data: bytes) -> bool:
        """Return whether :meth:`redact_bytes` would change ``data``."""
        return bool(self._spans(data))

    def known_in(self, data: bytes) -> frozenset[str]:
        """Return the names of the known values (not shapes, not patterns) that stand in ``data``."""
        return frozenset(label[len(_MARKED) + 2 : -1].decode() or "?" for literal, label in self._literals if literal in data)

    @property
    def knows_values(self) -> bool:
        """Whether there are values to look for at all."""
        return bool(self._literals)

    @property
    def by_line(self) -> bool:
        """Whether a stream waits for the end of a line: shapes and patterns may begin anywhere in one."""
        return self._shapes or bool(self._patterns)

    @property
    def longest(self) -> int:
        """The length in bytes of the longest form of a known value; 0 when there is none."""
        return self._longest

    @property
    def reach(self) -> int:
        """How many bytes a stream holds back at most, for a secret that may have begun in them."""
        return max(_HELD, 2 * self._longest)

    def stream(self) -> RedactedStream:
        """Return a filter for a text that comes in chunks."""
        return RedactedStream(self)

    def settled(self, data: bytes) -> tuple[int, bytes]:
        """Return how many of the first bytes of ``data`` stay what they are whatever follows, and these, redacted."""
        spans = self._spans(data)
        cut = self._cut(data, spans)
        before = [span for span in spans if span.start < cut]
        if not before:
            return cut, data[:cut]
        done = _replaced(data[:cut], before)
        for _ in range(_ROUNDS):  # of the values alone: what a shape ends with may differ now that what follows is cut off
            again = self._values_in(done)
            if not again:
                break
            done = _replaced(done, _joined(again))
        return cut, done

    def _values_in(self, data: bytes) -> list[_Span]:
        return [span for literal, label in self._literals if literal in data for span in _occurrences(data, literal, label)]

    def _spans(self, data: bytes) -> list[_Span]:
        """Return what is to be replaced, in order, without overlaps."""
        found = self._values_in(data)
        loose = [_Span(*span, _PLAIN) for span in secrets_in(data)] if self._shapes else []
        for pattern in self._patterns:
            loose += [_Span(*match.span(), _PLAIN) for match in pattern.finditer(data) if match.end() > match.start()]
        if loose and _MARKED in data:
            marks = [match.span() for match in _MARK.finditer(data)]
            loose = [span for span in loose if not any(span.start < end and start < span.end for start, end in marks)]
        return _joined(found + loose) if found or loose else []

    def _cut(self, data: bytes, spans: Iterable[_Span]) -> int:
        """Return how much of the beginning of ``data`` no secret can reach out of that ends after ``data``."""
        cut = len(data)
        for literal, _ in self._literals:
            at = data.find(literal[:1], max(0, len(data) - len(literal) + 1))
            while 0 <= at < cut:
                if literal.startswith(data[at:]):
                    cut = at
                    break
                at = data.find(literal[:1], at + 1)
        if self.by_line:
            line = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
            cut = min(cut, line if len(data) - line <= _HELD else len(data) - LONGEST)
        for span in spans:
            behind = data[span.end : cut]  # a block of keys may go on after the end of a line
            goes_on = behind.isspace() and data.startswith(b"-----BEGIN", span.start)
            if span.start < cut and (span.end > cut or ((goes_on or span.end == len(data)) and len(data) < _HELD)):
                cut = span.start
        return cut


NOTHING: Final = Redactor(shapes=False)
"""Changes nothing."""


class RedactedStream:
    """Redacts a stream whose chunks may end within a secret.

    What could be the beginning of one is held back: at most 64 KiB, mostly the last line while it has no end. All that
    :meth:`feed` and :meth:`finish` returned, joined, holds none of the known values; shapes and patterns are found in a line.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = b""

    def feed(self, chunk: bytes) -> bytes:
        """Take the next chunk; return what is certain by now, redacted."""
        self._held = data = self._held + chunk if self._held else chunk
        if self._redactor.by_line and len(data) <= _HELD and b"\n" not in chunk and b"\r" not in chunk:
            return b""
        cut, done = self._redactor.settled(data)
        if len(data) - cut > self._redactor.reach:  # an endless key: what is known of it is taken out
            data = self._redactor.redact_bytes(data)
            cut = max(0, len(data) - LONGEST)
            done = data[:cut]
        self._held = data[cut:]
        return done

    def finish(self) -> bytes:
        """Return the rest; the stream has ended."""
        rest, self._held = self._held, b""
        return self._redactor.redact_bytes(rest)


def _forms(value: str) -> Iterator[bytes]:
    """Yield how a value may stand in a file: as it is, in JSON, in an address, in HTML."""
    raw = value.encode("utf-8", "surrogatepass")
    yield raw
    yield json.dumps(value)[1:-1].encode()
    yield json.dumps(value, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
    yield quote(raw).encode()
    yield quote(raw, safe="").encode()
    yield html.escape(value).replace("&quot;", "&#34;").replace("&#x27;", "&#39;").encode("utf-8", "surrogatepass")


def _label(name: str, value: str) -> bytes:
    safe = re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:100]
    # a name that holds the value, or is part of it, would give it away
    return f"[redacted: {safe}]".encode() if safe and value not in f"[redacted: {safe}]" else _PLAIN


def _occurrences(data: bytes, literal: bytes, label: bytes) -> Iterator[_Span]:
    at = data.find(literal)
    while at >= 0:
        yield _Span(at, at + len(literal), label)
        at = data.find(literal, at + 1)


def _joined(spans: list[_Span]) -> list[_Span]:
    spans.sort(key=lambda span: (span.start, -span.end))
    joined = [spans[0]]
    for span in spans[1:]:
        last = joined[-1]
        if span.start >= last.end:
            joined.append(span)
        elif span.end > last.end or last.label == _PLAIN:
            joined[-1] = _Span(last.start, max(last.end, span.end), last.label if last.label != _PLAIN else span.label)
    return joined


def _replaced(data: bytes, spans: Iterable[_Span]) -> bytes:
    parts: list[bytes] = []
    at = 0
    for start, end, label in spans:
        parts += (data[at:start], label)
        at = end
    return b"".join((*parts, data[at:]))


def redacted_json(value: Any, redact: Callable[[str], str], keep: frozenset[str] = frozenset()) -> Any:
    """Return JSON data with ``redact`` applied to every string, keys included; what stands under a key of ``keep`` is left.

    A string that is a secret because of its key, such as ``password``, goes too.
    """
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        found = cast("Mapping[str, Any]", value)
        return {
            redact(name): item
            if name in keep
            else _redacted_under(name, item, redact)
            if isinstance(item, str)
            else redacted_json(item, redact, keep)
            for name, item in found.items()
        }
    if isinstance(value, list | tuple):
        return [redacted_json(item, redact, keep) for item in cast("Sequence[Any]", value)]
    return value


def _redacted_under(name: str, text: str, redact: Callable[[str], str]) -> str:
    if may_name_secret(name):
        lead = f'{name}="'
        done = redact(f'{lead}{text}"')
        if done.startswith(lead) and done.endswith('"'):
            text = done[len(lead) : -1]
    return redact(text)


class _Wired:
    redactor: Redactor | None = None


def install(redactor: Redactor | None) -> None:
    """Make ``redactor`` the one that everything in this process asks; None goes back to the environment's."""
    _Wired.redactor = redactor


def current() -> Redactor:
    """Return the redactor of this process: what was installed, else one of the environment's secrets and the shapes."""
    if _Wired.redactor is None:
        _Wired.redactor = Redactor(environment_secrets(os.environ))
    return _Wired.redactor
