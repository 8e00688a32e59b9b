"""What of the environment the steps see."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jumar.errors import ConfigError
from jumar.processes.environment import ALLOWED, build_environment, left_out, own_program, step_variables

ROOT = Path(__file__).resolve().parents[2]

PASSES = [
    *("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TERM", "SHELL", "USER", "http_proxy", "HTTPS_PROXY", "XDG_CONFIG_HOME"),
    *("SSH_AUTH_SOCK", "CI", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "UV_CACHE_DIR", "PIP_INDEX_URL", "NODE_OPTIONS"),
    *("NPM_CONFIG_PREFIX", "NVM_DIR", "JAVA_HOME", "GOPATH", "CARGO_HOME", "RUSTUP_HOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"),
    *("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "AZURE_OPENAI_API_KEY"),
    *("CLAUDE_CODE_OAUTH_TOKEN", "CODEX_HOME", "AIDER_MODEL", "OPENROUTER_API_KEY", "MISTRAL_API_KEY", "OLLAMA_HOST"),
    *("JUMAR_ROOT", "JUMAR_STEP", "GIT_AUTHOR_NAME"),
]
STAYS = [
    *(
        "AWS_SECRET_ACCESS_KEY",
        "GITHUB_TOKEN",
        "DATABASE_URL",
        "KUBECONFIG",
        "MYSQL_PWD",
        "OLDPWD",
        "PWD",
        "path",
        "Home",
        "XPATH",
    ),
    *("NPM_TOKEN", "UV_PUBLISH_TOKEN", "CARGO_REGISTRY_TOKEN", "PIP_PASSWORD", "npm_config__auth", "GEM_HOST_API_KEY"),
    *("GIT_CONFIG_VALUE_0", "GIT_DIR", "GIT_WORK_TREE"),
]


def test_what_passes_and_what_stays():
    base = {name: name.lower() for name in PASSES + STAYS}
    assert {name: name.lower() for name in PASSES} == build_environment(base, (), {})
    assert tuple(sorted(STAYS)) == left_out(base, ())


def test_more_can_be_asked_for_and_less():
    base = dict.fromkeys(
        ["PATH", "AWS_REGION", "AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "GITHUB_TOKEN"], "x"
    )
    allow = ("AWS_*", "GITHUB_TOKEN", "!*_API_KEY")
    assert ["PATH", "AWS_REGION", "AWS_SECRET_ACCESS_KEY", "OPENAI_BASE_URL", "GITHUB_TOKEN"] == list(
        build_environment(base, allow, {})
    )
    assert ("OPENAI_API_KEY",) == left_out(base, allow)


def test_the_variables_of_the_step_win():
    assert {"PATH": "p", "JUMAR_LOOP_ID": "new"} == build_environment(
        {"PATH": "p", "JUMAR_LOOP_ID": "old"}, (), {"JUMAR_LOOP_ID": "new"}
    )


@pytest.mark.parametrize("pattern", ["", "A B", "NAME=value", "!", "a.b", "AWS_[AB]"])
def test_a_pattern_that_can_match_nothing_is_refused(pattern):
    with pytest.raises(ConfigError, match=f"environment: {re.escape(repr(pattern))} is no pattern of a variable's name"):
        build_environment({}, (pattern,), {})


def test_step_variables_are_absolute(fresh_place):
    variables = step_variables(
        loop_id="l", iteration=7, prompt_file=Path("p.md"), feedback_file=Path("f.json"), usage_file=Path("/u.json")
    )
    assert {
        "JUMAR_LOOP_ID": "l",
        "JUMAR_ITERATION": "7",
        "JUMAR_PROMPT_FILE": str(fresh_place / "p.md"),
        "JUMAR_FEEDBACK_FILE": str(fresh_place / "f.json"),
        "JUMAR_USAGE_FILE": "/u.json",
        "JUMAR_SEED": "0",
    } == variables
    files = {"prompt_file": Path("/p"), "feedback_file": Path("/f"), "usage_file": Path("/u")}
    candidate = step_variables(loop_id="l", iteration=7, seed=9, candidate=2, **files)
    assert ("9", "2") == (candidate["JUMAR_SEED"], candidate["JUMAR_CANDIDATE"])


def test_the_page_names_every_pattern():
    page = (ROOT / "docs" / "reference" / "environment.md").read_text()
    patterns = [pattern for group in ALLOWED.values() for pattern in group]
    assert len(patterns) > 100
    assert [] == [pattern for pattern in patterns if f"`{pattern}`" not in page]
    assert [] == [group for group in ALLOWED if f"| {group} |" not in page]


def test_a_program_of_jumar_s_own_is_not_taken_from_where_agents_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("work/.venv/bin", "tree/bin", "system"):
        place = tmp_path / name / "git"
        place.parent.mkdir(parents=True)
        place.write_text("")
        place.chmod(0o755)
    monkeypatch.chdir(tmp_path / "work")
    entries = ["", ".venv/bin", *(str(tmp_path / name) for name in ("work/.venv/bin", "tree/bin", "system"))]
    monkeypatch.setenv("PATH", ":".join(entries))
    assert str(tmp_path / "system/git") == own_program("git", tmp_path / "tree")
    (tmp_path / "system/git").unlink()
    assert own_program("git", tmp_path / "tree") is not None  # there is no other
    assert None is own_program("bwrap", tmp_path / "tree")
