"""What must not change while modules move: public names, help, documents of stores of an earlier day, exit codes, messages.

What is meant to change is recorded anew by ``python tests/golden/record.py``; the diff of the files then says what it was.
"""

from __future__ import annotations

import importlib
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from goldens import HERE, called_at_home, expect, first_line, run, told_once, unpack

from jumar import BestOutputTracker

DOCUMENTS = sorted((HERE / "documents").glob("*.json"))


def test_the_public_names_are_what_they_were():
    """Those of `jumar` itself and of `jumar.ranking` are pinned by tests of their own."""
    path = HERE / "names.json"
    expect(path, {package: sorted(importlib.import_module(package).__all__) for package in json.loads(path.read_text())})
    for package, names in json.loads(path.read_text()).items():
        for name in names:
            assert hasattr(importlib.import_module(package), name), f"{package}.{name}"


def test_the_help_of_every_command_is_what_it_was():
    helped = _helps()
    assert len(helped) > 40, helped.keys()
    expect(HERE / "help.txt", "\n\n".join(f"$ jumar {name}\n\n{text.rstrip()}" for name, text in helped.items()) + "\n")


@pytest.mark.parametrize("path", DOCUMENTS, ids=[path.stem for path in DOCUMENTS])
def test_a_store_of_that_day_is_read_resumed_and_verified_as_then(path: Path):
    recorded = json.loads(path.read_text())
    unpack(recorded["store"])

    steps: list[dict[str, Any]] = []
    told: set[str] = set()
    moving: set[str] = set()
    for step in recorded["steps"]:
        moving |= set(step.get("moving", ()))  # from here on: something was written anew
        kept = {key: step[key] for key in ("command", "moving") if key in step}
        found = run(step["command"], moving)
        steps.append(kept | found | {"document": told_once(found["document"], told)})

    expect(path, recorded | {"steps": steps})


def test_a_tracker_goes_on_with_what_it_recorded_that_day():
    unpack("tracked")
    tracker = BestOutputTracker("tracked")
    assert [1, 2, 3] == [record.iteration_number for record in tracker.get_all_iterations()]

    Path("output.md").write_text("draft 4\n")
    tracker.record_iteration(iteration_number=4, dimensions=dict.fromkeys(tracker.quality_weights, 0.95), artifacts=["output.md"])
    Path("output.md").write_text("draft 5\n")

    assert 4 == tracker.apply_output().selected_iteration
    assert "draft 4\n" == Path("output.md").read_text()


def test_bad_input_ends_as_it_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    recorded = json.loads((HERE / "errors.json").read_text())
    found: list[dict[str, Any]] = []
    for number, case in enumerate(recorded):
        place = tmp_path / f"error-{number}"
        place.mkdir()
        monkeypatch.chdir(place)
        if "store" in case:
            unpack(case["store"])
        for name, text in case.get("files", {}).items():
            path = place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            path.write_text(text)
        called = called_at_home(*shlex.split(case["command"])[1:])
        kept = {key: case[key] for key in ("command", "store", "files") if key in case}
        found.append(kept | {"exit": called.code, "says": first_line(called.err or called.out)})
    expect(HERE / "errors.json", found)


def _helps() -> dict[str, str]:
    """Return what each command says of itself, those below a group too, by how it is typed."""
    found: dict[str, str] = {}
    waiting = [""]
    while waiting:
        name = waiting.pop(0)
        found[name or "--help"] = text = called_at_home(*name.split(), "--help").out
        _, _, listed = text.partition("\nCommands:\n")
        below = re.findall(r"(?m)^  (\S+)  ", listed.partition("\n\n")[0])
        waiting += [f"{name} {command}".strip() for command in below]
    return dict(sorted(found.items()))
