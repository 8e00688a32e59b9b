"""Snapshots: 10,000 files of which 1 % changed, 100,000 of which ten did, the first one of those, and going back to the last.

Against ``cp -a``, ``rsync --link-dest``, git, restic and borg, those of them that are installed, and against a bare walk. The
contents are random, so that nobody gains by compressing them. Five minutes where the machine is quiet, and 6 GB of disk
(``JUMAR_BENCH_DIR``), which is deleted at the end: where a disk is slow at that, nothing that is measured waits for it.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

from timing import Row, milliseconds, seconds

from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.snapshots.restore import plan_restore, restore
from jumar.loop.store.layout import prepare_root
from jumar.loop.store.loop_store import LoopStore
from jumar.model import IterationRecord

SIZE = 4096
AGE = 2.5  # an iteration of an agent takes longer; time stamps younger than two seconds are doubted
TIME = "2026-01-01T00:00:00Z"
Take = Callable[[], object]


class Loop:
    """What the engine does between two iterations, listing included."""

    def __init__(self, root: Path, tree: Path) -> None:
        prepare_root(root)
        self.tree, self.rules, self.number = tree, ArtifactRules(), 0
        self.store = LoopStore.create(root / "loops" / "bench", "bench", {}, workdir=tree, created_at=TIME)

    def list(self) -> tuple[str, ...]:
        kept = self.store.manifest(self.number).entries if self.number else ()
        return self.rules.list(self.tree, kept=kept)

    def take(self) -> None:
        number = self.number + 1
        pending = self.store.stage(
            number, source=self.tree, paths=self.list(), nonce=f"n{number}", attempt=None, stage={}, logs=None
        )
        self.store.commit(pending, IterationRecord(iteration_number=number, timestamp=TIME, quality_score=50.0))
        self.number = number

    def restore(self) -> None:
        manifest, content = self.store.manifest(self.number), self.store.content(self.number)
        restore(plan_restore(manifest, content, self.tree, self.list(), cache=self.store.cache))


def rounds(most: int, limit: float) -> Iterator[int]:
    """Count to ``most``, or until another round would end later than ``limit`` seconds from now."""
    began = time.monotonic()
    for number in range(most):
        if (time.monotonic() - began) * (number + 1) <= limit * number or not number:
            yield number


def run(*command: str | Path, **variables: str | Path) -> None:
    subprocess.run(command, env=os.environ | variables, check=True, capture_output=True)


def copies(place: Path, tree: Path) -> Take:
    numbers = count()
    return lambda: run("cp", "-a", tree, place / str(next(numbers)))


def rsync(place: Path, tree: Path) -> Take:
    numbers = count(1)

    def take() -> None:
        number = next(numbers)
        run("rsync", "-a", f"--link-dest={place / str(number - 1)}", f"{tree}/", f"{place / str(number)}/")

    return take


def git(place: Path, tree: Path) -> Take:
    run("git", "init", "--bare", place)
    work = ("git", "-C", tree, "-c", "user.name=bench", "-c", "user.email=bench@example.invalid", "-c", "gc.auto=0")
    work = (*work, f"--git-dir={place}", f"--work-tree={tree}")
    return lambda: (run(*work, "add", "-A"), run(*work, "commit", "-q", "-m", "bench"))


def restic(place: Path, tree: Path) -> Take:
    work = partial(run, "restic", "-r", place, RESTIC_PASSWORD="bench", RESTIC_CACHE_DIR=place.with_suffix(".cache"))
    work("init")
    return partial(work, "backup", tree)


def borg(place: Path, tree: Path) -> Take:
    variables = {"BORG_BASE_DIR": place.with_suffix(".cache"), "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes"}
    numbers = count()
    run("borg", "init", "-e", "none", place, **variables)
    return lambda: run("borg", "create", f"{place}::{next(numbers)}", tree, **variables)


PEERS = {"`cp -a`": copies, "`rsync --link-dest`": rsync, "`git add -A && git commit`": git, "restic": restic, "borg": borg}
BACKUPS = {name: PEERS[name] for name in ("restic", "borg") if shutil.which(name)}


class Tree:
    """Files of random content, a hundred in a folder."""

    def __init__(self, root: Path, files: int) -> None:
        self.root, self._rng = root, random.Random(7)
        self._files = [root / f"d{index // 1000:03d}" / f"e{index // 100 % 10}" / f"f{index:06d}.txt" for index in range(files)]
        for path in self._files[::100]:
            path.parent.mkdir(parents=True)
        self._write(self._files)

    def _write(self, files: list[Path]) -> None:
        for path in files:
            path.write_bytes(self._rng.randbytes(SIZE))
        os.sync()  # else whoever is measured next waits for it
        time.sleep(AGE)

    def change(self, files: int) -> None:
        self._write(self._rng.sample(self._files, files))

    def walk(self) -> None:
        """Look at every file once."""
        pending = [os.fspath(self.root)]
        while pending:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    else:
                        entry.stat(follow_symlinks=False)


def on_disk(root: Path) -> tuple[int, int]:
    """Return the bytes of the blocks that a tree takes, and its inodes."""
    seen: dict[int, int] = {}
    for directory, names, files in os.walk(root):
        for name in (*names, *files):
            status = os.lstat(os.path.join(directory, name))
            seen[status.st_ino] = status.st_blocks * 512
    return sum(seen.values()), len(seen)


def megabytes(value: float) -> str:
    return f"{value / 1e6:.2f} MB" if value < 1e7 else f"{value / 1e6:.0f} MB"


def compared(what: str, ours: float, others: dict[str, list[float]], aim: str) -> Iterator[Row]:
    for name, times in others.items():
        theirs = statistics.median(times)
        yield what, milliseconds(ours), f"{name} {milliseconds(theirs)}: {ours / theirs:.2f}×", aim


def sizes(what: str, grown: dict[str, list[int]], changed: int) -> Row:
    ours, *others = (f"{name} {megabytes(statistics.median(each))}" for name, each in grown.items())
    return what, ours.removeprefix("jumar "), ", ".join([f"the files {megabytes(changed)}", *others]), "—"


def small(directory: Path) -> Iterator[Row]:
    """Yield what 10,000 files cost of which a hundred changed."""
    tree = Tree(directory / "tree", 10_000)
    takes: dict[str, Take] = {"jumar": Loop(directory / "jumar", tree.root).take}
    places = {"jumar": directory / "jumar"}
    for name, peer in PEERS.items():
        if shutil.which(name.strip("`").split()[0]):
            places[name] = directory / str(len(places))
            places[name].mkdir()
            takes[name] = peer(places[name], tree.root)
    for take in takes.values():
        take()
    times, grown = defaultdict[str, list[float]](list), defaultdict[str, list[int]](list)
    for _ in rounds(7, 60):
        tree.change(100)
        for name, take in takes.items():
            before, _ = on_disk(places[name])
            times[name].append(seconds(take))
            grown[name].append(on_disk(places[name])[0] - before)
    what = "snapshot, 10,000 files, 1 % changed"
    yield from compared(what, statistics.median(times.pop("jumar")), times, "fastest")
    yield sizes("… on disk", grown, 100 * SIZE)


def first(directory: Path, tree: Tree) -> Iterator[Row]:
    """Yield what the first snapshot costs, durable, by processes of their own."""
    times, grown = defaultdict[str, list[float]](list), defaultdict[str, list[int]](list)
    peaks: list[float] = []
    for number in rounds(3, 120):
        for slot, (name, peer) in enumerate({"jumar": None, "`cp -a` and `sync -f`": copies, **BACKUPS}.items()):
            place = directory / f"first-{number}-{slot}"
            place.mkdir()
            take = peer and peer(place, tree.root)
            os.sync()
            if take is None:
                command = (sys.executable, __file__, place, tree.root)
                took, peak = map(float, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
                peaks.append(peak)
            else:
                took = seconds(lambda take=take, place=place, peer=peer: (take(), peer is copies and run("sync", "-f", place)))
            times[name].append(took)
            grown[name].append(on_disk(place)[0])
    what = "first snapshot of 100,000 files of 4 KB, durable"
    yield from compared(what, statistics.median(times.pop("jumar")), times, "≤ 1.5× of `cp -a` and `sync -f`")
    yield sizes("… on disk", grown, on_disk(tree.root)[0])
    yield "… memory of the process at most, the next one and going back included", megabytes(max(peaks)), "", "≤ 200 MB"


def later(directory: Path, tree: Tree) -> Iterator[Row]:
    """Yield what an iteration costs that changed ten of the files, and going back to it."""
    loop = Loop(directory / "jumar", tree.root)
    places = {"jumar": directory / "jumar", **{name: directory / name for name in BACKUPS}}
    takes = {"jumar": loop.take, **{name: peer(places[name], tree.root) for name, peer in BACKUPS.items()}}
    for take in takes.values():
        take()
    times, grown, inodes = defaultdict[str, list[float]](list), defaultdict[str, list[int]](list), list[int]()
    for _ in rounds(5, 70):
        tree.change(10)
        times["walk with `lstat` alone"].append(seconds(tree.walk))
        for name, take in takes.items():
            before = on_disk(places[name])
            times[name].append(seconds(take))
            bytes_now, inodes_now = on_disk(places[name])
            grown[name].append(bytes_now - before[0])
            if name == "jumar":
                inodes.append(inodes_now - before[1])
        tree.change(10)
        times["restore"].append(seconds(loop.restore))
    ours, back = statistics.median(times.pop("jumar")), statistics.median(times.pop("restore"))
    yield from compared("snapshot, 100,000 files, 10 changed", ours, times, "≤ 3× of the walk, ≤ 1.5 s")
    what, figure, against, _ = sizes("… on disk", grown, 10 * SIZE)
    yield what, f"{figure}, {statistics.median(inodes)} inodes", against, "≤ the files + 64 KB, ≤ 30 inodes"
    walk = {name: times[name] for name in times if name not in BACKUPS}
    yield from compared("restore of the parent, 10 of 100,000 differ", back, walk, "≤ 3×")


def measure(directory: Path) -> Iterator[Row]:
    for name in ("small", "large"):
        (directory / name).mkdir()
    yield from small(directory / "small")
    tree = Tree(directory / "large" / "tree", 100_000)
    yield from later(directory / "large", tree)
    yield from first(directory / "large", tree)


def main() -> None:
    """Take the first snapshot in a process of its own; print its seconds, and how many bytes of memory it had."""
    loop = Loop(Path(sys.argv[1]), Path(sys.argv[2]))
    took = seconds(loop.take)
    loop.take()
    loop.restore()
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    print(took, int(peak.split()[1]) * 1024)  # what getrusage says is at least what the process that began this one has


if __name__ == "__main__":
    main()
