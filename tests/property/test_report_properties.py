"""What holds for every loop, whatever its names and numbers: no rendering can be forged, broken or made to act."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

from hypothesis import given, settings
from hypothesis import strategies as st
from report_samples import hostile_report, structure
from report_strategies import names, reports

from jumar.core.rendering.html import inline, row
from jumar.core.text import escape
from jumar.loop.report.diff import _lines
from jumar.loop.report.export import COLUMNS, export_csv, render_csv, render_json, render_junit
from jumar.loop.report.page import render_html, render_markdown
from jumar.loop.report.read import LoopReport
from jumar.loop.report.rows import quality_trajectory, summary, trajectory_rows
from jumar.model import IterationRecord

CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
UNESCAPED_PIPE = re.compile(r"(?<!\\)(?:\\\\)*\|")


# Whole loops are slow to draw, and each of these tests draws its own: half as many as elsewhere.
LOOPS = settings(max_examples=settings.default.max_examples // 2 if settings.default else 30)


def columns(line: str) -> int:
    return len(UNESCAPED_PIPE.findall(line)) - 1


@LOOPS
@given(reports())
def test_no_rendering_holds_a_raw_control_character(report: LoopReport):
    for text in (render_markdown(report), render_csv(report), render_json(report)):
        assert CONTROL.search(text) is None
        text.encode("utf-8")
    for text in (render_html(report), render_junit(report)):  # these show output of several lines, where a tab is a tab
        assert CONTROL.search(text.replace("\t", "")) is None
        text.encode("utf-8")
    for line in trajectory_rows(report):
        assert all(CONTROL.search(cell) is None and "\n" not in cell for cell in line.cells)


@LOOPS
@given(reports())
def test_every_row_of_a_table_has_as_many_columns_as_its_head(report: LoopReport):
    tables = 0
    head = 0
    for line in render_markdown(report).splitlines():
        if not line.startswith("|"):
            head = 0
        elif head == 0:
            head = columns(line)
            tables += 1
        else:
            assert columns(line) == head
    assert tables >= 2


@given(st.lists(names, min_size=1, max_size=5))
def test_a_row_has_a_cell_for_each_name(cells: list[str]):
    assert columns(row(inline(cell) for cell in cells)) == len(cells)


@LOOPS
@given(reports())
def test_the_headings_and_the_number_of_lines_do_not_depend_on_names(report: LoopReport):
    text = render_markdown(report)
    known = {"# Output Selection Report", "### Degradation Detected", "### Worse on the Way"}
    known |= {
        f"## {name}" for name in ("Summary", "Quality Scores", "Selection Rationale", "Quality Trajectory", "Artifacts Applied")
    }
    known |= {"## Recommendations", "## Decisions", "## Validation Checklist"}
    outside = re.sub(r"(?s)```\n.*?\n```", "", text)
    headings = [line for line in outside.splitlines() if re.match(r"\s*#", line)]
    assert set(headings) <= known
    assert len(headings) == len(set(headings))
    assert sum(line.startswith("- [") for line in outside.splitlines()) == 7


PLAIN = structure(render_markdown(hostile_report("plain")))


@given(names)
def test_a_renderer_sees_the_same_structure_whatever_the_name_is(name: str):
    assert structure(render_markdown(hostile_report(name))) == PLAIN


@LOOPS
@given(reports())
def test_csv_round_trips(report: LoopReport):
    rows = list(csv.reader(io.StringIO(render_csv(report)), strict=True))
    assert rows[0] == list(COLUMNS)
    assert len(rows) == 1 + len(report.records)
    for record, cells in zip(report.records, rows[1:], strict=True):
        assert len(cells) == len(COLUMNS)
        assert int(cells[0]) == record.iteration_number
        assert cells[1].removeprefix("'") == escape(record.timestamp).removeprefix("'")
        numbers = (
            record.quality_score,
            record.quality_delta,
            record.tokens_used,
            record.token_cost_usd,
            record.execution_time_ms,
        )
        assert [None if cell == "" else float(cell) for cell in cells[2:7]] == [
            None if number is None else float(number) for number in numbers
        ]
        assert cells[7] == record.verification_status
        for cell in cells:
            assert re.match(r"[=+@\-\t\r]", cell) is None or re.fullmatch(r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?", cell)


@LOOPS
@given(reports())
def test_json_is_strict_and_whole(report: LoopReport):
    def refuse(constant: str) -> float:
        raise AssertionError(constant)

    text = render_json(report)
    assert text.isascii()
    document = json.loads(text, parse_constant=refuse)
    assert document["loop_id"] == report.loop_id
    assert [item["iteration_number"] for item in document["records"]] == [item.iteration_number for item in report.records]
    assert document["records"] == json.loads(json.dumps([record.to_json() for record in report.records]))
    assert document["decisions"] == json.loads(json.dumps([decision.to_json() for decision in report.decisions]))
    assert len(document["checklist"]) == 7


WORD = re.compile(r"[a-z0-9-]+")
TAGS = set(
    WORD.findall(
        "html head meta title style body header main footer p h1 h2 h3 strong small dl dt dd div section figure svg desc path g "
        "circle text tspan ul li span b abbr table thead tbody tr th td details summary pre br"
    )
)
ATTRIBUTES = set(
    WORD.findall(
        "lang charset http-equiv content name class id aria-labelledby aria-label aria-hidden role viewbox preserveaspectratio "
        "d x y cx cy r text-anchor scope title tabindex open"
    )
)


class Page(HTMLParser):
    """The tags and attribute names of a page in order, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@LOOPS
@given(reports())
def test_html_has_no_script_no_handler_and_no_address(report: LoopReport):
    page = Page(render_html(report))
    assert set(page.tags) <= TAGS
    assert {name for name, _ in page.attributes} <= ATTRIBUTES
    assert escape(report.loop_id) in "".join(page.text)


@LOOPS
@given(reports(text=st.sampled_from(["name"])), st.data())
def test_html_has_the_same_tags_whatever_the_names_are(report: LoopReport, data: st.DataObject):
    name = data.draw(names)

    def renamed(value: object) -> object:
        if isinstance(value, str) and value in {"name", report.loop_id}:
            return name
        if isinstance(value, tuple):
            return tuple(renamed(item) for item in value)
        return value

    def rename(record: IterationRecord) -> IterationRecord:
        fields = {field.name: renamed(getattr(record, field.name)) for field in dataclasses.fields(record)}
        fields["checks"] = tuple(dataclasses.replace(check, name=name, output_tail=name) for check in record.checks)
        return dataclasses.replace(record, **fields)

    plain = dataclasses.replace(
        report,
        records=tuple(
            dataclasses.replace(r, checks=tuple(dataclasses.replace(c, output_tail="name") for c in r.checks))
            for r in report.records
        ),
    )
    other = dataclasses.replace(plain, records=tuple(rename(record) for record in plain.records), loop_id=name)
    assert Page(render_html(other)).tags == Page(render_html(plain)).tags


@LOOPS
@given(reports())
def test_junit_is_well_formed_and_its_counts_add_up(report: LoopReport):
    root = ET.fromstring(render_junit(report))
    (suite,) = root
    assert int(suite.attrib["tests"]) == len(report.records) + 1
    for kind, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        assert int(suite.attrib[attribute]) == len(suite.findall(f"testcase/{kind}")) == int(root.attrib[attribute])
    assert [case.attrib["name"] for case in suite][-1] == "gate"


@LOOPS
@given(reports())
def test_exactly_the_chosen_row_is_marked(report: LoopReport):
    marked = [line.number for line in trajectory_rows(report) if line.chosen]
    assert marked == ([] if report.chosen is None else [report.chosen])
    table = render_markdown(report).partition("## Quality Scores")[2].partition("## ")[0]
    ticked = [line for line in table.splitlines() if re.match(r"\| \d+(?: \(start\))? ✓ \|", line)]
    assert len(ticked) == len(marked)


@LOOPS
@given(reports())
def test_totals_agree_with_a_slow_reference(report: LoopReport):
    passes = [record for record in report.records if record.iteration_number > 0]
    found = summary(report.records)
    assert found["total_iterations"] == found.total_iterations == len(passes)
    valid = [record.quality_score for record in passes if record.status == "ok" and record.quality_score is not None]
    if not passes:
        assert set(found.values()) == {0}
    else:
        assert found["best_quality"] == (max(valid) if valid else None)
        assert found["worst_quality"] == (min(valid) if valid else None)
        unknown = any(record.token_cost_usd is None for record in passes)
        assert (found["total_cost_usd"] is None) == unknown
    assert [point["iteration"] for point in quality_trajectory(report.records)] == [r.iteration_number for r in report.records]
    assert quality_trajectory(report.views) == quality_trajectory(report.records)


@LOOPS
@given(reports())
def test_the_leaders_are_the_running_best_of_every_prefix(report: LoopReport):
    expected: list[int] = []
    for end in range(1, len(report.views) + 1):
        best = None
        for view in report.views[:end]:
            if view.status == "ok" and view.score is not None and (best is None or view.score > best[0]):
                best = (view.score, view.number)
        if best is not None and (not expected or expected[-1] != best[1]):
            expected.append(best[1])
    assert list(report.leaders) == expected


@given(st.lists(names, max_size=4))
def test_csv_of_any_timestamps(texts: list[str]):
    records = [IterationRecord(iteration_number=n, timestamp=text, quality_score=None) for n, text in enumerate(texts)]
    assert len(list(csv.reader(io.StringIO(export_csv(records)), strict=True))) == 1 + len(texts)


@given(st.text(st.sampled_from("ab\n\r\x0b\x0c\u2028"), max_size=30))
def test_lines_of_a_diff_join_to_the_text(text: str):
    joined = "".join(_lines(text))
    marker = "\n\\ No newline at end of file\n"
    assert (joined.removesuffix(marker) if joined.endswith(marker) else joined) == text
