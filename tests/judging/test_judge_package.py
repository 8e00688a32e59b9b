"""What the package gives, what it loads, and what it hides."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import jumar.judging
from jumar.judging.judges._clients import known_keys, scrub

HEAVY = {"anthropic", "httpx", "httpx2", "numpy", "openai", "scipy"}


def test_public_names_are_those_of_their_modules():
    for name in jumar.judging.__all__:
        place = jumar.judging._ELSEWHERE[name]
        home = importlib.import_module(place if place.startswith("jumar.") else f"jumar.judging.{place}")
        assert getattr(jumar.judging, name) is getattr(home, name)
    assert sorted(jumar.judging.__all__) == sorted(jumar.judging._ELSEWHERE)
    assert set(jumar.judging.__all__) <= set(dir(jumar.judging))


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        jumar.judging.nothing  # noqa: B018 # pyright: ignore[reportAttributeAccessIssue]


def test_the_judge_needs_no_library_until_a_model_is_asked():
    code = (
        "import sys, jumar.judging\n"
        "figures = {'RaterAgreement', 'compare_raters'}\n"  # of several raters: numbers, and no judge
        "for name in {*jumar.judging.__all__} - figures: getattr(jumar.judging, name)\n"
        "from jumar.judging.judges import make_judge; make_judge('mock:')\n"
        "print(' '.join({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert set() == HEAVY & set(done.stdout.split())


def test_keys_are_known_by_the_names_of_their_variables(monkeypatch: pytest.MonkeyPatch):
    for name, value in {
        "FIRST_API_KEY": "first-secret-value",
        "GITHUB_TOKEN": "second-secret-value",
        "DB_PASSWORD": "third-secret-value",
        "SHORT_KEY": "short",
        "KEYBOARD": "a-layout-of-keys",
        "KEY_COUNT": "a-number-of-keys",
    }.items():
        monkeypatch.setenv(name, value)

    found = known_keys(["fourth-secret-value"])

    assert {"first-secret-value", "second-secret-value", "third-secret-value", "fourth-secret-value"} <= set(found)
    assert not {"short", "a-layout-of-keys", "a-number-of-keys"} & set(found)
    assert "it is *** and ***" == scrub("it is first-secret-value and third-secret-value", found)


def test_of_two_keys_the_longer_one_is_hidden_whole(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("A_KEY", "secret-value")
    monkeypatch.setenv("B_KEY", "secret-value-and-more")

    assert "***" == scrub("secret-value-and-more", known_keys())
