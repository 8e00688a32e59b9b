"""What an evaluation writes: a line an item, and the folder of one iteration. Nothing is seen there before it is whole."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

from jumar.core import __version__
from jumar.core.files import as_write_error, fsync_directory, make_directory, rename_new, replace_file, sha256_file
from jumar.core.leftovers import remove_tree, sweep, temporary_name
from jumar.core.lock import LoopLock
from jumar.core.text import escape, plural
from jumar.errors import JumarError, UsageError
from jumar.judging.items.item import Item, item_digest, patterns_digest
from jumar.judging.patterns.models import PatternSet
from jumar.judging.proofs import Proof, read_proof

_OF_LEARNING: Final = ("request.json", "split.json")
_ITERATION: Final = re.compile(r"iteration_(\d+)")


def refuse_learning(output: Path) -> None:
    """Refuse the folder of a learning run: its iterations are of other items, and would be compared with these.

    Errors: :class:`jumar.errors.UsageError`.
    """
    if any((output / name).is_file() for name in _OF_LEARNING):
        raise UsageError(
            f"-o {escape(str(output))}: is the folder of `jumar learn`, whose iterations are its own; name another one"
        )


@contextlib.contextmanager
def new_iteration(output: Path) -> Generator[tuple[int, Path, Path]]:
    """Give the number of a new iteration, a temporary folder for its files, and the name that the folder is to get.

    The number is one more than the highest below ``output``, which is made when it is missing. A folder that was not renamed is
    removed.
    Errors: :class:`jumar.errors.StoreWriteError`.
    """
    with as_write_error("write into", output):
        make_directory(output)
        sweep(output)
        known = (int(found[1]) for one in output.iterdir() if (found := _ITERATION.fullmatch(one.name)))
        number = max(known, default=0) + 1
        temporary = output / temporary_name()
        temporary.mkdir()
    try:
        yield number, temporary, output / f"iteration_{number}"
    finally:
        if temporary.exists():
            remove_tree(temporary)


def write_folder(output: Path, documents: Callable[[int, Path], Mapping[str, str]]) -> None:
    """Write ``iteration_N`` below ``output``, whole: ``documents`` gives its files, for a number and the folder's name."""
    with as_write_error("write into", output), new_iteration(output) as (number, temporary, directory):
        for name, text in documents(number, directory).items():
            replace_file(temporary / name, text.encode())
        fsync_directory(temporary)
        rename_new(temporary, directory)


def sources_of(path: Path | None) -> list[dict[str, Any]]:
    """Return the files behind ``path`` with their hashes; a pipe or stdin cannot be read again and has none."""
    if path is None or str(path) == "-":
        return []
    if not path.is_file() and not path.is_dir():
        return [{"path": str(path), "sha256": None, "bytes": None}]
    files = sorted(one for one in path.iterdir() if one.suffix.lower() == ".txt") if path.is_dir() else [path]
    return [{"path": str(file), "sha256": sha256_file(file.resolve()), "bytes": file.stat().st_size} for file in files]


_PROOF: Final = "proof.json"


def proof_beside(path: Path | None, patterns: PatternSet | None) -> Proof | None:
    """Return the proof of ``patterns`` in the folder of their file; None where none can be read, or it is of another set."""
    if path is None or patterns is None:
        return None
    try:
        found = read_proof(path.with_name(_PROOF))
    except JumarError:  # nobody asked for it
        return None
    return found if found.patterns.hash == patterns_digest(patterns) else None


def learned_from(items: Sequence[Item], proof: Proof | None) -> int | None:
    """Return how many of ``items`` the proven set was learned from or chosen by; None without a proof.

    An item is known by all that judges see of it. Its group may be missing here: then its id finds it.
    """
    if proof is None:
        return None
    opened = {row.id: row for row in proof.opened}
    hashes = {row.hash for row in proof.opened}
    count = 0
    for item in items:
        row = opened.get(item.id)
        known = item_digest(item) in hashes
        count += known or (row is not None and item_digest(replace(item, group=row.group)) == row.hash)
    return count


def learned_from_words(count: int, items: int) -> str:
    """Return what :func:`learned_from` means, for a person."""
    which = "all" if count == items else f"{count:,} of the"
    return (
        f"the set was learned from {which} {plural(items, 'item')}, and follows the judge better on these than on others; what "
        "it does on new ones, its proof and new items say"
    )


def item_row(item: Item) -> str:
    """Return an item as JSON: a story's fields, else ``text``; ``prompt``, ``context`` and ``group`` where there are any."""
    row: dict[str, Any] = item.story.model_dump() if item.story is not None else {"id": item.id, "text": item.text}
    if item.story is None and item.prompt:
        row["prompt"] = item.prompt
    if item.story is None and item.context:
        row["context"] = item.context
    if item.group is not None:
        row["group"] = item.group
    return json.dumps(row, ensure_ascii=False, allow_nan=False)


def item_rows(items: Iterable[Item]) -> str:
    """Return items as one JSON array, an item a line."""
    return "[\n" + ",\n".join(map(item_row, items)) + "\n]\n"


def check_per_item(target: Path | None, *inputs: Path | None) -> None:
    """Refuse a file of rows that cannot be written, or that is one of ``inputs``. Errors: :class:`jumar.errors.UsageError`."""
    if target is None:
        return
    shown = f"--per-item {escape(str(target))}"
    if str(target) == "-":
        raise UsageError(f"{shown}: name a file; stdout has the summary, or with --json the document")
    if not target.absolute().parent.is_dir():
        raise UsageError(f"{shown}: its folder does not exist; make it first")
    if target.is_dir():
        raise UsageError(f"{shown}: is a folder; name a file")
    if target.exists() and not target.is_file():
        raise UsageError(f"{shown}: is no regular file; name another one")
    for one in inputs:
        if one is not None and one.exists() and target.exists() and target.samefile(one):
            raise UsageError(f"{shown}: would replace what is read from; name another file")


@contextlib.contextmanager
def claimed(target: Path | None) -> Generator[None]:
    """Keep the file of rows for this process, before anything is paid for; None is no file.

    Errors: :class:`jumar.errors.LockedError` that names the evaluation which writes there.
    """
    if target is None:
        yield
        return
    place = target.resolve()
    sweep(place.parent)
    with LoopLock(place.with_name(f".{place.name}.lock"), what=f"--per-item {escape(str(target))}") as lock:
        try:
            yield
        finally:
            lock.path.unlink(missing_ok=True)


class EvaluationFiles:
    """Collects rows in temporary files; :meth:`finish` gives them their names, leaving without it deletes them.

    ``per_item`` is replaced; below ``output`` a new ``iteration_N`` is made, N one more than the highest there. Errors:
    :class:`jumar.errors.UsageError` for a folder that does not exist, :class:`jumar.errors.StoreWriteError` of the disk.
    """

    def __init__(self, per_item: Path | None, output: Path | None) -> None:
        self._per_item = per_item
        self._output = output
        self._lines: IO[str] | None = None
        self._arrays: dict[str, IO[str]] = {}
        self._temporary: Path | None = None
        self._count = 0
        self._stack = contextlib.ExitStack()
        self.directory: Path | None = None

    def __enter__(self) -> Self:
        token = temporary_name()
        if self._per_item is not None:
            with as_write_error("write", self._per_item):
                self._lines = self._per_item.with_name(self._per_item.name + token).open("x", encoding="utf-8")
        if self._output is not None:
            _, self._temporary, self.directory = self._stack.enter_context(new_iteration(self._output))
            with as_write_error("write into", self._output):
                self._begin(self._temporary, "stories.json", "[")
                self._begin(self._temporary, "cheap_eval.json", '{"mode": "cheap", "individual_scores": [')
        return self

    def add(self, lines: str, judged: Sequence[tuple[str, str]]) -> None:
        """Write the rows of further items: the lines for ``--per-item``, their results and they themselves for the folder."""
        with as_write_error("write", self._per_item or self._output or Path()):
            if self._lines is not None:
                self._lines.write(lines)
            if self._arrays and judged:
                between = ",\n" if self._count else "\n"
                self._arrays["cheap_eval.json"].write(between + ",\n".join(result for result, _ in judged))
                self._arrays["stories.json"].write(between + ",\n".join(item for _, item in judged))
        self._count += len(judged)

    def finish(self, document: Mapping[str, Any], items: Path, patterns: Path | None) -> None:
        """Close what was collected with the figures over all of it, and give it its names."""
        with as_write_error("write", self._per_item or self._output or Path()):
            if self._temporary is not None and self.directory is not None:
                figures = {"gestalt_avg": document["cheap"]["gestalt_avg"], "story_count": document["story_count"]}
                self._arrays["cheap_eval.json"].write(
                    "\n], " + json.dumps({**figures, **document["cheap"]}, allow_nan=False)[1:] + "\n"
                )
                self._arrays["stories.json"].write("\n]\n")
                for stream in self._arrays.values():
                    _close(stream)
                manifest = {**document, "jumar": __version__, "sources": sources_of(items), "patterns": sources_of(patterns)}
                self._begin(
                    self._temporary, "manifest.json", json.dumps({**manifest, "output": None}, indent=2, allow_nan=False) + "\n"
                )
                _close(self._arrays["manifest.json"])
                fsync_directory(self._temporary)
                rename_new(self._temporary, self.directory)
            if self._lines is not None and self._per_item is not None:
                _close(self._lines)
                Path(self._lines.name).replace(self._per_item)
                fsync_directory(self._per_item.absolute().parent)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for stream in (*self._arrays.values(), *((self._lines,) if self._lines is not None else ())):
            with contextlib.suppress(OSError):
                stream.close()
        if self._lines is not None:
            Path(self._lines.name).unlink(missing_ok=True)
        self._stack.close()

    def _begin(self, folder: Path, name: str, text: str) -> None:
        stream = (folder / name).open("x", encoding="utf-8")
        self._arrays[name] = stream
        stream.write(text)


def _close(stream: IO[str]) -> None:
    stream.flush()
    os.fsync(stream.fileno())
    stream.close()
