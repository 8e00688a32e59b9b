"""The page that is sent around: what every iteration changed is in it, and it stays small, the selected one whole."""

from __future__ import annotations

import html
import random
import re
from pathlib import Path

import pytest
from commands import call, record

from jumar.loop.report.changes import changes_of
from jumar.loop.report.diff import diff_snapshots
from jumar.loop.report.read import load_report
from jumar.loop.store.loop_store import LoopStore

HOSTILE = "</pre><script>alert(1)</script>"


@pytest.fixture(autouse=True)
def _here(fresh_place: Path) -> Path:
    return fresh_place


def page() -> str:
    call("report", "t", "-o", "report.html", "-q", check=0)
    return Path("report.html").read_text("utf-8")


def store() -> LoopStore:
    return LoopStore.open(Path(".jumar/loops/t"))


def test_every_line_that_changed_is_there_as_text():
    record([{"score": 0.1 * number, "text": f"{HOSTILE}\nline {number}\n&amp;\n"} for number in range(1, 6)])
    shown = page()
    assert HOSTILE not in shown
    for number in range(2, 6):
        text = diff_snapshots(store(), number - 1, number).changed[0].text
        block = shown.partition(f"<summary>Iteration {number} ")[2].partition("</details>")[0]
        lines = re.sub(r"<[^>]+>", "", re.split(r'<pre class="diff"[^>]*>', block, maxsplit=1)[1].partition("</pre>")[0])
        assert html.unescape(lines) == text


def test_the_lines_are_those_of_the_difference_with_their_kinds():
    record([{"score": 0.5, "text": "a\nb\n"}, {"score": 0.6, "text": "a\nc"}])
    (changes,) = changes_of(store(), load_report(store()))
    assert (changes.number, changes.against, changes.note) == (2, 1, "")
    assert changes.files[0].blocks == (
        ("hunk", "@@ -1,2 +1,2 @@"),
        ("same", " a"),
        ("minus", "-b"),
        ("plus", "+c"),
        ("hunk", "\\ No newline at end of file"),
    )


def test_a_hundred_iterations_fit_into_two_megabytes_and_the_selected_one_is_whole():
    draw = random.Random(1)
    words = [f"{draw.random():.12f}" for _ in range(4_000)]
    texts = ["\n".join(draw.sample(words, 1_500)) + "\n" for _ in range(100)]
    record([{"score": 0.9 if number == 77 else 0.2, "text": text} for number, text in enumerate(texts, 1)])
    shown = page()
    assert len(shown.encode()) <= 2_000_000
    changes = {each.number: each for each in changes_of(store(), load_report(store()))}
    assert (len(changes), changes[77].note, changes[100].note) == (99, "", "")
    cut = [number for number, each in changes.items() if each.note]
    assert cut
    assert all(not file.blocks and file.path == "text.md" for number in cut for file in changes[number].files)
    assert shown.count("the lines are left out, because this page would be too large: jumar diff has them") == len(cut)
    print(f"{len(shown.encode()):,} bytes, {len(cut)} of 99 iterations without their lines")
