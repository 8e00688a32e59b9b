"""``jumar prove``: a counted look at the held-out items, a proof, and its verification."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from commands import call
from learning_kit import looks_made, planted_targets, set_of

from jumar.core.lock import LoopLock
from jumar.errors import ConflictError
from jumar.judging.asking.settings import JudgeConfig, JudgeSettings
from jumar.judging.patterns.storage import serialised
from jumar.learning.material import Target
from jumar.learning.proof.split import split_items
from jumar.learning.run.prove import LOOKS, count_look
from jumar.learning.run.request import ProveRequest, remember

NOW = datetime(2026, 1, 2, tzinfo=UTC)
EFFECTS = {"velvet": 0.9, "rust": -0.9}


def write_items(path: Path, targets: list[Target]) -> None:
    rows = [
        {"id": one.item.id, "group": one.item.group, "text": one.item.text, "judge_scores": list(one.readings)} for one in targets
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def out(tmp_path):
    """A folder as a learning run leaves it."""
    folder = tmp_path / "out"
    folder.mkdir()
    items = tmp_path / "items.jsonl"
    targets = planted_targets(60, 3, EFFECTS)
    write_items(items, targets)
    split = split_items([one.item for one in targets])
    (folder / "split.json").write_text(json.dumps(split.to_json()))
    (folder / "patterns.json").write_bytes(serialised(set_of(EFFECTS, 2.0), folder / "patterns.json"))
    remember(
        ProveRequest(output=folder, items=items, judge=JudgeConfig(spec=f"replay:{items}", settings=JudgeSettings(repeat=1)))
    )
    return folder


def proven(folder: Path, *options: str, check: int = 0) -> dict:
    return json.loads(call("prove", str(folder), "--json", *options, check=check).out)


def test_a_folder_is_proven_with_nothing_but_its_name_and_the_proof_is_verified_offline(out):
    found = proven(out)
    assert ("tracks", True) == (found["verdict"], found["tracks"])
    assert {"mae", "spearman", "interval", "constant_mae", "length_mae", "length_spearman"} <= set(found["heldout"])
    assert {"number": 1, "planned": 3, "extra": False, "false_tracks": 0.025} == found["looks"]
    assert (180, 0.0) == (found["judge_calls"], found["cost_usd"])
    proof = out / "proof.json"
    assert str(proof) == found["proof"]
    items = str(out.parent / "items.jsonl")
    alone = json.loads(call("prove", "--verify", str(proof), "--json").out)
    whole = json.loads(
        call("prove", "--verify", str(proof), "--items", items, "--patterns", str(out / "patterns.json"), "--json").out
    )
    assert (True, [], 5) == (alone["holds"], alone["problems"], len(alone["checked"]))
    assert (True, [], 8) == (whole["holds"], whole["problems"], len(whole["checked"]))
    assert ["the texts and the split of the items", "the set of patterns", "every cheap score, from the texts"] == alone[
        "not_checked"
    ]
    assert [] == whole["not_checked"]
    told = call("prove", "--verify", str(proof)).out
    assert "unchecked the set of patterns" in told
    assert "--patterns FILE" in told


def test_the_number_of_a_look_is_that_which_was_written_down(out):
    proven(out)
    proof = out / "proof.json"
    for number in ("0" * 64, (out / "looks.jsonl").read_text()[:0]):
        first = (out / "looks.jsonl").read_text()
        (out / "looks.jsonl").write_text(f'{{"at": "2026-01-01T00:00:00+00:00", "key": "{number}"}}\n' + first)
    told = call("prove", "--verify", str(proof), check=14).out
    assert "looks.number: 1 in the proof; looks.jsonl beside it has number 3" in told
    (out / "looks.jsonl").write_text("")
    assert "has none at this set with this judge" in call("prove", "--verify", str(proof), check=14).out
    (out / "looks.jsonl").unlink()
    assert "unchecked which evaluation it was" in call("prove", "--verify", str(proof)).out
    lost = call("prove", str(out), check=14).err
    assert "0 evaluations written down, and proof.json beside it has number 1" in lost


def test_other_verdicts_are_another_look(out):
    proven(out)
    verdicts = out / "verdicts.jsonl"
    split = json.loads((out / "split.json").read_text())["groups"]
    lines = [json.loads(line) for line in verdicts.read_text().splitlines()]
    groups = {one["id"]: one["group"] for one in map(json.loads, (out.parent / "items.jsonl").read_text().splitlines())}
    sealed = next(one for one in lines if split[f"group:{groups[one['id']]}"] == "sealed")
    sealed["result"]["readings"] = [1.0 if sealed["result"]["readings"][0] > 3 else 5.0]
    verdicts.write_text("".join(json.dumps(one) + "\n" for one in lines))
    assert [2, 2] == [proven(out)["looks"]["number"] for _ in range(2)]
    verdicts.unlink()
    assert 3 == proven(out)["looks"]["number"]
    assert 3 == looks_made(out)


def test_a_damaged_set_is_not_replaced_by_an_older_one(out):
    proven(out)
    (out / "patterns.json").rename(out / "patterns.json.backup")
    (out / "patterns.json").write_text("{")
    before = (out / "proof.json").read_bytes()
    assert "patterns.json" in call("prove", str(out), check=2).err
    assert (1, before) == (looks_made(out), (out / "proof.json").read_bytes())


def test_two_do_not_prove_at_the_same_time(out):
    with LoopLock(out / ".prove.lock", what="the proof"):
        assert "the proof of" in call("prove", str(out), check=13).err
    proven(out)


def test_verdicts_do_not_get_younger_by_proving_again(out):
    def dated() -> str:
        return json.loads((out / "proof.json").read_text())["created_at"]

    proven(out)
    first = json.loads((out / "looks.jsonl").read_text().splitlines()[0])["at"]
    looks = (out / "looks.jsonl").read_text().replace(first[:4], "2020")
    (out / "looks.jsonl").write_text(looks)
    proven(out)
    assert "2020" == dated()[:4]
    assert "stale     it is" in call("prove", "--verify", str(out / "proof.json")).out
    (out / "patterns.json").write_bytes(serialised(set_of(EFFECTS, 1.9), out / "patterns.json"))
    assert (2, "2020") == (proven(out)["looks"]["number"], dated()[:4])  # another set, but what the judge said is as old
    (out / "verdicts.jsonl").unlink()
    proven(out)
    assert "2020" != dated()[:4]


def test_the_same_set_again_is_the_same_look_and_a_fourth_one_has_to_be_asked_for(out):
    assert [1, 1] == [proven(out)["looks"]["number"] for _ in range(2)]
    for number, weight in ((2, 1.9), (3, 1.8)):
        (out / "patterns.json").write_bytes(serialised(set_of(EFFECTS, weight), out / "patterns.json"))
        assert number == proven(out)["looks"]["number"]
    (out / "patterns.json").write_bytes(serialised(set_of(EFFECTS, 1.7), out / "patterns.json"))
    before = (out / "proof.json").read_bytes()
    refused = call("prove", str(out), check=2)
    assert "used for 3 evaluations" in refused.err
    assert "--extra-look" in refused.err
    assert (3, before) == (looks_made(out), (out / "proof.json").read_bytes())
    extra = proven(out, "--extra-look")
    assert {"number": 4, "planned": 3, "extra": True, "false_tracks": 0.1} == extra["looks"]
    assert "in 24 groups, evaluation 4, beyond the plan" in call("prove", str(out), "--extra-look").out


def test_a_look_is_counted_before_the_sealed_items_are_asked_about(out):
    items = out.parent / "items.jsonl"
    half = items.read_text().splitlines()[:-60]
    recorded = out.parent / "half.jsonl"
    recorded.write_text("\n".join(half) + "\n")
    failed = call("prove", str(out), "--judge", f"replay:{recorded}", check=1)
    assert "could not be judged" in failed.err
    assert 1 == looks_made(out)
    assert not (out / "proof.json").exists()


def test_a_changed_proof_is_told_with_what_differs_and_exit_code_14(out):
    proven(out)
    proof = out / "proof.json"
    proof.write_text(proof.read_text().replace('"verdict": "tracks"', '"verdict": "fails"'))
    told = call("prove", "--verify", str(proof), check=14)
    assert "verdict: fails in the proof, tracks computed" in told.out
    assert "content_hash" in told.out
    assert "does not hold: 2 differences" in told.out
    proof.write_text("{}")
    assert "not a proof" in call("prove", "--verify", str(proof), check=14).err


def test_other_items_and_patterns_than_the_proven_ones_are_told(out):
    proven(out)
    other = out.parent / "other.json"
    other.write_bytes(serialised(set_of(EFFECTS, 0.5), other))
    told = call("prove", "--verify", str(out / "proof.json"), "--patterns", str(other), check=14)
    assert "patterns.hash" in told.out
    items = out.parent / "items.jsonl"
    items.write_text(items.read_text().replace("velvet", "cotton"))
    told = call("prove", "--verify", str(out / "proof.json"), "--items", str(items), check=14)
    assert "has another text" in told.out
    assert "these are not the items of split.json" in call("prove", str(out), check=2).err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "name the folder"),
        (["out", "--verify", "p.json"], "asks no judge"),
        (["--verify", "p.json", "--extra-look"], "evaluates nothing"),
        (["--verify", "nothing.json"], "nothing.json cannot be read"),
        (["out", "--patterns", "p.json"], "goes with --verify"),
        (["empty"], "give --items FILE"),
        (["empty", "--items", "i.jsonl"], "give --judge SPEC"),
        (["empty", "--items", "i.jsonl", "--judge", "mock:"], "split.json cannot be read"),
    ],
)
def test_what_cannot_be_done_is_said(arguments, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    assert says in call("prove", *arguments, check=2).err


def test_a_damaged_request_names_the_way_out(out):
    (out / "request.json").write_text("{")
    assert "give --items and --judge" in call("prove", str(out), check=14).err
    (out / "request.json").write_text('{"format": 2}')
    assert "update it" in call("prove", str(out), check=14).err


def test_verdicts_that_are_there_are_not_asked_for_again(out):
    from jumar.judging.items.item import digest_of, item_digest
    from jumar.judging.models import ExpensiveModeResult

    proven(out)
    lines = [
        {
            "id": one.item.id,
            "item": item_digest(one.item),
            "judge": digest_of(json.loads((out / "proof.json").read_text())["judge"]),
            "result": ExpensiveModeResult(
                story_id=one.item.id, gestalt=one.score, reasoning="", strengths=[], weaknesses=[], readings=list(one.readings)
            ).model_dump(mode="json"),
        }
        for one in planted_targets(60, 3, EFFECTS)[:100]
    ]
    (out / "verdicts.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines) + '{"id": "cut')
    assert 80 == proven(out)["judge_calls"]
    whose = (out / "verdicts.jsonl").read_text()
    looks = (out / "looks.jsonl").read_bytes()
    told = call("prove", str(out), "--repeat", "2", check=2).err
    assert "verdicts.jsonl:1: this verdict is of another judge than" in told
    assert (whose, looks) == (
        (out / "verdicts.jsonl").read_text(),
        (out / "looks.jsonl").read_bytes(),
    )  # nothing is asked, no look
    (out / "verdicts.jsonl").write_text("nonsense\n")
    assert "verdicts.jsonl:1: not a verdict" in call("prove", str(out), check=14).err


# ---------------------------------------------------------------------------------------------------------------- looks


def test_a_line_that_a_crash_cut_off_was_a_look(tmp_path):
    assert 0 == looks_made(tmp_path)
    assert 1 == count_look(tmp_path, {"patterns": "a"}, at=NOW)[0].number
    with (tmp_path / LOOKS).open("ab") as stream:
        stream.write(b'{"format": 1, "num')
    assert 2 == looks_made(tmp_path)
    assert 1 == count_look(tmp_path, {"patterns": "a"}, at=NOW)[0].number
    assert 3 == count_look(tmp_path, {"patterns": "b"}, at=NOW)[0].number
    with pytest.raises(ConflictError):
        count_look(tmp_path, {"patterns": "c"}, at=NOW)
    assert count_look(tmp_path, {"patterns": "c"}, at=NOW, extra=True)[0].extra
    assert 4 == looks_made(tmp_path)
    assert 3 == sum(line.startswith(b'{"format": 1, "number"') for line in (tmp_path / LOOKS).read_bytes().splitlines())


def test_a_group_that_has_another_name_is_known_beside_the_run_and_can_be_given(out):
    items = out.parent / "items.jsonl"
    items.write_text(items.read_text().replace('"group"', '"ticket"'))
    request = json.loads((out / "request.json").read_text())
    (out / "request.json").write_text(json.dumps({**request, "fields": {"group": "ticket"}}))
    proven(out)
    whole = ["--items", str(items), "--patterns", str(out / "patterns.json")]
    assert "holds" in call("prove", "--verify", str(out / "proof.json"), *whole).out
    moved = out.parent / "proof.json"
    moved.write_bytes((out / "proof.json").read_bytes())
    told = call("prove", "--verify", str(moved), *whole, check=14).out
    assert "differs   the texts and the split of the items" in told
    assert "holds" in call("prove", "--verify", str(moved), *whole, "--group", "ticket").out
