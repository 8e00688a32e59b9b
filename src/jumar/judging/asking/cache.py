"""Replies by content: the same question to the same judge is asked once, ever.

A file a reply, named after the hash of everything that decides about the answer: the question without its nonce, the template's
version, the judge, its parameters, and which of several readings it is. Files are written aside and renamed, so that two
processes at once do no harm: whoever is second writes the same name again, whole. Durability costs a sync that is not worth it
here: a reply that is lost is asked again, and a file that a power failure cut off is noticed.

A program that a loop runs can write here too. A reply is taken when it bears this user's mark, or when it was there before any
such program ran: from an older jumar, another machine, or a cache of CI. What such a program has a judge asked bears no mark.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import logging
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

from jumar.core.files import as_write_error, content_of, write_once
from jumar.core.leftovers import sweep, temporary_name
from jumar.core.lock import own_directory
from jumar.core.marks import marked, origin
from jumar.core.redaction import current, redacted_json
from jumar.core.text import escape
from jumar.errors import StoreWriteError
from jumar.judging.asking.prompt import well_formed
from jumar.model.protocols import Judge, JudgeReply, JudgeRequest
from jumar.model.records import Usage
from jumar.processes.process_tree import programs_above

FORMAT: Final = 1
_log = logging.getLogger("jumar.judging.expensive")


def cache_key(identity: str, request: JudgeRequest, template: int) -> str:
    """Return the SHA-256 of what decides about the answer.

    ``request`` is the question as it would be with an empty nonce. Its ``item_id`` does not count, nor does the id in its item:
    the same text is the same question.
    """
    content = {
        "format": FORMAT,
        "judge": identity,
        "template": template,
        "system": request.system,
        "user": request.user,
        "item": {name: value for name, value in request.item.items() if name != "id"},
        "schema": request.schema,
        "repeat": request.repeat,
        "temperature": request.temperature,
        "seed": request.seed,
    }
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()


class ReplyCache:
    """Replies below ``directory``, which is made when it is missing. Errors: :class:`jumar.errors.StoreWriteError`.

    ``since`` is when the run, or its loop, began, in nanoseconds of the wall clock, None for now. ``forged`` is told of each
    reply that was found and is not taken.
    """

    def __init__(self, directory: Path | str, *, since: int | None = None, forged: Callable[[str], object] | None = None) -> None:
        self.directory = Path(directory)
        self._since = time.time_ns() if since is None else since
        self._forged = forged
        with as_write_error("make the directory of replies", self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
        self._real = Path(os.path.realpath(directory))  # a link that is put there from now on is not a person's
        sweep(self.directory)

    def path(self, key: str) -> Path:
        """Return where the reply of ``key`` is or would be."""
        return self.directory / key[:2] / f"{key[2:]}.json"

    def get(self, key: str) -> JudgeReply | None:
        """Return the reply, or None when there is none. A damaged file is none, and one that was forged, with a warning."""
        path = self.path(key)
        content = content_of(path)
        if content is None:
            if os.path.lexists(path):
                _log.warning("jumar.judge_cache_unreadable: %s: asking again", escape(str(path)))
            return None
        if not self._is_taken(path, content, key):
            _log.warning("jumar.judge_cache_forged: %s was not written by jumar; asking again", escape(str(path)))
            if self._forged is not None:
                self._forged(path.name)
            return None
        try:
            return _decoded(json.loads(content), key)
        except (ValueError, KeyError, TypeError, RecursionError):
            _log.warning("jumar.judge_cache_damaged: %s is not a reply; asking again", escape(str(path)))
            return None

    def put(self, key: str, reply: JudgeReply, about: Mapping[str, Any]) -> None:
        """Keep ``reply``; ``about`` is for people who look into the file. Errors: :class:`jumar.errors.StoreWriteError`."""
        entry = {"format": FORMAT, "key": key, **about, "text": reply.text, "usage": reply.usage.to_json()}
        clean = redacted_json(entry, current().redact, frozenset({"key"}))
        data = json.dumps(clean, ensure_ascii=True, indent=1).encode()
        if not self._is_of_a_program:
            data = marked(data, f"replies/{key}")
        path = self._real / self.path(key).relative_to(self.directory)
        temporary = self._real / temporary_name()
        with as_write_error("keep a reply of the judge in", path):
            for place in (self._real, path.parent):
                for said in own_directory(place):
                    _log.warning("jumar.judge_cache_replaced: %s", escape(said))
            try:
                temporary.write_bytes(data)
                temporary.replace(path)
            except BaseException:
                with contextlib.suppress(OSError):
                    temporary.unlink()
                raise

    @functools.cached_property
    def _is_of_a_program(self) -> bool:
        """Whether a program of a loop asks, which may have put another judge in the place of the one that is named."""
        return any(programs_above())

    def _is_taken(self, path: Path, content: bytes, key: str) -> bool:
        whose = origin(content, f"replies/{key}")
        if whose in {"unmarked", "elsewhere"} and content.rstrip().endswith(b"}"):  # what is cut off is damage
            with contextlib.suppress(OSError):
                return path.stat().st_ctime_ns < self._since
        return whose != "forged"


def _decoded(entry: dict[str, Any], key: str) -> JudgeReply:
    if entry["format"] != FORMAT or entry["key"] != key:
        raise ValueError(entry["format"])
    text, usage = entry["text"], entry["usage"]
    if not isinstance(text, str) or not isinstance(usage, dict):
        raise TypeError("text")
    usage = cast("dict[str, Any]", usage)
    known = {
        name: usage[name] for name in ("tokens_used", "input_tokens", "output_tokens", "model", "completed") if name in usage
    }
    for name in ("tokens_used", "input_tokens", "output_tokens"):
        if not (known.get(name) is None or (isinstance(known[name], int) and known[name] >= 0)):
            raise TypeError(name)
    if not isinstance(known.get("model"), str | None) or not isinstance(known.get("completed"), bool | None):
        raise TypeError("model")
    return JudgeReply(text=well_formed(text), usage=Usage(**known))


def reply_cache(
    directory: Path | None, judge: Judge, *, since: int | None = None, forged: Callable[[str], object] | None = None
) -> ReplyCache | None:
    """Return where replies are kept, with a ``.gitignore`` in it; None for a judge whose answers are on file anyway."""
    if directory is None or getattr(judge, "recorded", False):
        return None
    try:
        cache = ReplyCache(directory, since=since, forged=forged)
    except StoreWriteError as error:
        raise StoreWriteError(
            f"{error}; name another folder for the judge's replies with --cache DIR, in a loop with `cache` of [evaluator]"
        ) from error
    ignore = cache.directory / ".gitignore"
    if not ignore.exists():
        with contextlib.suppress(FileExistsError):
            write_once(ignore, b"*\n")
    return cache
