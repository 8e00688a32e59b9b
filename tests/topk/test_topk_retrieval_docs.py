"""The page of retrieval settings says what the models say: every key, every parameter, every default."""

from __future__ import annotations

import json
import re
from pathlib import Path

from jumar.topk import ScoredItem
from jumar.topk.config import CONFIGS, RetrievalConfig
from jumar.topk.retrieval import EVENT, select_candidates

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "retrieval.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return next(part for part in re.split(r"^## ", PAGE, flags=re.MULTILINE) if part.startswith(title))


def test_the_page_lists_the_keys_of_the_table():
    documented = re.findall(r"^\| `(\w+)` \|", section("`[pipeline.retrieval]`"), re.MULTILINE)

    assert list(RetrievalConfig.model_fields) == documented


def test_the_page_lists_every_parameter_with_its_default():
    found: dict[str, dict[str, object]] = {}
    strategy = ""
    for name, parameter, default in re.findall(
        r"^\| (?:`(\w+)` )?\| `(\w+)` \| (\S+) \|", section("The strategies' parameters"), re.MULTILINE
    ):
        strategy = name or strategy
        found.setdefault(strategy, {})[parameter] = None if default == "none" else json.loads(default.strip("`"))

    assert {name: config().model_dump(exclude={"strategy", "scale"}) for name, config in CONFIGS.items()} == found


def test_the_line_of_the_log_is_what_is_logged(caplog):
    shown = json.loads(section("The log").partition("```json\n")[2].partition("\n```")[0])
    scores = (0.92, 0.89, 0.71, 0.45, 0.42)
    with caplog.at_level("INFO", logger="jumar.topk"):
        select_candidates("rules", [ScoredItem(number, score) for number, score in enumerate(scores)], turn="abc123")
    record = caplog.records[0].__dict__

    assert EVENT == shown["event"] == caplog.records[0].getMessage()
    assert {**shown, "time": 0} == {
        "event": EVENT,
        "time": 0,
        "logical_turn_id": record["logical_turn_id"],
        "retrieval": record["retrieval"],
    }
