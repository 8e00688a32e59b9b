"""A loop keeps the defaults that it began with. ``support/begun`` holds ``loop.json`` as version 0.1 wrote it, without any."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from commands import call, call_json

from jumar.app.config.config import JumarConfig
from jumar.app.run import given
from jumar.app.run.given import config_with, defaults_of, said_otherwise
from jumar.core.codec import encode

BEGUN = Path(__file__).parents[1] / "support" / "begun"
CONFIG = """
[loop]
id = "calc"
objective = "Make it better."

[generator]
command = "echo $JUMAR_ITERATION >> made.txt"

[[checks]]
name = "made"
command = "test -s made.txt"

[[scorers]]
dimension = "worth"
command = "test $(cat made.txt | wc -l) = 1 && echo 1 || echo 0.5"
"""
COMMAND = ("--check", "test -s made.txt", "--", "sh", "-c", "echo $JUMAR_ITERATION >> made.txt")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, and the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "made.txt").touch()
    return tmp_path


def begun(kind: str, loop: str, place: Path) -> Path:
    """Lay the record of a loop that an earlier version began into ``place``."""
    path = place / ".jumar" / "loops" / loop / "loop.json"
    path.parent.mkdir(parents=True)
    shutil.copyfile(BEGUN / f"{kind}.json", path)
    return path


def recorded(loop: str, place: Path) -> Any:
    return json.loads((place / ".jumar" / "loops" / loop / "loop.json").read_text())["config"]


def test_one_of_an_earlier_version_is_resumed_without_a_question(place: Path) -> None:
    (place / "jumar.toml").write_text(CONFIG)
    begun("configured", "calc", place)

    result = call_json("run", "-n", 2)

    assert 2 == result["final_iteration"]
    assert "defaults" not in recorded("calc", place)


@pytest.mark.parametrize("table", ["checks", "validators"])
def test_what_a_check_gives_stays_what_it_was(table: str, place: Path) -> None:
    """A loop that scored yes or no goes on so, whichever name the table has now; a new one counts the tests."""
    counting = "echo '1 failed, 3 passed in 0.05s'; test -s made.txt"
    text = CONFIG.replace("[[checks]]", f"[[{table}]]").replace('"test -s made.txt"', f'"{counting}"')
    (place / "jumar.toml").write_text(text)
    path = begun("configured", "calc", place)
    data = json.loads(path.read_text())
    data["config"]["run"]["validators"][0]["command"] = counting
    path.write_bytes(encode({key: value for key, value in data.items() if key != "seal"}, sealed=True))

    call_json("run", "-n", 1)
    old = call_json("show", "calc")["iterations"][1]["checks"][0]
    call_json("run", "-n", 1, "--new")
    new = call_json("show", "calc-2")["iterations"][1]["checks"][0]

    assert (True, None) == (old["passed"], old["tests"])
    assert (3, 4) == (new["tests"]["passed"], new["tests"]["total"])


def test_one_of_a_command_line_is_found_again(place: Path) -> None:
    loop = "oldloop-20261122-211142-5654"
    begun("command-line", loop, place)

    result = call_json("run", "-n", 2, *COMMAND)

    assert loop == result["loop_id"]
    assert (2, "max_iterations") == (result["final_iteration"], result["stop_reason"]), "no target of 100 for it"


def test_a_new_loop_records_every_default_and_what_is_said_otherwise(place: Path) -> None:
    (place / "jumar.toml").write_text(CONFIG + "[noise]\ntie = 2.0\n")
    call_json("run", "-n", 1)

    config = recorded("calc", place)

    assert dict(defaults_of(None)) == config["defaults"]
    assert 1.0 == config["defaults"]["noise.tie"]
    assert {"tie": 2.0} == config["run"]["noise"]
    assert 600 == config["defaults"]["validators[].timeout"]
    assert "generator.command" in config["defaults"]
    assert "weights" not in config["run"]


def reseal(loop: str, place: Path, **other: Any) -> None:
    """Give the loop in ``place`` other defaults, as if another version had begun it."""
    path = place / ".jumar" / "loops" / loop / "loop.json"
    data = json.loads(path.read_text())
    data["config"]["defaults"] |= {key.replace("__", "."): value for key, value in other.items()}
    path.write_bytes(encode({key: value for key, value in data.items() if key != "seal"}, sealed=True))


def test_what_it_began_with_holds_when_it_is_resumed(place: Path) -> None:
    (place / "jumar.toml").write_text(CONFIG)
    call_json("run", "-n", 1)
    reseal("calc", place, generator__timeout=1.5, stop__consecutive_failures=1)
    (place / "jumar.toml").write_text(CONFIG.replace("echo $J", "sleep 60; echo $J"))

    result = call_json("run", "-n", 5, "--accept-changes")

    assert "consecutive_failures" == result["stop_reason"]
    assert {"generator_timeout": 1} == result["failures"]
    accepted = json.loads(next((place / ".jumar/loops/calc/decisions").glob("*-accept.json")).read_text())
    assert "generator.command" in accepted["reason"]
    assert "timeout" not in accepted["reason"]
    assert 1.5 == accepted["data"]["config"]["defaults"]["generator.timeout"]


@pytest.mark.parametrize(
    ("began", "says", "differs"),
    [
        ("most_recent_above_threshold", None, False),
        ("most_recent_above_threshold", "most_recent_above_threshold", False),
        ("most_recent_above_threshold", "highest_quality_verified", True),  # what this version has as its default
        ("most_recent_above_threshold", "highest_quality", True),
    ],
)
def test_a_key_is_compared_by_what_holds_and_not_by_how_it_is_written(
    place: Path, began: str, says: str | None, differs: bool
) -> None:
    (place / "jumar.toml").write_text(CONFIG)
    call_json("run", "-n", 1)
    reseal("calc", place, selection__mode=began)
    (place / "jumar.toml").write_text(CONFIG + ("" if says is None else f"[selection]\nmode = '{says}'\n"))

    done = call("run", "-n", 2)

    assert differs == ("selection.mode" in done.err), done
    assert (2 if differs else 0) == done.code


def parsed(**sections: Any) -> JumarConfig:
    base: Mapping[str, Any] = {"generator": {"command": "true"}, "validators": [{"name": "one", "command": "true"}]}
    return JumarConfig.model_validate({**base, **sections})


def test_a_younger_key_takes_what_was_so_before_it_came(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    (place / "jumar.toml").write_text(CONFIG)
    call_json("run", "-n", 1)
    path = place / ".jumar" / "loops" / "calc" / "loop.json"
    monkeypatch.setattr(given, "FORMER", MappingProxyType({"retry.broken": 7, "memory.max_k": 3}))
    from jumar.loop.store.loop_reader import LoopReader

    of_loop = defaults_of(LoopReader(path.parent))
    assert (1, 8) == (of_loop["retry.broken"], of_loop["memory.max_k"])  # recorded, so nothing younger than the loop

    shutil.copyfile(BEGUN / "configured.json", path)
    of_loop = defaults_of(LoopReader(path.parent))
    assert (7, 3, 0.95) == (of_loop["retry.broken"], of_loop["memory.max_k"], of_loop["noise.level"])


def test_entries_of_a_list_and_tables_that_are_not_there() -> None:
    now = defaults_of(None)
    began = {**now, "validators[].timeout": 9, "scorers[].timeout": 8, "evaluator.timeout": 7, "retry.broken": 3}
    entries = [{"name": "one", "command": "true"}, {"name": "two", "command": "true", "timeout": 600}]

    config = config_with(began, parsed(validators=entries))

    assert [9, 600] == [validator.timeout for validator in config.validators]
    assert config.evaluator is None
    assert 3 == config.retry.broken
    said = said_otherwise(began, config)
    assert {"generator": {"command": "true"}, "validators": entries} == said
    assert said == said_otherwise(began, config_with(began, parsed(validators=entries, retry={"broken": 3})))
    assert {"broken": 1} == said_otherwise(began, config_with(began, parsed(retry={"broken": 1})))["retry"]
    assert config_with(now, parsed()) == parsed()
