"""The dashboard as people use it: a real server on loopback, a real browser, a loop that runs meanwhile."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from boards import HOSTILE, Served, hidden_fields, project, root_of, serving
from learn_items import judged_items, write_items
from loops import jumar, jumar_json

pytest.importorskip("uvicorn")


@pytest.fixture
def loop(fresh_place: Path) -> Path:
    jumar(project(fresh_place), "run", check=0)
    return fresh_place


@pytest.fixture
def served(loop: Path) -> Iterator[Served]:
    with serving(loop) as running:
        yield running


def test_the_first_line_is_the_address_and_it_ends_within_a_second(loop: Path):
    with serving(loop) as served:
        assert served.address.startswith("http://127.0.0.1:")
        assert served.ask("GET", "/healthz") == (200, "ok\n")
        stream = http.client.HTTPConnection(*served.place, timeout=5)
        stream.request("GET", "/events/loop/t")
        opened = stream.getresponse()
        assert opened.status == 200, "an open stream keeps nobody"
        began = time.monotonic()
        served.process.send_signal(signal.SIGINT)
        assert served.process.wait(20) == 0
        assert time.monotonic() - began < 3
        opened.close()
        stream.close()


def test_it_ends_within_a_second_while_a_page_is_made(fresh_place: Path):
    rows = ({"query_id": f"q{number}", "scores": [0.5] * 200, "relevant": [1, 0] * 100} for number in range(5_000))
    (fresh_place / "large.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with serving(fresh_place) as served:
        asking = http.client.HTTPConnection(*served.place, timeout=30)
        asking.request("GET", "/topk?file=large.jsonl")
        time.sleep(0.5)
        began = time.monotonic()
        served.process.send_signal(signal.SIGINT)
        assert served.process.wait(60) == 0
        assert time.monotonic() - began < 3
        asking.close()


def test_programs_get_what_the_command_line_prints(served: Served, loop: Path):
    listed = json.loads(served.ask("GET", "/api/loops")[1])["loops"]
    expected = jumar_json(loop, "list")["loops"]
    for each in (*listed, *expected):
        each |= {"age_seconds": None, "directory": str(loop / each["directory"])}
    assert listed == expected
    assert json.loads(served.ask("GET", "/api/loops/t")[1]) == json.loads(jumar(loop, "report", "--json", check=0).stdout)
    assert served.ask("GET", "/api/loops/nobody")[0] == 404


@pytest.mark.parametrize(
    "path",
    [
        "/loops/nobody",
        "/loops/t/iterations/99",
        "/loops/..%2f..%2fetc",
        "/static/..%2fapp.py",
        "/static/app.py",
        "/cases/x",
        "/nix",
    ],
)
def test_what_is_not_there_is_not_found(served: Served, path: str):
    status, text = served.ask("GET", path)
    assert status == 404
    assert "Traceback" not in text


def test_a_damaged_loop_is_a_page_that_says_so(served: Served, loop: Path):
    (loop / ".jumar/loops/t/loop.json").write_text("{")
    status, text = served.ask("GET", "/loops/t")
    assert status == 500
    assert "`jumar verify` lists what is damaged" in text


def test_changes_need_our_form_and_our_origin(served: Served, loop: Path):
    fields = hidden_fields(served)
    host = f"http://{served.address.split('/')[2]}"
    form = {"content_type": "application/x-www-form-urlencoded", "origin": host}
    choice = {"use": "1", "reason": "because"}
    assert served.ask("POST", "/loops/t/select", urlencode(choice), **form)[0] == 403
    assert served.ask("POST", "/loops/t/select", urlencode(choice | {"token": "x" * 43}), **form)[0] == 403
    whole = urlencode(choice | fields)
    assert served.ask("POST", "/loops/t/select", whole, **(form | {"origin": "http://evil.example"}))[0] == 403
    assert served.ask("POST", "/loops/t/select", whole, **(form | {"host": "evil.example"}))[0] == 403
    assert served.ask("POST", "/loops/t/select", whole, origin=host, content_type="text/plain")[0] == 403
    assert served.ask("GET", f"/loops/t/select?{whole}")[0] in {404, 405}
    assert jumar_json(loop, "select")["standing"] == 2, "nothing was changed"
    assert served.ask("POST", "/loops/t/select", urlencode({"use": "1", "reason": " "} | fields), **form)[0] == 400
    assert served.ask("POST", "/loops/t/select", whole, **form)[0] == 303
    assert jumar_json(loop, "select")["standing"] == 1


def test_a_button_that_is_pressed_twice_changes_once(served: Served, loop: Path):
    form = {"content_type": "application/x-www-form-urlencoded", "origin": f"http://{served.address.split('/')[2]}"}
    choice = {"use": "1", "reason": "because"}
    for what, before, after in (("select", 2, 2), ("apply", 2, 1), ("undo", 1, 2)):
        body = urlencode(choice | hidden_fields(served))
        assert (loop / "text.md").read_text().startswith(f"words {before}\n")
        assert served.ask("POST", f"/loops/t/{what}", body, **form)[0] == 303
        status, said = served.ask("POST", f"/loops/t/{what}", body, **form)
        assert (status, "something was decided since this page was shown" in said) == (400, True)
        assert (loop / "text.md").read_text().startswith(f"words {after}\n")


ASKING = """
import os, re, subprocess, sys, time, urllib.error, urllib.parse, urllib.request
base, told = sys.argv[1:]
page = urllib.request.urlopen(base + "loops/t/decide").read().decode()
hidden = dict(re.findall('type="hidden" name="(.*?)" value="(.*?)"', page))
for what, fields in (("select", {"use": "1", "reason": "mine"}), ("apply", {}), ("undo", {})):
    body = urllib.parse.urlencode(fields | hidden).encode()
    request = urllib.request.Request(base + "loops/t/" + what, body, {"Origin": base.rstrip("/")})
    try:
        status = urllib.request.urlopen(request).status
    except urllib.error.HTTPError as error:
        status = error.code
    open(told, "a").write(f"{what} {status}\\n")
"""


@pytest.mark.parametrize("when", ["meanwhile", "afterwards"])
def test_a_program_of_a_loop_changes_nothing_through_the_page(fresh_place: Path, tmp_path: Path, when: str):
    place, told, asking = project(fresh_place), tmp_path / "told", tmp_path / "asking.py"
    with serving(place) as served:
        later = "" if when == "meanwhile" else "time.sleep(4)\n"
        asking.write_text("import time\n" + later + ASKING)
        ask = [sys.executable, str(asking), served.address, str(told)]
        call = f"run({ask})" if when == "meanwhile" else f"Popen({ask}, start_new_session=True, stdout=-3, stderr=-3)"
        agent = place / "agent.py"
        agent.write_text(agent.read_text() + f"import subprocess\nif number == 2: subprocess.{call}\n")
        jumar(place, "run", "-q", check=0)
        deadline = time.monotonic() + (0 if when == "meanwhile" else 8)
        while (not told.exists() or len(told.read_text().splitlines()) < 3) and time.monotonic() < deadline:
            time.sleep(0.1)
    statuses = told.read_text().split()[1::2] if told.exists() else []
    if when == "meanwhile":  # what is left behind may have been ended with its pass
        assert len(statuses) == 3
    assert set(statuses) <= {"403"}
    assert jumar_json(place, "select")["standing"] == 2


def test_read_only_has_no_form_and_takes_none(loop: Path):
    with serving(loop, "--read-only") as served:
        assert '<form method="post"' not in served.ask("GET", "/loops/t/decide")[1]
        assert 'class="decide"' not in served.ask("GET", "/loops/t/decide")[1]


def test_another_interface_needs_a_token(loop: Path):
    refused = jumar(loop, "dashboard", "--no-open", "--host", "0.0.0.0", check=2)
    assert "--token" in refused.stderr
    for token, shown in (("s3cret", "s3cret"), ("a+b/c&d==", "a%2Bb%2Fc%26d%3D%3D")):
        with serving(loop, "--token", token) as served:
            assert served.address.endswith(f"/?token={shown}")
            assert served.ask("GET", "/")[0] == 401
            assert served.ask("GET", f"/?token={shown}")[0] == 303


# --------------------------------------------------------------------------------------------------------- in a browser


@dataclass
class Seen:
    """A page in the browser, with what it complained of and what it asked other hosts for."""

    page: Any
    complaints: list[str]
    elsewhere: list[str]


@pytest.fixture
def seen(browser: Any, served: Served) -> Iterator[Seen]:
    page = browser.new_page()
    told = Seen(page, [], [])
    page.on("console", lambda message: told.complaints.append(message.text) if message.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: told.complaints.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith(root_of(served)) else told.elsewhere.append(request.url))
    page.goto(served.address)
    yield told
    page.close()


def test_keys_lead_through_the_iterations(seen: Seen, served: Served):
    page = seen.page
    page.goto(f"{root_of(served)}/loops/t/iterations/1")
    page.keyboard.press("j")
    page.wait_for_url("**/iterations/2")
    page.keyboard.press("k")
    page.wait_for_url("**/iterations/1")
    page.get_by_label("Any iteration").focus()
    page.keyboard.press("j")
    assert page.url.endswith("/iterations/1"), "keys typed into a field are the field's"


def test_from_the_list_to_another_choice_applied_and_undone(seen: Seen, loop: Path):
    page = seen.page
    page.get_by_role("link", name="t", exact=True).click()
    assert page.locator(".lead").inner_text().startswith("Iteration 2 is selected.")
    page.locator("svg.wide a").nth(3).click()
    assert page.url.endswith("/loops/t/iterations/3")
    assert "words 3" in page.locator("tr.plus td.code").first.inner_text()
    assert "words 2" in page.locator("tr.minus td.code").first.inner_text()
    page.get_by_role("link", name=re.compile("start")).click()
    assert "words 0" in page.locator("tr.minus td.code").first.inner_text()
    page.get_by_role("link", name="Decide").click()
    page.get_by_label("Iteration").select_option("1")
    page.get_by_role("button", name="Select").click()
    assert page.url.endswith("/decide"), "without a reason the form is not sent"
    page.get_by_label("Reason").fill("it reads better <b>")
    page.get_by_role("button", name="Select").click()
    page.get_by_text("Iteration 1 is selected.").wait_for()
    assert (loop / "text.md").read_text().startswith("words 2")
    page.get_by_role("button", name="Apply iteration 1").click()
    page.get_by_text("holds the selected iteration already").wait_for()
    assert (loop / "text.md").read_text().startswith("words 1")
    page.get_by_role("button", name="Undo the last apply").click()
    page.get_by_role("button", name="Apply iteration 1").wait_for()
    assert (loop / "text.md").read_text().startswith("words 2")
    assert "it reads better <b>" in page.locator("table").last.inner_text()
    assert (seen.complaints, seen.elsewhere) == ([], [])


ITEMS = [
    {"id": f"{number}{HOSTILE}", "text": f"{HOSTILE} {number} text", "group": HOSTILE, "judge_scores": [1 + number % 5]}
    for number in range(8)
]
RANKING = {"query_id": HOSTILE, "scores": [0.9, 0.5, 0.4], "relevant": [1, 0, 1]}
SCREENS = {
    "runs": "",
    "run": "loops/t",
    "iteration": "loops/t/iterations/2?against=start",
    "decide": "loops/t/decide",
    "compared loops": "compare?loop=t&over=time",
    "compared iterations": "compare?a=t:1&b=t:3",
    "audit": "audit",
    "evaluation": "evaluations/judged",
    "item": "evaluations/judged/iterations/1/items/" + quote(f"3{HOSTILE}", safe=""),
    "rankings": "topk",
    "query": "topk?file=rankings.jsonl",
    "not found": "loops/nobody",
    "cases": "cases/dry",
    "learning run": "learn/learned",
    "iteration of a learning run": "learn/learned/iterations/1",
    "pattern": "learn/learned/patterns/PATTERN",
}


@pytest.fixture
def everything(loop: Path, screen: str) -> None:
    if SCREENS[screen].startswith("learn/"):
        items = [item | {"text": f"{item['text']} {HOSTILE}", "group": f"{item['group']}{HOSTILE}"} for item in judged_items()]
        write_items(loop / "learn.jsonl", items)
        jumar(
            loop, "learn", "learn.jsonl", "--judge", "replay:learn.jsonl", "-o", "learned", "--max-iterations", "1", "-q", check=0
        )
    elif screen == "cases":
        (loop / "case.txt").write_text(f"{HOSTILE}\n---\nE2E Test Query\n{HOSTILE}\n")
        (loop / "cases.toml").write_text('[[cases]]\nfile = "case.txt"\n' * 2)
        jumar(loop, "cases", "run", "--dry-run", "--run-id", "dry", "--start-from-scratch", check=0)
    (loop / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in ITEMS))
    (loop / "rankings.jsonl").write_text(json.dumps(RANKING) + "\n")
    jumar(loop, "evaluate", "items.jsonl", "--judge", "replay:items.jsonl", "-o", "judged", "-q", check=0)


@pytest.mark.usefixtures("everything")
@pytest.mark.parametrize("screen", SCREENS)
def test_every_screen_is_inert_fits_and_is_there_for_all(seen: Seen, served: Served, screen: str, tmp_path: Path):
    page = seen.page
    missing = screen == "not found"
    for width, scheme in ((1280, "light"), (768, "dark"), (375, "light")):
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)
        address = f"{root_of(served)}/{SCREENS[screen]}"
        if address.endswith("PATTERN"):
            page.goto(address.partition("/patterns")[0])
            address = page.locator("a[href*='/patterns/']").first.evaluate("link => link.href")
        assert page.goto(address).status == (404 if missing else 200)
        for summary in page.locator("summary").all():
            summary.click()
        assert page.evaluate("typeof window.__pwned") == "undefined"
        assert page.evaluate("document.scripts.length") == 1
        assert page.evaluate("document.images.length") == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert "\x1b" not in page.evaluate("document.body.textContent")
        page.screenshot(path=tmp_path / f"{screen}-{width}-{scheme}.png", full_page=True)
        page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8"))
        found = page.evaluate("axe.run().then(found => found.violations)")
        told = [f"{one['id']}: {node['html'][:200]}" for one in found for node in one["nodes"] if one["impact"] in SERIOUS]
        assert told == []
    assert ([one for one in seen.complaints if not missing], seen.elsewhere) == ([], [])


SERIOUS = {"serious", "critical"}


def test_loops_with_hostile_names_are_compared_and_audited_by_keyboard_on_a_narrow_screen(browser: Any, loop: Path):
    folder = loop / HOSTILE.replace(".md", "")
    folder.mkdir()
    jumar(project(folder, passes=2), "run", check=0)
    with serving(loop) as served:
        page = browser.new_page(viewport={"width": 375, "height": 800})
        page.goto(served.address)
        for box in (boxes := page.get_by_role("checkbox")).all():
            box.focus()
            page.keyboard.press("Space")
        assert boxes.count() == 2
        page.get_by_role("button", name="Compare what is marked").press("Enter")
        assert f"{folder.name}/t" in page.locator(".key").inner_text()
        assert page.evaluate("document.documentElement.scrollWidth") <= 375
        reached: list[str] = []
        for _ in range(40):
            page.keyboard.press("Tab")
            reached.append(page.evaluate("document.activeElement.getAttribute('aria-label') || ''"))
        assert any(label.startswith(f"{folder.name}/t, iteration 2: 90%") for label in reached)
        page.get_by_role("combobox", name="Loop").first.select_option("t")
        page.get_by_role("combobox", name="Loop").last.select_option(label=f"{folder.name}/t")
        page.get_by_role("button", name="Compare").press("Enter")
        assert page.locator(".lead").inner_text() == f"t, iteration 2 → {folder.name}/t, iteration 2: 0 points"
        assert "✓ passed" in page.get_by_role("row", name="words <i>").inner_text()
        page.get_by_role("link", name="Audit").press("Enter")
        page.get_by_label("Loop, person or reason").fill("<img")
        page.keyboard.press("Enter")
        page.wait_for_url("**/audit?q=*")
        assert page.locator("td", has_text=f"{folder.name}/t").count() == 2
        assert page.evaluate("document.documentElement.scrollWidth") <= 375
        assert page.evaluate("typeof window.__pwned") == "undefined"
        page.close()


def test_a_loop_that_runs_is_killed_and_goes_on_is_shown_as_it_is(browser: Any, fresh_place: Path, tmp_path: Path):
    place, go = project(fresh_place, passes=4), tmp_path / "go"
    agent = place / "agent.py"
    waiting = f"import time\nwhile number > 2 and not pathlib.Path({str(go)!r}).exists(): time.sleep(0.05)\n"
    agent.write_text(agent.read_text() + waiting)
    with subprocess.Popen([sys.executable, "-m", "jumar.cli.entry", "run", "-q"], cwd=place) as running, serving(place) as served:
        try:
            page = browser.new_page()
            deadline = time.monotonic() + 60
            while not (place / ".jumar/loops/t/iterations/iteration-002").exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            page.goto(f"{root_of(served)}/loops/t")
            assert page.locator("svg.wide .mark").count() == 3
            assert page.locator(".notice").inner_text().startswith("Now running (process ")
            running.kill()
            page.get_by_text("Type jumar run").wait_for(timeout=20_000)
            go.touch()
            jumar(place, "run", "-q", check=0)
            page.locator("svg.wide .mark").nth(4).wait_for(timeout=60_000)
            page.locator(".notice").wait_for(state="detached", timeout=20_000)
            page.close()
        finally:
            running.terminate()


def test_a_point_says_what_it_is_and_arrows_lead_along_the_points(seen: Seen, served: Served):
    page = seen.page
    page.goto(f"{root_of(served)}/loops/t")
    points, tip = page.locator("svg.wide a"), page.locator(".tip")
    points.nth(1).hover()
    assert tip.inner_text().startswith("iteration 1: 50%, verified")
    points.nth(1).focus()
    page.keyboard.press("ArrowRight")
    assert tip.inner_text().startswith("iteration 2: 90%, verified")
    page.keyboard.press("Enter")
    page.wait_for_url("**/iterations/2")
    assert seen.complaints == []


def test_the_figures_that_matter_are_in_sight_on_a_narrow_screen(seen: Seen, served: Served):
    page = seen.page
    page.set_viewport_size({"width": 375, "height": 800})
    for address, cell in (("", ".runs td.best"), ("loops/t", ".scores tr.chosen td.note-cell"), ("loops/t/decide", "td.wrap")):
        page.goto(f"{root_of(served)}/{address}")
        box = page.locator(cell).first.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 375
