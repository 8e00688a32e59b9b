"""A loop's pages: its run, an iteration, and where a person decides."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from commands import call, record
from visits import visit

from jumar.dashboard.app import create_app
from jumar.dashboard.guard import Access, local_hosts
from jumar.dashboard.library import Library


@pytest.fixture(autouse=True)
def _here(fresh_place: Path) -> Path:
    return fresh_place


def page(address: str, status: int = 200) -> str:
    app = create_app(Library([Path(".jumar")], Path()), Access(hosts=local_hosts(8400)))
    found, _, body = visit(app, address, host="127.0.0.1:8400")
    assert found == status
    return body


def plain(body: str) -> str:
    """Return what a page says, without its marks."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())


CHECK = "printf 'first line\\nsecond line\\n'; test -f done"


def run(passes: int = 1, *options: str) -> str:
    """Run a loop whose check says two lines and fails; return its id."""
    command = ("--", "sh", "-c", "echo more >> text.md")
    call("run", "-n", passes, "--check", CHECK, "--keep-going", *options, *command)
    return next(Path(".jumar/loops").iterdir()).name


def test_the_output_of_a_check_has_the_lines_that_it_had():
    key = run()
    assert "first line\nsecond line\n" in page(f"/loops/{key}/iterations/1")


def test_an_iteration_says_what_it_moved_and_which_log_is_whose():
    record([0.5, {"score": 0.9, "tokens_used": 1200}])
    shown = plain(page("/loops/t/iterations/2"))
    assert "90% +40 on iteration 1" in shown
    assert "1,200 tokens" in shown
    assert "← iteration 1" in shown
    assert "0 files unchanged" not in shown
    said = plain(page(f"/loops/{run()}/iterations/1"))
    assert f"Output of check {CHECK}" in said
    assert "Checks that pass 0 of 1" in said


def test_a_loop_that_was_cut_off_says_a_command_that_resumes_it():
    key = run(2)
    for end in Path(f".jumar/loops/{key}/decisions").iterdir():
        if '"end"' in end.read_text():
            end.unlink()
    assert f"Type jumar run --id {key} in {Path.cwd()}, and it goes on" in plain(page(f"/loops/{key}"))
    assert "is the best so far" in plain(page(f"/loops/{key}"))
    assert "Latest quality" in plain(page(f"/loops/{key}"))
    assert call("run", "--id", key).code == 10
    assert "is the best so far" not in plain(page(f"/loops/{key}"))


def test_a_run_has_the_time_and_cost_of_each_iteration_and_says_what_nobody_reported():
    paid = {"score": 0.5, "execution_time_ms": 90_000.0, "token_cost_usd": 0.25}
    record([paid, {"score": 0.9, "execution_time_ms": 200_000.0}])
    shown = plain(page("/loops/t"))
    assert "Time of each iteration minutes" in shown
    assert "Cost of each iteration dollars, 1 not reported" in shown
    assert page("/loops/t").count('class="bars"') == 4, "both, in the wide and in the narrow plot"
    record([0.5], loop="silent")
    assert "of each iteration" not in plain(page("/loops/silent"))


def test_choosing_another_one_says_what_the_rules_select_and_shows_what_applying_changes_line_by_line():
    record([0.5, 0.9, 0.4])
    Path("text.md").write_text("what stands here now\n")
    assert "90% iteration 2 , verified Last 40% iteration 3 , verified Runner-up 50% iteration 1" in plain(
        page("/loops/t/decide")
    )
    assert "40 points over the runner-up" in plain(page("/loops/t/decide"))
    call("select", "t", "--use", 1, "--reason", "it is shorter", check=0)
    shown = plain(page("/loops/t/decide"))
    assert "Selected by" in shown
    assert "it is shorter; the rules would select iteration 2 (90)." in shown
    assert "By the rules 90% iteration 2" in shown
    assert "40 points below iteration 2, which the rules select" in shown
    assert "points over the runner-up" not in shown
    assert "− what stands here now" in shown
    assert "+ pass 1" in shown
    assert "override: this one" in shown
    call("apply", "t", check=0)
    assert "1 file would be as before iteration 1 was applied." in plain(page("/loops/t/decide"))
    Path("text.md").write_text("changed again\n")
    assert "Changed since: text.md; `jumar apply t --undo --force` sets that aside." in plain(page("/loops/t/decide"))


def test_nothing_is_chosen_before_a_person_chose():
    record([0.5, 0.5])
    shown = page("/loops/t/decide")
    assert "As good as the runner-up; of equals the earlier one is selected" in plain(shown)
    assert '<option value="">choose one</option>' in shown


def test_the_list_of_runs_is_as_they_are_when_it_is_asked_for_and_not_as_they_were_the_last_time():
    at = [0.0]
    library = Library([Path(".jumar")], Path(), clock=lambda: at[0])
    app = create_app(library, Access(hosts=local_hosts(8400)))

    def shown() -> str:
        return plain(visit(app, "/", host="127.0.0.1:8400")[2])

    record([0.5])
    assert "tracked 1 50 at 1 50 not reported" in shown()
    record([0.7], start=2)
    record([0.3], loop="other")
    at[0] += 60.0
    assert "tracked 2 70 at 2 70" in shown()
    assert "2 runs" in shown()


def test_a_cost_of_which_a_part_is_estimated_is_said_to_be_about_that():
    usage = """printf '{"token_cost_usd": 0.25}' > $JUMAR_USAGE_FILE"""
    cost = ("--max-cost", 3, "--reserve-cost", 0.5, "--check", "false", "--keep-going")
    call("run", "-n", 2, *cost, "--", "sh", "-c", f"""[ $JUMAR_ITERATION = 2 ] || {usage}; date +%N > text.md""")
    assert "~$0.75" in plain(page("/"))


def test_a_run_leads_to_what_the_selected_one_changed_and_to_another_choice():
    record([0.5, 0.9])
    shown = page("/loops/t")
    assert "iteration 2: 90%, verified, +40 on iteration 1, selected" in shown
    assert '<a href="/loops/t/iterations/2?against=start">What it changed</a>' in shown
    assert '<a href="/loops/t/iterations/../decide">Choose another, apply, undo</a>' in shown
    call("report", "t", "-o", "page.html", check=0)
    assert "What it changed</a>" not in Path("page.html").read_text(), "a file alone has no other pages"


def test_a_run_whose_checks_count_tests_says_from_how_many_to_how_many():
    cases = """<testcase name="a"/><testcase name="b">%s</testcase>"""
    suite = f"""printf '<testsuite>{cases}</testsuite>' "$(test -f done || echo '<failure/>')" > r.xml"""
    toml = """[loop]\nid = "t"\n[generator]\ncommand = "touch done"\n[[checks]]\nname = "tests"\njunit = "r.xml"\n"""
    Path("check.sh").write_text(f"{suite}\ntest -f done\n")
    Path("jumar.toml").write_text(toml + 'command = "sh check.sh"\n')
    call("run", "-n", 3, check=0)
    shown = plain(page("/loops/t"))
    assert "from 50%; 1/2 → 2/2 tests; verified" in shown
    assert "Iterations 1 of 3" in shown
    assert "tests 2 of 2 tests pass +1" in shown


def test_who_asks_only_for_the_head_of_a_stream_is_not_kept():
    record([0.5])
    app = create_app(Library([Path(".jumar")], Path()), Access(hosts=local_hosts(8400)))
    status, headers, body = visit(app, "/events/loop/t", method="HEAD", host="127.0.0.1:8400")
    assert (status, body) == (200, "")
    assert headers["content-type"].startswith("text/event-stream")
