"""What is found, what is left alone, and that it is all gone however the text comes."""

from __future__ import annotations

import json
import re
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markupsafe import escape

from jumar.core.redaction import NOTHING, Redactor, environment_secrets, redacted_json, unfit

LINES = b"def a_function(x): # the usage, and https://example.com/a/b?c=1, line of normal output, 12345\n"
KEY = "-----BEGIN RSA PRIVATE~KEY-----\nMIIEow{}\n-----END RSA PRIVATE~KEY-----".format("aB3" * 14).replace("~", " ")


def test_a_text_without_secrets_comes_back_as_the_same_object() -> None:
    text = LINES.decode()
    assert Redactor({"T": "hunter2hunter2"}).redact(text) is text


def test_a_known_value_is_replaced_by_its_name_in_every_form() -> None:
    value = "p\"a\\ss <wörd>/+&'1"
    redactor = Redactor({"MY_TOKEN": value})
    forms = [
        value,
        json.dumps(value),
        json.dumps(value, ensure_ascii=False),
        quote(value),
        quote(value, safe=""),
        str(escape(value)),
    ]
    for form in forms:
        done = redactor.redact(f"<{form}>")
        assert "[redacted: MY_TOKEN]" in done
        assert "ss" not in done
    raw = f"<{value}>".encode()
    assert redactor.redact_bytes(raw) == b"<[redacted: MY_TOKEN]>"
    assert redactor.known_in(raw) == {"MY_TOKEN"}
    assert redactor.known_in(b"nothing") == frozenset()


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


def test_what_a_key_of_json_says_is_a_secret_goes() -> None:
    key = "".join(f"{number:x}" for number in range(7, 7_000, 300))
    data = {"password": "geheim-4711", "api_key": key, "n": {"token": 12345678, "key": key}, "keyed": "geheim-4711", "l": [key]}
    assert redacted_json(data, Redactor().redact, frozenset({"key"})) == {
        "password": "[redacted]",
        "api_key": "[redacted]",
        "n": {"token": 12345678, "key": key},
        "keyed": "geheim-4711",
        "l": [key],
    }
    document = json.dumps({"password": 1.5e17, "secret": None, "pwd": 123456789, "passwd": [1], "x": {"secret": True}}).encode()
    assert Redactor().redact_bytes(document) is document


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


def test_a_stream_lets_lines_through_and_holds_no_more_than_it_needs() -> None:
    stream = Redactor({"T": "hunter2hunter2"}).stream()
    assert stream.feed(b"first line\nprogress 5 %\n") == b"first line\nprogress 5 %\n"
    assert stream.feed(b"progress 6 %\rhalf hunter2") == b"progress 6 %\r"
    assert stream.feed(b"hunter3 ") == b""
    assert stream.feed(b"\n") == b"half hunter2hunter3 \n"
    assert Redactor({"T": "hunter2hunter2"}, shapes=False).stream().feed(b"half hunter2") == b"half "
    assert NOTHING.stream().feed(b"password=4711abcd") == b"password=4711abcd"
    out = 0
    for _ in range(40):
        out += len(stream.feed(b"x" * 65_536))
    assert out >= 39 * 65_536
    assert out + len(stream.finish()) == 40 * 65_536
    endless = Redactor().stream()
    done = (
        endless.feed(KEY.encode().partition(b"MII")[0])
        + b"".join(endless.feed(b"QUJD" * 16_384) for _ in range(5))
        + endless.finish()
    )
    assert b"BEGIN" not in done
