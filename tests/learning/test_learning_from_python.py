"""What is documented for Python programs runs: learn, prove, verify, mode auto; and what an item may be."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from learn_items import judged_items, write_items

from jumar.errors import ConfigError, ItemError, UsageError
from jumar.judging import CheapModeEvaluator, Item, Story, Unscored
from jumar.learning import evaluate_auto, learn, prove

DOCS = Path(__file__).parents[2] / "docs"


def code_of(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)


def test_the_example_of_learning_runs(capsys: pytest.CaptureFixture[str], fresh_place: Path) -> None:
    write_items(Path("answers.jsonl"), judged_items(60, 3, noise=0.2))
    write_items(
        Path("new.jsonl"),
        [{**one, "id": f"n-{one['id']}", "group": f"n-{one['group']}"} for one in judged_items(20, 2, seed=7, noise=0.2)],
    )
    (code,) = code_of("how-to/learn-a-cheap-judge.md")
    found: dict[str, Any] = {}
    exec(compile(code, "learn-a-cheap-judge.md", "exec"), found)
    lines = capsys.readouterr().out.splitlines()
    print("\n".join(lines))

    run, proving, decided = found["run"], found["proving"], found["decided"]
    assert lines[0] == f"{run.document()['verdict']} {run.document()['heldout']['mae']}"
    assert (run.exit_code, proving.calls) == (0, 0)
    assert lines[1] == f"{run.document()['verdict']} evaluation 1"
    assert lines[2] == "True ()"
    asked = decided.outcome.escalated + decided.outcome.audited
    assert decided.outcome.cheaply + asked == len(decided.items) == 40
    assert decided.document()["mode"] == "auto"
    assert len(lines) == 7


def test_what_is_wrong_is_said(fresh_place: Path) -> None:
    wrong: Any = {"max_costs": 3}
    with pytest.raises(TypeError, match="there is no keyword 'max_costs'; of the judge there are repeat, max_cost"):
        learn("answers.jsonl", "mock:", "outputs", **wrong)
    odd: list[dict[str, Any]] = [
        *(
            {"profile": "x"},
            {"propose": "x"},
            {"propose": "judge", "reasons": False},
            {"heldout": float("nan")},
            {"heldout": 1.0},
        ),
        *({"max_iterations": 0}, {"min_iterations": 1}, {"min_iterations": 9, "max_iterations": 8}),
    ]
    for options in odd:
        with pytest.raises(ConfigError, match=f"{next(iter(options))} = .* should be"):
            learn("answers.jsonl", "mock:", "outputs", **options)
    assert not Path("outputs").exists()
    with pytest.raises(UsageError, match="does not say what it was learned from"):
        prove(".")
    with pytest.raises(ConfigError, match="decision_line = 7"):
        evaluate_auto("new.jsonl", "mock:", patterns="p.json", proof="proof.json", decision_line=7)


def test_the_examples_of_evaluating_run(capsys: pytest.CaptureFixture[str], fresh_place: Path) -> None:
    Path("patterns.json").write_text('{"version": "2.0", "patterns": []}')
    place: dict[str, Any] = {}
    for code in code_of("how-to/evaluate-cheaply.md"):
        exec(compile(code, "evaluate-cheaply.md", "exec"), place)
    assert capsys.readouterr().out.splitlines()[-1].startswith("a1 ")


def test_an_item_is_an_item_a_story_or_a_mapping() -> None:
    text = "Restart it, because the cache is stale. Then look at the log, for example its last line."
    story = {"id": "s", "title": "Add a filter", "description": "The user can find it.", "acceptance_criteria": ["1"]}
    judge = CheapModeEvaluator()
    given = [
        Item("a", text, prompt="It hangs."),
        {"id": "a", "text": text, "prompt": "It hangs."},
        Story.model_validate(story),
        story,
    ]
    found = [one.model_dump() for one in judge.evaluate(given)]

    assert found[0] == found[1]
    assert found[2] == found[3]
    assert [one.story_id for one in judge.evaluate([{"text": text}, {"title": "Add a filter"}])] == ["item-1", "item-2"]
    assert isinstance(next(judge.evaluate([{"text": None}])), Unscored)
    with pytest.raises(ItemError, match="item 2: it has no 'text', and none of a story's"):
        list(judge.evaluate([{"text": text}, {"body": text}]))
    with pytest.raises(ItemError, match="item 1: text: give a text, not int"):
        list(judge.evaluate([{"text": 3}]))
