"""Loops and iterations held against each other, every decision in one list, and the lines of a difference."""

from __future__ import annotations

import difflib
import html
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from commands import call, record
from hypothesis import given
from hypothesis import strategies as st
from visits import visit

from jumar.dashboard.app import create_app
from jumar.dashboard.diffs import shown_diff
from jumar.dashboard.guard import Access, local_hosts
from jumar.dashboard.library import Library
from jumar.loop.report.diff import PathChange, SnapshotDiff
from jumar.loop.store.loop_store import LoopStore

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(autouse=True)
def _here(fresh_place: Path) -> Path:
    record([0.5, {"score": 0.9, "text": HOSTILE}, 0.4], loop="one")
    record([0.3, {"score": 0.6, "token_cost_usd": 0.25}], loop="two")
    return fresh_place


def page(address: str, status: int = 200) -> str:
    app = create_app(Library([Path(".jumar")], Path()), Access(hosts=local_hosts(8400)))
    found, _, body = visit(app, address, host="127.0.0.1:8400")
    assert found == status
    assert HOSTILE not in body
    return body


def test_iterations_of_two_loops_are_compared():
    shown = page("/compare?a=one:2&b=two:1")
    assert "one, iteration 2 → two, iteration 1: −60 points" in shown
    assert "<td>90%</td><td>30%</td><td>−60</td>" in re.sub(r' (?:class|role)="[a-z]*"', "", shown)
    assert "not reported" in shown
    assert html.escape(HOSTILE) in shown
    assert "pass 1" in shown
    assert shown == page("/compare?a=one&an=2&b=two&bn=1")


def test_dimensions_are_beside_each_other_with_what_they_differ_by():
    shown = page("/compare?a=one:1&b=two:2")
    assert re.search(
        r'<th scope="row" class="text wrap">validation</th><td>0.50</td><td>0.60</td><td>\+0.10</td>',
        re.sub(r' role="[a-z]*"', "", shown),
    )


def test_without_a_number_it_is_what_stands_and_of_one_loop_its_first():
    call("select", "one", "--use", 3, "--reason", "because", check=0)
    assert "one, iteration 3 → two, iteration 2" in page("/compare?a=one&b=two")
    assert "one, iteration 1 → one, iteration 3" in page("/compare?a=one&b=one")
    shown = page("/compare?a=one&an=2&b=&bn=")
    assert '<option value="2" selected>2: 90%</option>' in shown
    assert "What differs" not in shown


def test_the_same_iteration_differs_in_nothing():
    assert "Both hold the same 1 file." in page("/compare?a=one:1&b=one:1")


def test_each_loop_has_a_stair_of_its_best_scores():
    shown = page("/compare?loop=one&loop=two")
    stairs = re.findall(r'<path class="loop loop-\d" d="(M[^"]+)"', shown)
    assert len(stairs) == 4 + 2  # wide and narrow, and the key
    titles = set(re.findall(r"<title>(one|two), iteration (\d): ([\d.]+)%, cost not reported, ", shown))
    assert titles == {("one", "1", "50"), ("one", "2", "90"), ("two", "1", "30"), ("two", "2", "60")}


def test_a_loop_without_costs_is_not_drawn_over_dollars():
    shown = page("/compare?loop=one&loop=two&over=dollars")
    assert "not all of its cost is reported: one, two." in shown
    assert "not reported</td>" in shown
    assert "<svg" not in shown


def test_what_the_ends_and_steps_of_the_lines_are_stands_in_tables():
    record(
        [{"score": 0.5, "token_cost_usd": 1.0, "execution_time_ms": 600_000}, {"score": 0.25, "token_cost_usd": 0.5}], loop="paid"
    )
    shown = page("/compare?loop=two&loop=paid&over=dollars")
    assert "<td>50% at 1</td><td>25%</td><td>$1.5000</td>" in shown
    assert 'B paid</th><td><a href="/loops/paid/iterations/1">1</a></td><td>50%</td><td>$1.0000</td>' in shown
    assert len(re.findall(r'<path class="loop loop-1" d="M', shown)) == 3
    assert "US dollars" in shown
    assert "minutes, all attempts" in page("/compare?loop=two&loop=paid&over=time")
    assert "cost is reported: two." in shown


def test_a_loop_that_cannot_be_read_is_left_out_and_the_others_are_drawn():
    Path(".jumar/loops/two/loop.json").write_text("{")
    shown = page("/compare?loop=two&loop=one")
    assert 'Left out, because it cannot be read: <a href="/loops/two">two</a>' in shown
    assert "<title>one, iteration 2: 90%" in shown


def test_without_loops_it_says_how_to_get_one():
    shutil.rmtree(".jumar")
    assert "There are no loops here yet" in page("/compare")


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ("loop=none", 404),
        ("a=one:9&b=two:1", 404),
        ("a=none:1&b=two:1", 404),
        ("a=one:x&b=two:1", 400),
        ("&".join(f"loop=l{number}" for number in range(7)), 400),
        ("a=one&b=two", 200),
    ],
)
def test_what_cannot_be_compared_says_so(asked: str, status: int):
    page(f"/compare?{asked}", status)


def test_a_file_is_saved_as_it_is_and_never_shown():
    (link,) = re.findall(r'href="(/loops/one/iterations/2/files/[^"]+)"', page("/loops/one/iterations/2?against=1"))
    app = create_app(Library([Path(".jumar")], Path()), Access(hosts=local_hosts(8400)))
    status, headers, body = visit(app, link, host="127.0.0.1:8400")
    assert (status, body) == (200, HOSTILE)
    assert headers["content-type"] == "application/octet-stream"
    assert headers["content-disposition"] == "attachment; filename*=UTF-8''text.md"
    assert headers["x-content-type-options"] == "nosniff"


def test_a_file_of_a_snapshot_that_was_cleaned_up_is_not_offered():
    call("cleanup", "one", "--keep", "0")
    shown = page("/loops/one/iterations/1?against=2")
    assert "removed by a cleanup" in shown
    assert "Save this file" not in shown
    assert "the snapshot of iteration 1 was cleaned up" in page("/loops/one/iterations/1/files/text.md", 404)


@pytest.mark.parametrize("path", ["../metrics.json", "..%2Fmetrics.json", "/etc/passwd", "none", "", "text.md/.."])
def test_only_what_a_snapshot_names_is_saved(path: str):
    page(f"/loops/one/iterations/2/files/{path}", 404)
    page("/loops/one/iterations/9/files/text.md", 404)


def test_a_link_in_the_place_of_a_snapshots_file_is_not_followed():
    stored = Path(".jumar/loops/one/iterations/iteration-002/artifacts/text.md")
    stored.parent.chmod(0o755)
    stored.unlink()
    stored.symlink_to("/etc/passwd")
    page("/loops/one/iterations/2/files/text.md", 404)


def test_a_link_in_the_place_of_a_folder_of_a_snapshot_or_of_logs_is_not_followed():
    Path("outside").mkdir()
    for name in ("inner.md", "prompt.md", "generator.log"):
        Path("outside", name).write_text("of somebody else")
    Path("tree").mkdir()
    record([{"score": score, "file": "tree/inner.md"} for score in (0.5, 0.9)], loop="deep")
    place = Path(".jumar/loops/deep/iterations/iteration-002")
    page("/loops/deep/iterations/2/files/tree/inner.md")
    (place / "artifacts").chmod(0o755)
    (place / "artifacts/tree").chmod(0o755)
    shutil.rmtree(place / "artifacts/tree")
    (place / "artifacts/tree").symlink_to(Path("outside").absolute())
    shutil.rmtree(place / "logs", ignore_errors=True)
    (place / "logs").symlink_to(Path("outside").absolute())
    page("/loops/deep/iterations/2/files/tree/inner.md", 404)
    shown = page("/loops/deep/iterations/2?against=1")
    assert "the stored file cannot be read" in shown
    assert "of somebody else" not in shown


def test_every_decision_is_listed_with_who_and_why():
    call("select", "one", "--use", 1, "--reason", f"because {HOSTILE}", check=0)
    shown = page("/audit")
    assert html.escape(f"because {HOSTILE}") in shown
    assert 'href="/loops/one/iterations/1"' in shown
    assert "override: this one" in shown
    assert "No decision is like that" in page("/audit?q=nowhere")
    assert html.escape(HOSTILE) in page("/audit?q=BECAUSE&kind=override")


def test_a_choice_that_waits_says_what_confirms_it_until_somebody_does():
    store = LoopStore.open(Path(".jumar/loops/one"))
    data = {"use": 2, "wanted": 2, "made_by": "agent"}
    rest = {"best_iteration": None, "final_iteration": 3, "delta": None, "decision": None, "data": data}
    with store.lock():
        store.add_decision("held", reason="mine", by="agent", at="2026-01-01T00:00:00Z", **rest)
    shown = page("/audit?kind=held")
    assert "jumar select --use 2 --reason" in shown
    assert 'href="/loops/one/iterations/2"' in shown
    call("select", "one", "--use", 2, "--reason", "yes", check=0)
    assert "Waits for a person" not in page("/audit")


def test_loops_that_cannot_be_read_are_counted_and_the_others_are_listed():
    call("select", "one", "--use", 1, "--reason", "because", check=0)
    Path(".jumar/loops/two/loop.json").write_text("{")
    shown = page("/audit")
    assert "because" in shown
    assert 'those of 1 loop cannot be read: <a href="/?state=damaged">' in shown


def test_many_decisions_are_on_pages_that_keep_what_was_asked_for():
    for number in range(101):
        call("select", "one", "--use", 1 + number % 2, "--reason", f"because {number}", check=0)
    first, second = page("/audit?q=because"), page("/audit?q=because&page=2")
    assert "because 100<" in first.replace("</td>", "<")
    assert 'rel="next" href="?q=because&amp;page=2"' in first
    assert (first.count("iterations/"), second.count("iterations/")) == (100, 1)
    assert 'rel="prev" href="?q=because&amp;page=1"' in second


def test_without_decisions_the_list_says_how_one_is_made():
    assert "Nothing was decided here yet" in page("/audit")


# ------------------------------------------------------------------------------------------------------- hostile folders


@pytest.mark.parametrize("name", [b"x\xff", b"a~b", b"a\\x7eb", b"a\nb", b"a?b#c", b"a%2Fb", b"\x1b[2J", "\u202etxt".encode()])
def test_a_loop_in_a_folder_of_any_name_has_an_address_of_its_own(name: bytes):
    for folder in (os.fsdecode(name), "a/b"):
        shutil.copytree(".jumar", f"{folder}/.jumar")
        Path(folder, ".jumar/loops/one").rename(f"{folder}/.jumar/loops/own")
    Path(os.fsdecode(name), "r.jsonl").write_text('{"query_id": "q", "scores": [0.9]}')
    listed = page("/")
    addresses = set(re.findall(r'href="(/loops/[^"]+own)"', listed))
    assert len(addresses) == 2
    for address in addresses:
        page(html.unescape(address))
    assert len(json.loads(page("/api/loops"))["loops"]) == 6
    page("/audit")
    page("/topk")


def test_a_file_that_is_nested_without_end_hides_no_other_loop():
    Path(".jumar/loops/two/loop.json").write_text('{"a":' * 100_000)
    listed = page("/")
    assert listed.count('<tr role="row">') == 3
    assert "damaged" in listed
    page("/loops/two", 500)


# --------------------------------------------------------------------------------------------------------- differences

LINES = st.lists(st.text(alphabet="ab\"'#\\\t(d<&é\r\x0b\x0c\x1c\x85\u2028@+-", max_size=8), max_size=12)


def shown_lines(change: PathChange) -> list[tuple[str, str, str, list[tuple[str, str]]]]:
    values = dict.fromkeys(("score_a", "score_b", "score_delta"))
    diff = SnapshotDiff(loop_id="", a=1, b=2, dimensions={}, added=(), removed=(), changed=(change,), unchanged=0, **values)
    return shown_diff(diff)["files"][0]["lines"]


def diffed(before: list[str], after: list[str], path: str) -> Iterator[tuple[str, str, str, str]]:
    text = "\n".join(list(difflib.unified_diff(before, after, lineterm=""))[2:])
    for kind, old, new, parts in shown_lines(PathChange(path=path, before=None, after=None, text=text)):
        yield kind, old, new, "".join(part for _, part in parts)


@given(LINES, LINES, st.sampled_from(["a.py", "a.json", "a.sh", "a.txt", "a.css", "a.toml"]))
def test_numbers_and_texts_are_those_of_the_files_whatever_they_hold(before: list[str], after: list[str], path: str):
    for kind, old, new, text in diffed(before, after, path):
        if kind in {"minus", "same"}:
            assert before[int(old) - 1] == text
        if kind in {"plus", "same"}:
            assert after[int(new) - 1] == text


@pytest.mark.parametrize("path", ["a.js", "a.ts", "a.java", "a.cpp", "a.py", "a.sh"])
def test_source_that_keeps_a_lexer_busy_is_shown_plain(path: str):
    text = "@@ -0,0 +1,110 @@\n" + "".join(f"+{'/* ' * 300}\n+{'func ' * 180}\n" for _ in range(55))
    began = time.monotonic()
    lines = shown_lines(PathChange(path=path, before=None, after=None, text=text))
    assert time.monotonic() - began < 8
    assert "".join(part for _, part in lines[-1][3]) == "func " * 180


def test_a_secret_is_left_out_of_a_difference_whatever_its_parts_are_coloured():
    key = "-----BEGIN RSA PRIVATE" + " KEY-----\n+" + "MIIEow" * 12 + "\n+-----END RSA PRIVATE" + " KEY-----"
    change = PathChange(path="a.py", before=None, after=None, text=f"@@ -0,0 +1,5 @@\n+x = 1\n+{key}\n+y = 'ghp_{'aB3' * 12}'\n")
    shown = "".join(part for *_, line in shown_lines(change) for _, part in line)
    assert "MIIEow" not in shown
    assert "aB3aB3" not in shown
    assert shown.count("[redacted]") == 2


def test_more_files_than_a_page_can_hold_are_counted():
    changes = tuple(PathChange(path=f"{number}.txt", before=None, after=None, text="") for number in range(502))
    values = dict.fromkeys(("score_a", "score_b", "score_delta"))
    shown = shown_diff(
        SnapshotDiff(loop_id="", a=1, b=2, dimensions={}, added=changes, removed=(), changed=(), unchanged=0, **values)
    )
    assert (len(shown["files"]), shown["more"]) == (500, 2)


@pytest.mark.parametrize("asked", ["password=", "curl -u a:", "token=", "x password=&amp;"])
def test_what_looks_like_a_secret_takes_no_markup_with_it(asked: str):
    shown = page(f"/?q={quote(asked)}")
    assert f'<input type="search" name="q" value="{html.escape(asked)}"></label>' in shown


def test_source_is_coloured_by_its_syntax():
    change = PathChange(path="a.py", before=None, after=None, text="@@ -0,0 +1,2 @@\n+def f():\n+    return 'x'  # why")
    parts = [part for *_, line in shown_lines(change) for part in line]
    assert {("s-key", "def"), ("s-fun", "f"), ("s-key", "return"), ("s-com", "# why")} <= set(parts)


def test_a_check_of_which_more_tests_pass_says_how_many_and_which():
    cases = """<testcase name="a"/><testcase name="b">%s</testcase><testcase name="c"><failure/></testcase>"""
    suite = f"""printf '<testsuite>{cases}</testsuite>' "$(test -f done || echo '<failure/>')" > r.xml; false"""
    Path("check.sh").write_text(suite)
    check = """[[checks]]\nname = "tests"\njunit = "r.xml"\ncommand = "sh check.sh"\n"""
    Path("jumar.toml").write_text(f"""[loop]\nid = "tested"\n[generator]\ncommand = "touch done"\n{check}""")
    call("run", "-n", 1)
    shown = " ".join(re.sub(r"<[^>]*>", " ", page("/compare?a=tested:0&b=tested:1")).split())
    assert "Tests that pass 1/3 2/3" in shown
    assert "tests ✗ 1 of 3 tests ✗ 2 of 3 tests +1" in shown
    assert "Fixed: b" in shown
