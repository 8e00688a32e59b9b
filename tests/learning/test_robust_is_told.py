"""Whether a set may be optimised against is said by every way of learning, and believed only where it can be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import call, unwrapped
from learn_items import judged_items, write_items

from jumar.errors import PatternLoadError
from jumar.judging.patterns.storage import load_pattern_set


def test_a_set_that_was_added_up_is_not_robust_whatever_it_began_with(tmp_path: Path) -> None:
    items = write_items(tmp_path / "items.jsonl", judged_items(20, 2, seed=3))
    begun, out = tmp_path / "begun.json", tmp_path / "out"
    begun.write_text('{"version": "2.0", "patterns": [], "robust": true}')
    asked = ["learn", items, "--judge", f"replay:{items}", "-o", out, "--patterns", begun, "--profile", "seed", "--json"]
    found = call(*asked, "--max-iterations", "1", check=0).document
    assert 1 == found["best_iteration"]
    assert (False, False, False) == (
        found["robust"],
        *(json.loads((out / name).read_text())["robust"] for name in ("patterns.json", "proof.json")),
    )
    said = unwrapped(call(*asked, "--robust", check=2).err)
    assert "--robust is a way of fitting, and --profile seed fits nothing" in said


@pytest.mark.parametrize("said", ["false", 0, "no", None, []])
def test_a_set_that_cannot_say_whether_it_is_robust_is_refused(tmp_path: Path, said: object) -> None:
    path = tmp_path / "set.json"
    path.write_text(json.dumps({"version": "2.0", "patterns": [], "robust": said}))
    with pytest.raises(PatternLoadError, match=r"set\.json: robust: should be true or false, or left out"):
        load_pattern_set(path)


def test_a_set_with_a_misspelt_robust_is_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    path.write_text('{"version": "2.0", "patterns": [], "robst": false}')
    assert "the file has 'robst', which nothing reads; did you mean 'robust'?" in call("patterns", "check", path, check=0).err


def test_a_type_that_is_no_text_is_refused_as_any_other(tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    path.write_text('{"version": "2.0", "patterns": [{"id": "a", "type": {}}]}')
    with pytest.raises(PatternLoadError, match=r"pattern 1 \(a\)"):
        load_pattern_set(path)
