"""A run may begin with a set, but not with one whose scores of the items are no evidence."""

from __future__ import annotations

import json
from pathlib import Path

from commands import call, unwrapped
from learn_items import judged_items, write_items


def test_a_set_is_no_start_for_the_items_that_it_was_learned_from(tmp_path: Path) -> None:
    items, first = write_items(tmp_path / "items.jsonl", judged_items(20, 2, seed=3)), tmp_path / "first"
    other = [{**one, "id": f"new {one['id']}"} for one in judged_items(20, 2, seed=4)]
    others = write_items(tmp_path / "others.jsonl", [{**one, "text": f"{one['text']} So it is."} for one in other])
    asked = ["--judge", f"replay:{items}", "--max-iterations", "1", "--json"]
    call("learn", items, "-o", first, *asked, check=0)
    learned = first / "patterns.json"
    said = unwrapped(call("learn", items, "-o", tmp_path / "second", "--patterns", learned, "--seed", "5", *asked, check=2).out)
    assert "was learned from 24 of these 40 items: what it says of them is no evidence" in json.loads(said)["error"]["message"]
    assert not (tmp_path / "second" / "verdicts.jsonl").exists()
    asked[1] = f"replay:{others}"
    begun = call("learn", others, "-o", tmp_path / "third", "--patterns", learned, *asked, check=0)
    assert "from which items is not known" not in begun.err
    copied = tmp_path / "copied.json"
    copied.write_bytes(learned.read_bytes())
    warned = call("learn", others, "-o", tmp_path / "fourth", "--patterns", copied, *asked, check=0)
    assert "from which items is not known: its proof does not lie beside it" in warned.err
    refused = call("learn", others, "-o", tmp_path / "fifth", "--patterns", copied, "--robust", *asked, check=2).out
    assert "was learned without the guard, and --robust would keep it" in json.loads(refused)["error"]["message"]
