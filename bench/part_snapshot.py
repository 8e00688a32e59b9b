"""A snapshot of 10,000 files of which 1 % changed: time and bytes on disk, against ``cp -a``, ``rsync --link-dest`` and git."""

from __future__ import annotations

import os
import random
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from timing import Row, milliseconds, seconds

from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.store.layout import prepare_root
from jumar.loop.store.loop_store import LoopStore

FILES = 10_000
CHANGED = 100
SIZE = 4_000
ROUNDS = 7


def make_tree(root: Path, rng: random.Random) -> list[Path]:
    """Write the tree, aged so that no tool has to doubt its time stamps."""
    made: list[Path] = []
    for index in range(FILES):
        path = root / f"d{index // 100:03d}" / f"f{index:05d}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(rng.randbytes(SIZE))
        made.append(path)
    time.sleep(3)
    return made


def bytes_used(path: Path) -> int:
    """Return the blocks that a tree takes, each inode once."""
    seen: dict[tuple[int, int], int] = {}
    for directory, names, files in os.walk(path):
        for name in (*names, *files):
            status = os.lstat(os.path.join(directory, name))
            seen[status.st_dev, status.st_ino] = status.st_blocks * 512
    return sum(seen.values())


def run(*command: str, cwd: Path | None = None) -> None:
    subprocess.run(command, cwd=cwd, check=True, capture_output=True)


def measure(directory: Path) -> Iterator[Row]:
    rng = random.Random(7)
    tree = directory / "tree"
    files = make_tree(tree, rng)
    tools = {"jumar": jumar_tool(directory, tree), "`cp -a`": copy_tool(directory, tree)}
    if shutil.which("rsync"):
        tools["`rsync --link-dest`"] = rsync_tool(directory, tree)
    if shutil.which("git"):
        tools["`git add -A && git commit`"] = git_tool(directory, tree)
    for take, _ in tools.values():
        take(0)
    times: dict[str, list[float]] = {name: [] for name in tools}
    grown: dict[str, list[int]] = {name: [] for name in tools}
    for number in range(1, ROUNDS + 1):
        for path in rng.sample(files, CHANGED):
            path.write_bytes(rng.randbytes(SIZE))
        time.sleep(2.5)  # an iteration of an agent takes longer; time stamps younger than that are doubted by all of them
        for name, (take, where) in tools.items():
            before = bytes_used(where)
            times[name].append(seconds(lambda take=take, number=number: take(number)))
            grown[name].append(bytes_used(where) - before)
    ours = statistics.median(times["jumar"])
    size = statistics.median(grown["jumar"])
    changed = CHANGED * 4096
    for name in list(tools)[1:]:
        theirs = statistics.median(times[name])
        yield (
            f"snapshot, {FILES:,} files, 1 % changed",
            milliseconds(ours),
            f"{name} {milliseconds(theirs)}: {ours / theirs:.2f}×",
            "fastest of the four",
        )
    for name in tools:
        yield (
            "its bytes on disk",
            f"{name}: {statistics.median(grown[name]) / 1e6:.2f} MB",
            f"changed files {changed / 1e6:.2f} MB",
            "—",
        )
    yield (
        "jumar's bytes beyond the changed files",
        f"{(size - changed) / 1e6:.2f} MB",
        "directories + delta manifest + record",
        "—",
    )


Tool = tuple[Callable[[int], None], Path]


def jumar_tool(directory: Path, tree: Path) -> Tool:
    """Stage what the loop's rules match: what the engine does between two iterations, listing included."""
    root = directory / "jumar"
    prepare_root(root)
    store = LoopStore.create(root / "loops" / "bench", "bench", {}, workdir=tree, created_at="2026-01-01T00:00:00Z")
    rules = ArtifactRules()

    def take(number: int) -> None:
        from jumar.model import IterationRecord

        paths = rules.list(tree)
        pending = store.stage(number, source=tree, paths=paths, nonce=f"n{number}", attempt=None, stage={}, logs=None)
        store.commit(pending, IterationRecord(iteration_number=number, timestamp="2026-01-01T00:00:00Z", quality_score=50.0))

    return take, root


def copy_tool(directory: Path, tree: Path) -> Tool:
    root = directory / "copies"
    root.mkdir()
    return lambda number: run("cp", "-a", str(tree), str(root / str(number))), root


def rsync_tool(directory: Path, tree: Path) -> Tool:
    root = directory / "rsync"
    root.mkdir()

    def take(number: int) -> None:
        link = [f"--link-dest={root / str(number - 1)}"] if number else []
        run("rsync", "-a", *link, f"{tree}/", f"{root / str(number)}/")

    return take, root


def git_tool(directory: Path, tree: Path) -> Tool:
    repository = directory / "repository.git"
    run("git", "init", "--bare", str(repository))
    identity = ("-c", "user.name=bench", "-c", "user.email=bench@example.invalid", "-c", "gc.auto=0")
    work = ("git", *identity, f"--git-dir={repository}", f"--work-tree={tree}")

    def take(number: int) -> None:
        run(*work, "add", "-A", cwd=tree)
        run(*work, "commit", "-q", "-m", str(number), cwd=tree)

    return take, repository
