"""What is found, what is left alone, and that it is all gone however the text comes."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jumar.redaction import NOTHING, Redactor, environment_secrets, redacted_json, unfit

A, B, C = "A" + "b3" * 20, "s" + "X9" * 24, "0123456789abcdef" * 2
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0." + A
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow" + A + "\n" + B + "==\n-----END RSA PRIVATE KEY-----"
TOKENS = {
    "openai": f"sk-proj-{A}",
    "anthropic": f"sk-ant-api03-{A}",
    "openrouter": f"sk-or-v1-{C}",
    "stripe": "sk_" + f"live_{A}",
    "groq": f"gsk_{A}",
    "xai": f"xai-{A}",
    "google": "AIza" + A[:35],
    "huggingface": f"hf_{A[:34]}",
    "github": f"ghp_{A[:36]}",
    "github app": f"ghs_{A[:36]}",
    "github fine": f"github_pat_{A}_{A}",
    "gitlab": f"glpat-{A[:20]}",
    "npm": f"npm_{A[:36]}",
    "pypi": f"pypi-AgEIcHlwaS5vcmc{A}{A}",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "slack": "xo" + f"xb-123456789012-{A[:24]}",
    "slack app": f"xapp-1-A123-{A}",
    "jwt": JWT,
}
LED = {
    f"Authorization: Bearer {A}": A,
    "authorization: basic dXNlcjpwYXNz": "dXNlcjpwYXNz",
    f'{{"Authorization": "Bearer {C}"}}': C,
    f"curl -H 'bearer {A}'": A,
    f"aws_secret_access_key = {A[:40]}": A[:40],
    f'"SecretAccessKey": "{A[:40]}"': A[:40],
    f"AccountKey={A}{A}==;EndpointSuffix=x": A + A,
    f"https://hooks.slack.com/services/T123/B456/{A}": A,
    "postgres://app:pa55w0rd@db.internal/x": "pa55w0rd",
    KEY: "MIIEow",
    KEY.replace("\n", "\\n"): "MIIEow",
    KEY.partition("==")[0] + "\nthe key ended early": B,
}
PROSE = [
    "the task-force-of-the-unknown and disk-usage-statistics-per-project-folder",
    "sk-this-is-a-long-class-name-without-any-number-in-it",
    "basic misunderstandings, bearer of internationalization",
    "https://user@example.com/path and https://example.com:8080/a/b?c=d@e",
    "commit 2d1568b0c6f4a9b7d3e2f1a0b9c8d7e6f5a4b3c2 sha256:" + C * 2,
    "ghp_short AKIA_NOT eyJhbGciOiJIUzI1NiJ9 hf_hub_download xoxo-hugs",
    "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
    "def test_a_function_with_a_very_long_name_indeed_for_42_reasons(): ...",
    "api_key = None  # the secret_access_key is read from the environment",
]


@pytest.mark.parametrize("kind", TOKENS)
@pytest.mark.parametrize(
    "around", ["{}", "key={}", '"{}"', "x: {},", "see {}.", "é{}\n", "({})", "a.{}", "{}\\n", "\\n{}", "\x1b[1;32m{}\x1b[0m"]
)
def test_well_known_tokens_are_found_wherever_they_stand(kind: str, around: str) -> None:
    text = around.format(TOKENS[kind])
    done = Redactor().redact(text)
    assert TOKENS[kind] not in done
    assert "[redacted]" in done
    assert done == Redactor().redact(done)


@pytest.mark.parametrize("text", LED)
def test_what_leads_to_a_secret_stays_and_the_secret_goes(text: str) -> None:
    done = Redactor().redact(f"before {text} after")
    assert LED[text] not in done
    assert done.startswith("before ")
    assert done.endswith(" after")
    assert "[redacted]" in done


@pytest.mark.parametrize("text", PROSE)
def test_ordinary_text_is_left_alone_and_comes_back_as_it_is(text: str) -> None:
    assert Redactor({"T": "hunter2hunter2"}).redact(text) is text


def test_a_known_value_is_replaced_by_its_name_in_every_form() -> None:
    value = 'p"a\\ss wörd/+1'
    redactor = Redactor({"MY_TOKEN": value})
    forms = [value, json.dumps(value), json.dumps(value, ensure_ascii=False), quote(value), quote(value, safe="")]
    for form in forms:
        done = redactor.redact(f"<{form}>")
        assert "[redacted: MY_TOKEN]" in done
        assert "ss" not in done
    raw = f"<{value}>".encode()
    assert redactor.redact_bytes(raw) == b"<[redacted: MY_TOKEN]>"
    assert redactor.known_in(raw) == {"MY_TOKEN"}
    assert redactor.known_in(b"nothing") == frozenset()


def test_thorough_finds_base64_and_utf_16_wherever_they_begin() -> None:
    value = "hunter2-hunter3"
    plain, thorough = Redactor({"T": value}), Redactor({"T": value}, thorough=True)
    for before in ("", "u", "us", "usr"):
        for after in ("", "x", "xy"):
            encoded = base64.b64encode(f"{before}{value}{after}".encode())
            assert plain.redact_bytes(encoded) is encoded
            assert b"[redacted: T]" in thorough.redact_bytes(encoded), (before, after)
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        assert thorough.finds(f"a {value} b".encode(encoding))


def test_a_name_does_not_give_its_value_away() -> None:
    assert Redactor({"hunter2hunter2": "hunter2hunter2"}).redact("x hunter2hunter2") == "x [redacted]"
    assert Redactor({"a b/ü": "hunter2hunter2"}).redact("hunter2hunter2") == "[redacted: a_b__]"


@pytest.mark.parametrize("value", ["", "short", "1234567", "Password", "changeme", "xxxxxxxxxx", "redacted", "abababab"])
def test_values_that_would_be_found_by_chance_are_not_searched_for(value: str) -> None:
    assert unfit(value) is not None
    text = f"a {value} b"
    assert Redactor({"T": value}, shapes=False).redact(text) is text


def test_what_the_environment_holds() -> None:
    environment = {
        "GITHUB_TOKEN": "tok-4711-abcd",
        "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "DB_PASSWORD": "correcthorsebattery",
        "SSL_KEY": "/etc/ssl/key.pem",
        "HOME_KEY": "~/keys/x",
        "SHORT_TOKEN": "abc",
        "FEATURE_TOKEN": "enabledfor",
        "PORT_TOKEN": "123456789",
        "PLACEHOLDER_SECRET": "changeme",
        "PLAIN": "hunter2hunter2",
        "MINE": "enabledfor",
    }
    assert set(environment_secrets(environment)) == {"GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD"}
    assert set(environment_secrets(environment, ["MINE", "PLAIN", "SHORT_TOKEN", "NOT_SET"])) == {
        *("GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "MINE", "PLAIN"),
    }


def test_patterns_are_a_persons_own_and_meet_no_replacement() -> None:
    redactor = Redactor({"T": "hunter2hunter2"}, patterns=[r"^id: \d+$", r"\w{8}-\w{4}"])
    assert redactor.redact("id: 42\nx id: 42\nabcdefgh-1234") == "[redacted]\nx id: 42\n[redacted]"
    greedy = Redactor({"T": "hunter2hunter2"}, patterns=[r"\w+", r"x*"])
    done = greedy.redact("a hunter2hunter2 b")
    assert done == greedy.redact(done) == "[redacted] [redacted: T] [redacted]"
    assert Redactor(patterns=["\xc3"]).redact("ü Ã") is not None
    assert NOTHING.redact(KEY) is KEY


def test_json_keeps_its_form_and_what_must_stay_exact() -> None:
    data = {"a": ["hunter2hunter2", 1, None, {"hunter2hunter2": True}], "path": {"x": "hunter2hunter2"}, "n": 1.5}
    redact = Redactor({"T": "hunter2hunter2"}).redact
    assert redacted_json(data, redact, frozenset({"path"})) == {
        "a": ["[redacted: T]", 1, None, {"[redacted: T]": True}],
        "path": {"x": "hunter2hunter2"},
        "n": 1.5,
    }


LETTERS = st.text(alphabet="ab0-[]d: \n", max_size=40)
VALUES = st.lists(st.text(alphabet="ab0-[]d:", min_size=8, max_size=14).filter(lambda value: unfit(value) is None), max_size=4)


@given(VALUES, st.lists(st.one_of(LETTERS, st.integers(0, 3)), max_size=12), st.booleans())
@example(["ab0ab0ab0", "]0ab-0ab-"], [0, "0ab-0ab-"], True)
def test_nothing_known_is_left_and_twice_is_once(values: list[str], parts: list[str | int], shapes: bool) -> None:
    redactor = Redactor({f"V{number}": value for number, value in enumerate(values)}, shapes=shapes)
    text = "".join(part if isinstance(part, str) else values[part % len(values)] if values else "" for part in parts)
    done = redactor.redact(text)
    assert [value for value in values if value in done] == []
    assert redactor.redact(done) == done
    assert redactor.redact_bytes(text.encode()) == done.encode()
    if not any(value in text for value in values):
        assert done == text


@given(VALUES, st.lists(st.one_of(LETTERS, st.integers(0, 3)), max_size=12), st.lists(st.integers(1, 9), min_size=1), st.data())
def test_a_stream_leaves_nothing_known_wherever_its_chunks_end(
    values: list[str], parts: list[str | int], sizes: list[int], data: st.DataObject
) -> None:
    redactor = Redactor({f"V{number}": value for number, value in enumerate(values)})
    text = "".join(part if isinstance(part, str) else values[part % len(values)] if values else "" for part in parts).encode()
    stream, out, at = redactor.stream(), b"", 0
    while at < len(text):
        size = data.draw(st.sampled_from(sizes))
        out += stream.feed(text[at : at + size])
        at += size
    out += stream.finish()
    assert [value for value in values if value.encode() in re.sub(rb"\[redacted[^]]*\]", b"\0", out)] == []
    if not any(value.encode() in text for value in values):
        assert out == text


def test_a_stream_finds_every_shape_at_every_split() -> None:
    tried = 0
    for text in [f"log {token}, done\n" for token in TOKENS.values()] + [f"log {text}\nnext\n" for text in LED]:
        whole = Redactor().redact_bytes(text.encode())
        raw = text.encode()
        for split in range(len(raw) + 1):
            stream = Redactor().stream()
            assert stream.feed(raw[:split]) + stream.feed(raw[split:]) + stream.finish() == whole, (text, split)
            tried += 1
        stream = Redactor().stream()
        assert b"".join([stream.feed(raw[at : at + 1]) for at in range(len(raw))]) + stream.finish() == whole
    print(f"splits tried: {tried}")
    assert tried > 1_000


def test_a_stream_lets_lines_through_and_holds_no_more_than_it_needs() -> None:
    stream = Redactor({"T": "hunter2hunter2"}).stream()
    assert stream.feed(b"first line\nprogress 5 %\n") == b"first line\nprogress 5 %\n"
    assert stream.feed(b"half hunter2") == b"half "
    assert stream.feed(b"hunter3 ") == b"hunter2hunter3 "
    out = 0
    for _ in range(40):
        out += len(stream.feed(b"x" * 65_536))
    assert out >= 39 * 65_536
    assert out + len(stream.finish()) == 40 * 65_536
    endless = Redactor().stream()
    done = (
        endless.feed(b"-----BEGIN PRIVATE KEY-----\n")
        + b"".join(endless.feed(b"QUJD" * 16_384) for _ in range(5))
        + endless.finish()
    )
    assert b"BEGIN" not in done


def test_a_text_without_secrets_costs_about_a_scan() -> None:
    """No time is asserted: the figure is printed beside that of a bare search for the same letters."""
    values = {f"K{number}": f"{number}{B}{number}" for number in range(8)}
    text = (b"def a_function(x): # the usage, and https://example.com/a/b?c=1, line of normal output, 12345\n" * 800)[:65_536]
    bare = re.compile(
        b"|".join([value.encode() for value in values.values()] + [b"skx-", b"ghp_", b"AKIA", b"xox", b"eyJ", b"AIza"])
    )
    redactor = Redactor(values)
    assert redactor.redact_bytes(text) is text

    def best(action: Callable[[bytes], object]) -> float:
        times: list[float] = []
        for _ in range(20):
            began = time.perf_counter()
            action(text)
            times.append(time.perf_counter() - began)
        return min(times)

    ours, scan = best(redactor.redact_bytes), best(bare.search)
    print(f"64 KiB: {ours * 1e6:.0f} µs redacted, {scan * 1e6:.0f} µs for a bare search: {ours / scan:.2f} times")
