"""The scorers and checks of the demo as commands.

``python -m jumar.demo.measure NAME DOCUMENT --reference ORIGINAL [--bytes N]``

A scorer prints one line of JSON, ``{"score": 0.83, "reason": "…"}``, a check one line of words, and exits 0 (passed)
or 1. ``--bytes``: only the first N bytes of the original count. A file that cannot be read, or a wrong call, is exit code
2.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NamedTuple

from jumar.core.text import escape
from jumar.demo.blocks import Block, parse
from jumar.demo.reading import read_text
from jumar.demo.scores import Check, Score

__all__ = ["CHECKS", "SCORES", "main", "measure"]

SCORES = {"coverage": True, "length": True, "novelty": False, "readability": False, "structure": True}
"""Each dimension (and the module that measures it), and whether it looks at the original."""

CHECKS = ("links", "markup", "title")


class _Call(NamedTuple):
    name: str
    document: str
    reference: str
    limit: int | None


def measure(name: str, reference: Sequence[Block], blocks: Sequence[Block]) -> Score | Check:
    """Return what the measure ``name`` (of ``SCORES`` or ``CHECKS``) says about ``blocks``. ``KeyError`` for another name."""
    if name in CHECKS:
        check: Callable[[Sequence[Block], Sequence[Block]], Check] = getattr(import_module("jumar.demo.checks"), name)
        return check(reference, blocks)
    score: Callable[..., Score] = getattr(import_module(f"jumar.demo.{name}"), name)
    return score(reference, blocks) if SCORES[name] else score(blocks)


def _understand(arguments: Sequence[str]) -> _Call | None:
    options: dict[str, str] = {}
    plain: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument in {"--reference", "--bytes"}:
            options[argument] = next(rest, "")
        else:
            plain.append(argument)
    limit = options.get("--bytes")
    if len(plain) != 2 or not options.get("--reference") or (limit is not None and not limit.isdecimal()):
        return None
    if plain[0] not in SCORES and plain[0] not in CHECKS:
        return None
    return _Call(plain[0], plain[1], options["--reference"], None if limit is None else int(limit))


def main(arguments: Sequence[str]) -> int:
    """Measure as the command line says, print the result, return the exit code."""
    call = _understand(arguments)
    if call is None:
        names = "|".join([*SCORES, *CHECKS])
        sys.stderr.write(f"usage: python -m jumar.demo.measure {names} DOCUMENT --reference ORIGINAL [--bytes N]\n")
        return 2
    try:
        blocks = parse(read_text(call.document).text).blocks
        compares = call.name in CHECKS or SCORES[call.name]
        reference = parse(read_text(call.reference, limit=call.limit).text).blocks if compares else ()
    except OSError as error:
        sys.stderr.write(f"could not read {escape(str(error.filename))}: {error.strerror}\n")
        return 2
    result = measure(call.name, reference, blocks)
    reason = escape(result.reason)
    if isinstance(result, Check):
        sys.stdout.write(reason + "\n")
        return 0 if result.passed else 1
    sys.stdout.write(json.dumps({"score": round(result.score, 6), "reason": reason}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
