"""What of jumar's own environment the steps see: an allow-list, so that a token nobody thought of stays at home.

A generator is a program with its own will that runs what it wrote itself. It gets what programs need to work (paths, locale,
proxies, toolchains), what agents need to reach their provider, and nothing else; of the first, nothing whose name says that it
is a secret, such as a token for publishing packages. ``docs/reference/environment.md`` shows the list.
"""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import hashlib
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from jumar.core.redaction import SECRET_NAMES
from jumar.errors import ConfigError

ALLOWED: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "system": (
            *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TMP", "TEMP", "HOSTNAME"),
            *("TZ", "LANG", "LANGUAGE", "LC_*", "CI", "EDITOR", "VISUAL", "PAGER", "GIT_PAGER", "SSH_AUTH_SOCK", "XDG_*"),
            *("LD_LIBRARY_PATH", "DYLD_*", "PKG_CONFIG_PATH", "SSL_CERT_*", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"),
        ),
        "terminal": ("TERM", "COLORTERM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR*"),
        "network": tuple(
            case for name in ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy") for case in (name, name.upper())
        ),
        "git": ("GIT_AUTHOR_*", "GIT_COMMITTER_*", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_*SYSTEM", "GIT_SSH*", "GIT_SSL_*"),
        "toolchains": (
            *("PYTHON*", "VIRTUAL_ENV*", "CONDA*", "MAMBA*", "PYENV*", "POETRY_*", "PDM_*", "UV_*", "PIP_*", "PYTEST_*"),
            *("NODE*", "NPM*", "npm_*", "NVM*", "YARN_*", "PNPM*", "BUN_*", "DENO_*", "VOLTA_*", "FNM_*"),
            *("JAVA_HOME", "JDK_*", "JAVA_TOOL_OPTIONS", "MAVEN_*", "GRADLE_*", "GO*", "CGO_*", "CARGO*", "RUST*"),
            *("CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "MAKEFLAGS", "CMAKE_*", "CCACHE_*"),
            *("GEM_*", "BUNDLE_*", "RBENV*", "RUBY*", "COMPOSER_*", "PHP*", "PERL*", "DOTNET_*", "SDKMAN_*", "ASDF_*", "MISE_*"),
            *("NIX_*", "HOMEBREW_*", "ANDROID_HOME", "ANDROID_SDK_ROOT", "CUDA_*", "NVIDIA_*", "OMP_*"),
        ),
        "agents": (
            *("ANTHROPIC_*", "CLAUDE_*", "OPENAI_*", "CODEX_*", "GEMINI_*", "GOOGLE_*", "VERTEX*", "AZURE_*", "AIDER_*"),
            *("OPENROUTER_*", "MISTRAL_*", "OLLAMA_*", "GROQ_*", "DEEPSEEK_*", "XAI_*", "TOGETHER_*", "FIREWORKS_*"),
            *("COHERE_*", "PERPLEXITY*", "CEREBRAS_*", "DASHSCOPE_*", "QWEN_*", "MOONSHOT_*", "ZAI_*", "HF_*", "HUGGINGFACE*"),
            *("LITELLM_*", "LLM_*", "GOOSE_*", "OPENCODE_*", "CURSOR_*", "AMP_*", "AWS_BEDROCK*", "AWS_BEARER_TOKEN_BEDROCK"),
        ),
        "jumar": ("JUMAR_*",),
    }
)
"""What passes without being asked for, by what it is good for. ``*`` stands for any characters."""

SECRET: Final = SECRET_NAMES
"""Names that look like secrets; they pass as what an agent needs for its provider, or when they are asked for."""

SEED_VARIABLE: Final = "JUMAR_SEED"
_PROVIDERS: Final = ("agents", "jumar")


def check_patterns(allow: Sequence[str]) -> None:
    """Refuse patterns that can match no variable. Errors: :class:`jumar.errors.ConfigError`."""
    for pattern in allow:
        if not re.fullmatch(r"!?[A-Za-z0-9_*]+", pattern):
            raise ConfigError(
                f"environment: {pattern!r} is no pattern of a variable's name; write NAME, PREFIX_*, or !NAME to take one away"
            )


def build_environment(base: Mapping[str, str], allow: Sequence[str], step: Mapping[str, str]) -> dict[str, str]:
    """Return the part of ``base`` that :data:`ALLOWED` or ``allow`` names, with the variables of ``step`` on top.

    ``allow`` holds further patterns; one that begins with ``!`` takes away what the others let through. Case matters.
    """
    passes = _matcher(tuple(allow))
    return {**{name: value for name, value in base.items() if passes(name)}, **step}


def left_out(base: Mapping[str, str], allow: Sequence[str]) -> tuple[str, ...]:
    """Return the names (never the values) of the variables of ``base`` that the steps don't see, sorted."""
    passes = _matcher(tuple(allow))
    return tuple(sorted(name for name in base if not passes(name)))


class _Matcher:
    def __init__(self, allow: tuple[str, ...]) -> None:
        check_patterns(allow)
        common = [pattern for group, patterns in ALLOWED.items() if group not in _PROVIDERS for pattern in patterns]
        asked = [pattern for pattern in allow if not pattern.startswith("!")]
        self._common = _compile(common)
        self._secret = _compile(SECRET)
        self._trusted = _compile([*(pattern for group in _PROVIDERS for pattern in ALLOWED[group]), *asked])
        self._refused = _compile([pattern[1:] for pattern in allow if pattern.startswith("!")])

    def __call__(self, name: str) -> bool:
        if self._refused.match(name):
            return False
        return bool(self._trusted.match(name) or (self._common.match(name) and not self._secret.match(name)))


_matcher = functools.lru_cache(maxsize=16)(_Matcher)


def _compile(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(fnmatch.translate(pattern) for pattern in patterns) or r"(?!)")


def step_variables(
    *,
    loop_id: str,
    iteration: int,
    prompt_file: Path,
    feedback_file: Path,
    usage_file: Path,
    seed: int = 0,
    candidate: int | None = None,
) -> dict[str, str]:
    """Return the variables that tell a step where it is. Paths are absolute, because a step may change its directory."""
    parallel = {} if candidate is None else {"JUMAR_CANDIDATE": str(candidate)}
    return {
        SEED_VARIABLE: str(seed),
        **parallel,
        "JUMAR_LOOP_ID": loop_id,
        "JUMAR_ITERATION": str(iteration),
        "JUMAR_PROMPT_FILE": str(prompt_file.absolute()),
        "JUMAR_FEEDBACK_FILE": str(feedback_file.absolute()),
        "JUMAR_USAGE_FILE": str(usage_file.absolute()),
    }


def step_seed(seed: int, *, iteration: int, candidate: int | None, purpose: str) -> int:
    """Return a number in [0, 2³¹) for one step; every argument matters, and equal ones give the same on every machine.

    ``candidate`` None and 0 are the same.
    """
    text = f"{seed}:{iteration}:{candidate or 0}:{purpose}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1


def own_program(name: str, *places: Path) -> str | None:
    """Return where a program that jumar itself runs lies, on ``PATH``; None where there is none.

    One below the current directory, or below ``places``, may be an agent's: it counts only where there is no other.
    """
    inside = [os.path.realpath(place) for place in places]
    with contextlib.suppress(OSError):  # deleted
        inside.append(os.path.realpath(Path()))
    entries = [os.path.realpath(entry) for entry in os.environ.get("PATH", os.defpath).split(os.pathsep) if entry.startswith("/")]
    outside = [entry for entry in entries if not any(Path(entry).is_relative_to(place) for place in inside)]
    return shutil.which(name, path=os.pathsep.join(outside)) or shutil.which(name)
