"""The known agents: their blocks are valid generators, what they print is read as it is meant, and the pages say the same."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from jumar.app.agents import AGENTS, Agent, agent_blocks
from jumar.app.config.config import GeneratorConfig, load_config
from jumar.app.init import template_text
from jumar.loop.generators.failures import rate_limit
from jumar.model import Usage
from jumar.processes.usage import check_usage_map, usage_from_output

ROOT = Path(__file__).parents[2]
BY_PROGRAM = {agent.program: agent for agent in AGENTS}


def claude(models: dict[str, tuple[int, int, int, int]], **more: object) -> list[dict[str, object]]:
    names = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    used = {model: {**dict(zip(names, counts, strict=True)), "costUSD": 0.1} for model, counts in models.items()}
    usage = {"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 0}  # the main conversation's only
    return [{"type": "result", "is_error": False, "session_id": "s1", "usage": usage, "modelUsage": used, **more}]


def step(cost: float, tokens: tuple[int, int, int, int, int]) -> dict[str, object]:
    counted = dict(zip(("input", "output", "reasoning", "read", "write"), tokens, strict=True))
    cache = {"read": counted.pop("read"), "write": counted.pop("write")}
    return {
        "type": "step_finish",
        "sessionID": "ses1",
        "part": {"type": "step-finish", "cost": cost, "tokens": {**counted, "cache": cache}},
    }


def sent(cost: float, prompt: int, completion: int) -> dict[str, object]:
    used = {"main_model": "m", "prompt_tokens": prompt, "completion_tokens": completion, "cost": cost, "total_cost": 99.0}
    return {"event": "message_send", "properties": used}


# Each agent's documents, one a line, in the shape that the checked version prints; and what that is, added up by hand.
CASES = [
    pytest.param(
        "claude",
        claude({"large": (100, 20, 30, 7), "small": (10, 2, 0, 0)}, total_cost_usd=0.25),
        {"token_cost_usd": 0.25, "input_tokens": 147, "output_tokens": 22, "tokens_used": 169, "session_id": "s1"},
        id="claude, two models and a cache",
    ),
    pytest.param(
        "claude",
        claude({}, total_cost_usd=0, is_error=True, api_error_status=429),
        {"token_cost_usd": 0.0, "input_tokens": 0, "output_tokens": 0, "tokens_used": 0, "session_id": "s1"},
        id="claude, turned away before it began",
    ),
    pytest.param(
        "codex",
        [
            {"type": "thread.started", "thread_id": "t1"},
            {
                "type": "item.completed",
                "item": {"type": "command_execution", "aggregated_output": '{"usage": {"input_tokens": 5}}'},
            },
            {"type": "turn.completed", "usage": {"input_tokens": 100, "cached_input_tokens": 30, "output_tokens": 20}},
        ],
        {"input_tokens": 100, "cached_tokens": 30, "output_tokens": 20, "tokens_used": 120, "session_id": "t1"},
        id="codex, cached tokens are among the input",
    ),
    pytest.param(
        "gemini",
        [
            {"type": "init", "session_id": "g1", "model": "m-pro"},
            {"type": "message", "role": "assistant", "content": "ok", "delta": True},
            {
                "type": "result",
                "status": "success",
                "stats": {"total_tokens": 125, "input_tokens": 100, "cached": 30, "output_tokens": 20},
            },
        ],
        {"input_tokens": 100, "cached_tokens": 30, "output_tokens": 20, "tokens_used": 125, "model": "m-pro", "session_id": "g1"},
        id="gemini, its total holds thoughts too",
    ),
    pytest.param(
        "aider",
        [{"event": "launched", "properties": {}}, sent(0.5, 1000, 10), sent(0.25, 3000, 20), {"event": "exit", "properties": {}}],
        {"token_cost_usd": 0.75, "input_tokens": 4000, "output_tokens": 30, "tokens_used": 4030, "model": "m"},
        id="aider, a second message that mends the first",
    ),
    pytest.param(
        "opencode",
        [
            {"type": "step_start", "sessionID": "ses1", "part": {"type": "step-start"}},
            step(0.5, (70, 20, 5, 30, 1)),
            {"type": "tool_use", "sessionID": "ses1", "part": {"type": "tool", "state": {"output": "…"}}},
            step(0.25, (10, 2, 0, 100, 0)),
        ],
        {"token_cost_usd": 0.75, "input_tokens": 211, "output_tokens": 27, "tokens_used": 238, "session_id": "ses1"},
        id="opencode, two steps",
    ),
]


@pytest.mark.parametrize(("program", "documents", "reported"), CASES)
def test_what_an_agent_prints_is_added_up_as_by_hand(program, documents, reported):
    printed = "Starting…\n" + "".join(json.dumps(document) + "\n" for document in documents)
    found = usage_from_output(printed, check_usage_map(BY_PROGRAM[program].usage))
    assert () == found.notes
    assert reported == {key: value for key, value in found.usage.to_json().items() if value is not None}


def test_every_agent_has_a_sample_of_what_it_prints():
    assert set(BY_PROGRAM) == {case.values[0] for case in CASES}
    print(f"agents: {len(AGENTS)}, samples of their output: {len(CASES)}")


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.program)
def test_a_block_of_the_template_is_a_valid_generator_in_the_place_of_the_placeholder(agent: Agent, tmp_path: Path):
    lines = template_text("coding-agent.toml").splitlines()
    first = lines.index(f"# {agent.lines()[0]}")
    settings = lines[first + len(agent.notes) : first + len(agent.lines())]
    kept = [line for line in lines if not line.startswith("command = 'your-agent")]
    where = kept.index(next(line for line in kept if line.startswith("[generator]")))
    config = tmp_path / "jumar.toml"
    config.write_text("\n".join([*kept[: where + 1], *(line.removeprefix("# ") for line in settings), *kept[where + 1 :]]))
    generator: GeneratorConfig = load_config(config).generator
    assert isinstance(generator.command, str)
    assert agent.program == generator.command.split()[0]
    assert dict(agent.usage) == generator.usage
    assert ("JUMAR_PROMPT_FILE" in generator.command) == (generator.stdin == "none")
    parsed = subprocess.run(["/bin/sh", "-n", "-c", generator.command], capture_output=True, check=False)
    assert (0, b"") == (parsed.returncode, parsed.stderr)


def test_the_template_has_the_blocks_and_no_placeholder_for_them():
    text = template_text("coding-agent.toml")
    assert agent_blocks() in text
    assert "{agents}" not in text
    assert [] == [line for line in text.splitlines() if len(line) > 130]


def test_the_versions_that_the_tests_run_are_those_that_the_table_was_compared_with():
    pins = (ROOT / "tests/support/npm-agents.txt").read_text() + (ROOT / "tests/support/agent.txt").read_text()
    pinned = dict(re.findall(r"^(.+?)(?:@|==)([\d.]+)$", pins, re.MULTILINE))
    tools = {"jest", "vitest", "@modelcontextprotocol/inspector"}
    assert {agent.install.split()[-1]: agent.checked for agent in AGENTS} | {tool: pinned[tool] for tool in tools} == pinned


def test_the_page_says_of_each_agent_what_the_table_says():
    page = (ROOT / "docs/how-to/agents.md").read_text()
    rows = {cells[1].strip(): cells for cells in (line.split("|") for line in page.splitlines()) if len(cells) > 4}
    for agent in AGENTS:
        cost = "dollars" if agent.reports_cost else f"tokens; ${agent.reserve_usd:.2f} where they have no price"
        expected = [f"`{agent.program}`", agent.checked, cost, f"`{agent.session}`", agent.limited]
        assert expected == [cell.strip() for cell in rows[agent.title][2:7]]
        assert "\n".join(agent.settings()) in page, agent.title
        assert "\n".join(agent.resume_settings()) in page
    assert len(AGENTS) == len(re.findall(r"^### ", page, re.MULTILINE))


# The end of what each prints when it was turned away until it gave up, in the shape that the checked version prints.
LIMITED = {
    "claude": (1, '{"type":"result","is_error":true,"api_error_status":429,"result":"API Error: (429) wait a bit"}'),
    "codex": (1, '{"type":"turn.failed","error":{"message":"exceeded retry limit, last status: 429 Too Many Requests"}}'),
    "gemini": (173, '  status: 429\n}\n{"type":"result","status":"error","error":{"message":"[API Error: no]"}}'),
    "opencode": (1, '{"type":"error","error":{"name":"APIError","data":{"message":"no","statusCode":429}}}'),
}


@pytest.mark.parametrize("program", LIMITED)
def test_an_agent_that_gave_up_on_a_rate_limit_is_seen_to_have(program):
    code, printed = LIMITED[program]
    assert rate_limit(code, printed, Usage()) is not None


@pytest.mark.parametrize(
    ("printed", "seconds"),
    [
        ("You've hit your usage limit. Try again in 3 days 4 hours.", 3 * 86_400 + 4 * 3600),
        ("You've hit your usage limit, or try again in 1 hour, 2 minutes and 3 seconds", 3723),
        ("rate limit: try again in 1m30s", 90),
        ("rate limit; retry in 250ms", 0.25),
        ("Rate limited. Retry-After: 7", 7),
        ("You've hit your limit · resets 3pm", None),
    ],
)
def test_how_long_an_agent_says_to_wait(printed, seconds):
    limit = rate_limit(1, printed, Usage())
    assert limit is not None
    assert (None if seconds is None else pytest.approx(seconds)) == limit.retry_after


@pytest.mark.parametrize("printed", ['{"usage":{"output_tokens":429}}', '{"duration_ms": 429}', "cost $0.429", "test 429 failed"])
def test_a_number_that_is_no_status_is_no_rate_limit(printed):
    assert rate_limit(1, printed, Usage()) is None
