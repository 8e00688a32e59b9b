"""A link in the place of a loop, or of all of them, to where a person's files lie: none of them is moved or replaced."""

from __future__ import annotations

import shutil
from pathlib import Path

from commands import Called, call

AGENT = "echo $JUMAR_ITERATION >> made; echo >> ../calls"
RUN = ("--id", "t", "--score", "wc -l < made | awk '{ print $1 / 10 }'", "--", "sh", "-c", AGENT)


def run(passes: int, *, check: int) -> Called:
    return call("run", "-n", passes, *RUN, check=check)


def lead(link: Path, to: Path) -> dict[str, bytes]:
    """Put a link to ``to``, with a copy of what ``link`` was beside a person's files, in its place; return those files."""
    for name in ("todo", "final-output/mine", "scratch/mine", ".tmp-mine"):
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        (to / name).write_text(name)
    (to / "led").symlink_to("todo")
    there = texts(to)
    shutil.copytree(link, to, dirs_exist_ok=True)
    shutil.rmtree(link)
    link.symlink_to(to)
    return there


def texts(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def begun() -> None:
    Path("made").touch()
    run(1, check=0)


def test_what_lies_beside_loops_that_a_link_leads_to_stays(fresh_place: Path) -> None:
    begun()
    persons = fresh_place.parent / "persons"
    there = lead(Path(".jumar/loops"), persons)

    run(2, check=0)

    assert there.items() <= texts(persons).items()
    assert "1\n2\n" == Path("made").read_text()


def test_through_a_link_to_a_loop_nothing_is_written_and_nothing_is_paid(fresh_place: Path) -> None:
    begun()
    persons = fresh_place.parent / "persons"
    link = Path(".jumar/loops/t")
    there = lead(link, persons) | texts(persons)

    for refused in (run(2, check=1), call("apply", check=1), call("cleanup", "t", "--keep", 0, check=1)):
        assert "is a link to" in refused.err
    for command in ("show", "status", "report", "verify"):
        call(command, "t", check=0)
    assert there == texts(persons)
    assert 1 == len((fresh_place.parent / "calls").read_text().splitlines())

    link.unlink()
    shutil.copytree(persons, link)
    run(2, check=0)
