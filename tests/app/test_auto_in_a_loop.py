"""Mode auto in a run: the generator sees nothing of the learned set, the person sees who decided, and what to be wary of."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from auto_kit import EFFECTS, proven_folder
from commands import call
from steps_kit import context

from jumar.app.config.evaluator import EvaluatorConfig
from jumar.app.run.evaluator import Evaluators, Place
from jumar.judging.items.item import patterns_digest
from jumar.judging.patterns.storage import load_pattern_set
from jumar.judging.proofs import read_proof

CONFIG = """\
[loop]
objective = "Improve the items."
max_iterations = 2
[generator]
command = "cat $JUMAR_PROMPT_FILE > prompt-seen.md"
[evaluator]
mode = "auto"
items = "new.jsonl"
judge = "replay:new.jsonl"
patterns = "patterns.json"
proof = "proof.json"
decision_line = 3.5
repeat = 1
audit = 0.2
"""
PROBES = {"passed": False, "probes": {"stuffing": {"passed": False}, "padding": {"passed": True}}}


@pytest.fixture(scope="module")
def proven(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return proven_folder(tmp_path_factory.mktemp("auto-run"))


@pytest.fixture
def here(proven: Path, fresh_place: Path) -> Path:
    for name in ("patterns.json", "proof.json", "new.jsonl"):
        shutil.copy(proven / name, fresh_place / name)
    Path("jumar.toml").write_text(CONFIG)
    Path("result.json").write_text(json.dumps({"probes": PROBES}))
    return fresh_place


def age(days: int) -> None:
    proof = read_proof(Path("proof.json"))
    old = proof.model_copy(update={"created_at": proof.created_at - timedelta(days=days)}).hashed()
    Path("proof.json").write_bytes(old.to_bytes())


def test_a_run_tells_the_person_who_decided_and_the_generator_nothing_of_the_set(here: Path) -> None:
    ran = call("run", check=0)
    prompts = [path.read_text("utf-8") for path in sorted(here.rglob("prompt.md"))]
    judged = "\n".join(path.read_text("utf-8") for path in here.rglob("feedback*"))
    known = load_pattern_set(here / "patterns.json").patterns
    secrets = [*EFFECTS, *(one.id for one in known), *(one.description for one in known if one.description)]
    worst = [line for text in prompts for line in text.splitlines() if line.startswith("- `new-")]
    print(f"{len(prompts)} prompts, {len(worst)} lines of items, {len(secrets)} names that must not be there")

    assert prompts
    assert "AUTO MODE" in prompts[-1]
    assert worst
    assert not [secret for text in (*prompts, judged) for secret in secrets if secret in text]
    assert "with findings of the judge where it was asked" in prompts[-1]

    line = " ".join(ran.out.split())
    own = json.loads(next(here.rglob("auto_eval.json")).read_text("utf-8"))
    low, high = own["average"]["interval"]
    assert (
        f"{own['cheap']} of 180 items decided by the cheap judge alone, {own['audited'] + own['escalated']} by the judge" in line
    )
    assert f"average {own['average']['estimate']:.2f} [{low:.2f}, {high:.2f}]" in line
    assert f"saved {own['calls_saved']} calls, $0.0000" in line
    assert f"{own['guarantee']['wrong']} of {own['audited']} audits wrong" in line
    name = next((here / ".jumar" / "loops").iterdir()).name
    status = call("status", name, check=0)
    decided = next(one for one in status.out.splitlines() if one.startswith("auto "))
    assert decided.removeprefix("auto").strip() in line
    assert call("status", name, "--json", check=0).document["auto"]["cheaply"] == own["cheap"]
    for form in ("md", "html"):
        shown = call("report", name, "--format", form, check=0).out
        assert f"{own['cheap']} of 180" in shown
        assert f"{low:.2f}, {high:.2f}" in shown
        plain = " ".join(shown.replace("\\%", "%").split())
        assert f"may be wrong. {own['guarantee']['wrong']} of {own['audited']} audits of the last iteration" in plain


def test_a_set_that_can_be_gamed_is_warned_about_before_anything_is_asked(here: Path) -> None:
    examined, ran = call("doctor", "--no-run"), call("run", "--max-iterations", 1, check=0)
    for said in (examined.out, ran.out + ran.err):
        assert "the set can be gamed, says" in said
        assert "stuffing raised the cheap score of real items" in said.replace("\n", " ")
        assert "padding" not in said


def test_whether_it_can_be_gamed_may_be_unknown_or_no(here: Path) -> None:
    place = Place(base=here)
    config = EvaluatorConfig.model_validate(
        {
            "mode": "auto",
            "items": "new.jsonl",
            "judge": "replay:new.jsonl",
            "decision_line": 3.5,
            "patterns": "patterns.json",
            "proof": "proof.json",
        }
    )

    def warnings() -> str:
        return "\n".join(getattr(Evaluators(place).scorers(config)[0].shared.evaluator, "warnings"))  # noqa: B009

    Path("result.json").write_text(json.dumps({"probes": {"passed": True, "probes": {}}}))
    assert warnings() == ""
    Path("result.json").write_text("[]")
    assert "whether the set of" in warnings()
    Path("result.json").unlink()
    assert "can be gamed is not known: no result.json with probes lies beside it; name the file" in warnings()


def test_a_proof_that_is_not_believed_is_said_by_doctor_run_status_and_report(here: Path) -> None:
    age(365)
    why = "the proof is stale: it is 365 days old"
    examined, ran = call("doctor", "--no-run"), call("run", "--max-iterations", 1, check=0)
    name = next((here / ".jumar" / "loops").iterdir()).name
    said = [call("status", name, check=0).out, call("report", name, "--format", "md", check=0).out]
    for text in (examined.out, ran.out + ran.err, *said):
        assert why in " ".join(text.split())
    assert "so the cheap judge decides nothing and the judge is asked about every item" in " ".join((ran.out + ran.err).split())
    assert "0 of 180 items decided by the cheap judge alone, 180 by the judge" in ran.out
    assert "audits wrong" not in " ".join(ran.out.split())


def test_a_scorer_of_the_kind_judge_knows_the_mode_too(here: Path) -> None:
    old = Path("jumar.toml").read_text()
    Path("jumar.toml").write_text(old.replace("[evaluator]", '[[scorers]]\nbuiltin = "judge"'))
    out = call("run", "--max-iterations", 1, check=0).out
    assert "of 180 items decided by the cheap judge alone" in out
    proof = read_proof(Path("proof.json"))
    Path("proof.json").write_bytes(proof.model_copy(update={"seed": proof.seed}).hashed().to_bytes() + b"\n")
    changed = call("run", "--max-iterations", 2)
    assert changed.code == 2  # what decides about scores is not what it was when the loop began
    assert "proof.json" in changed.err


def test_nothing_of_a_learned_set_is_told_in_cheap_mode_either(here: Path) -> None:
    config = EvaluatorConfig.model_validate({"mode": "cheap", "items": "new.jsonl", "patterns": "patterns.json"})
    found = Evaluators(Place(base=here)).scorers(config)[0].score(context(here))
    assert found.judgement is not None
    assert found.judgement.worst
    assert not any(secret in str(found.judgement.to_json()) for secret in EFFECTS)


def test_a_set_that_can_be_gamed_is_warned_about_in_cheap_mode_too(here: Path) -> None:
    old = Path("jumar.toml").read_text()
    table = '[evaluator]\nmode = "cheap"\nitems = "new.jsonl"\npatterns = "patterns.json"\n'
    Path("jumar.toml").write_text(old.partition("[evaluator]")[0] + table)
    said = " ".join(call("doctor", "--no-run").out.split())
    assert "mode cheap: the set can be gamed, says" in said
    Path("patterns.json").write_text('{"version": "2.0", "patterns": []}')
    assert "gamed" not in call("doctor", "--no-run").out


@pytest.mark.parametrize("mode", ["cheap", "auto"])
def test_a_set_that_was_learned_for_fidelity_scores_no_loop_unless_somebody_allows_it(here: Path, mode: str) -> None:
    old = Path("jumar.toml").read_text()
    if mode == "cheap":
        old = old.partition("[evaluator]")[0] + '[evaluator]\nmode = "cheap"\nitems = "new.jsonl"\npatterns = "patterns.json"\n'
    proof = read_proof(Path("proof.json"))
    for robust in (True, False):
        document = {**json.loads(Path("patterns.json").read_text()), "robust": robust}
        Path("patterns.json").write_text(json.dumps(document))
        of_set = proof.patterns.model_copy(update={"hash": patterns_digest(load_pattern_set(Path("patterns.json")))})
        other = proof.model_copy(update={"robust": robust, "patterns": of_set}).hashed()
        Path("proof.json").write_bytes(other.to_bytes())
        Path("jumar.toml").write_text(old)
        if robust:
            assert "--robust" not in call("doctor", "--no-run").out
    said = " ".join(call("run", check=2).err.split())
    assert "[evaluator] patterns: " in said
    assert "`jumar learn --robust`, or set allow_gameable = true" in said
    Path("jumar.toml").write_text(old + "allow_gameable = true\n")
    call("run", check=0)
    assert "allow_gameable = true: a learned set that was not made to be optimised against" in call("report", check=0).out
    refused = call("prove", "--verify", "proof.json", "--patterns", "patterns.json", check=0)
    assert "the set of patterns" in refused.out
    document["robust"] = True
    Path("patterns.json").write_text(json.dumps(document))
    assert (
        "robust: False in the proof, True computed" in call("prove", "--verify", "proof.json", "--patterns", "patterns.json").out
    )
