"""What each page shows, as values for its template. All of it comes from the subjects' reports."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from jumar.cases.report.render import render_html as cases_page
from jumar.cases.report.render import to_json as cases_to_json
from jumar.core.files import is_directory
from jumar.core.rendering.figures import UNKNOWN, dollars, duration, iteration_label
from jumar.core.rendering.html import Layout, block, render_page
from jumar.core.rendering.plot import linear, lines_of
from jumar.core.text import natural, percent, plural, points, short_dollars, signed_points
from jumar.dashboard.diffs import shown_diff
from jumar.errors import NotFoundError
from jumar.judging.report.page import render_html as evaluation_page
from jumar.learning.report.render import render_html as learning_page
from jumar.learning.report.render import render_json as learning_json
from jumar.loop.ranking.repairs import repairs
from jumar.loop.report.diff import diff_snapshots
from jumar.loop.report.export import render_json
from jumar.loop.report.observer import LoopObserver, end_of, log_files, loop_state
from jumar.loop.report.page import render_html as loop_page
from jumar.loop.report.rows import VERIFIED, change, tests_of
from jumar.model.ordering import valid_score
from jumar.processes.written_files import log_name

if TYPE_CHECKING:
    from jumar.cases.report import ChainReport
    from jumar.dashboard.library import Run
    from jumar.judging.report.read import EvaluationReport
    from jumar.learning.report.view import LearningReport
    from jumar.loop.report.read import LoopReport
    from jumar.loop.store.loop_store import LoopStore
    from jumar.model import IterationRecord

_PACKAGE: Final = "jumar.dashboard"
_ROWS: Final = 100
_LOG_END: Final = 64 << 10
_STEPS: Final = {
    "generate": "the generator makes iteration",
    "verify": "checks run on iteration",
    "score": "scorers run on iteration",
    "wait": "it waits",
}
_SORTS: Final = ("updated", "name", "best", "cost")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFrame:
    """What stands around every page. ``trail`` are names and addresses back to the first page; no ``form_token``: read only."""

    title: str
    trail: tuple[tuple[str, str], ...] = ()
    form_token: str = ""

    def layout(
        self,
        *,
        links: str = "",
        patterns: str = "",
        live: str = "",
        notice: str = "",
        tabs: Sequence[tuple[str, str, bool]] = (),
    ) -> Layout:
        """Return the layout.

        ``links`` is what addresses of parts begin with, ``patterns`` those of patterns; ``live`` is the stream that says when the
        page is old, ``notice`` stands above all, ``tabs`` are the pages beside it.
        """
        values = {
            "trail": self.trail,
            "title": self.title,
            "live": live,
            "notice": notice,
            "tabs": tabs,
            "patterns": patterns,
        }
        return Layout(template="dashboard.html.j2", package=_PACKAGE, links=links, values=values)

    def page(self, template: str, page: Mapping[str, Any], **around: Any) -> str:
        """Return a template of ours in the layout."""
        return render_page(template, page, package=_PACKAGE, layout=self.layout(**around))


def problem(frame: PageFrame, message: str) -> str:
    """Return the page of a mistake."""
    return frame.page("problem.html.j2", {"title": frame.title, "message": message})


# ----------------------------------------------------------------------------------------------------------------- runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the address of the first page asks for."""

    search: str = ""
    kind: str = ""
    state: str = ""
    sort: str = "updated"
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Asked:
        """Read it from an address; what makes no sense there is left out."""
        page, sort = query.get("page", "1"), query.get("sort", "updated")
        return cls(
            search=query.get("q", "").strip(),
            kind=query.get("kind", ""),
            state=query.get("state", ""),
            sort=sort if sort in _SORTS else "updated",
            page=max(1, int(page)) if page.isascii() and page.isdigit() and len(page) < 7 else 1,
        )

    def address(self, **other: object) -> str:
        """Return the address with something else asked for."""
        asked = {"q": self.search, "kind": self.kind, "state": self.state, "sort": self.sort, "page": self.page} | other
        given = {
            name: value for name, value in asked.items() if value and (name, value) not in {("page", 1), ("sort", "updated")}
        }
        return f"/?{urlencode(given)}" if given else "/"

    def takes(self, run: Run) -> bool:
        """Whether a run is asked for."""
        return (
            (not self.kind or run.kind == self.kind)
            and (not self.state or run.state == self.state)
            and self.search.lower() in run.key.lower()
        )


def runs(frame: PageFrame, every: Sequence[Run], asked: Asked, *, complete: bool) -> str:
    """Return the list of runs."""
    found = [run for run in every if asked.takes(run)]
    if asked.sort == "name":
        found.sort(key=lambda run: run.key)
    elif asked.sort == "best":
        found.sort(key=lambda run: -1 if run.summary is None else run.summary.best_score or 0, reverse=True)
    elif asked.sort == "cost":
        found.sort(key=lambda run: -1 if run.summary is None else run.summary.spend.charged_cost_usd or 0, reverse=True)
    first = (asked.page - 1) * _ROWS
    shown = found[first : first + _ROWS]
    page = {
        "rows": [_run_row(run) for run in shown],
        "asked": asked,
        "count": plural(len(found), "run"),
        "all": len(every),
        "complete": complete,
        "states": sorted({run.state for run in every}),
        "sorts": _SORTS,
        "next": asked.address(page=asked.page + 1) if len(found) > first + _ROWS else "",
        "before": asked.address(page=asked.page - 1) if asked.page > 1 else "",
    }
    moving = not complete or any(run.state in {"running", "waiting"} for run in every)
    return frame.page("runs.html.j2", page, live="runs" if moving else "quiet runs")


def _run_row(run: Run) -> dict[str, Any]:
    summary = run.summary
    row: dict[str, Any] = {
        "kind": run.kind,
        "key": run.key,
        "name": run.name,
        "address": address_of(run),
        "state": run.state,
        "detail": run.detail,
        "updated": (run.updated_at or "")[:16].replace("T", " "),
        "best": UNKNOWN,
        "at": "",
        "last": UNKNOWN,
        "cost": UNKNOWN,
        "iterations": "",
        "spark": None,
    }
    if summary is None:
        return row
    spend = summary.spend
    last = next((score for score in reversed(summary.scores) if score is not None), None)
    money = dollars(spend.cost_usd, places=2) if spend.cost_usd is not None else "not reported"
    if spend.cost_usd is None and spend.charged_cost_usd:
        money = f"~{dollars(spend.charged_cost_usd, places=2)}"
    return row | {
        "best": UNKNOWN if summary.best_score is None else points(summary.best_score),
        "at": "" if summary.best_iteration is None else f"at {summary.best_iteration or 'start'}",
        "last": UNKNOWN if last is None else points(last),
        "cost": money,
        "iterations": f"{summary.iterations:,}",
        "spark": _spark(summary.scores),
    }


def _spark(scores: Sequence[float | None]) -> list[tuple[str, str]] | None:
    valid = [score for score in scores if score is not None]
    if len(valid) < 2:
        return None
    x, y = linear(0, len(scores) - 1, 2, 98), linear(min(valid), max(valid), 22, 2)
    places = ((x(index), None if score is None else y(score)) for index, score in enumerate(scores))
    return [(line.kind, line.path) for line in lines_of(places)]


def address_of(run: Run) -> str:
    """Return where its page is, as an address in a page."""
    return quote(run.address)


# --------------------------------------------------------------------------------------------------------------- a loop


def tabs_of(run: Run, here: str) -> list[tuple[str, str, bool]]:
    """Return the pages of a loop that stand beside each other; ``here`` is ``run``, ``decide`` or neither."""
    address = address_of(run)
    return [("Run", address, here == "run"), ("Decide", f"{address}/decide", here == "decide")]


def loop(frame: PageFrame, run: Run, store: LoopStore, report: LoopReport) -> str:
    """Return a loop's page: its report, with links to its iterations, and what to type where it was cut off."""
    address = address_of(run)
    links, live = f"{address}/iterations/", f"/events/{quote(f'loop/{run.key}')}"
    return loop_page(report, frame.layout(links=links, live=live, notice=_notice(store), tabs=tabs_of(run, "run")))


def _notice(store: LoopStore) -> str:
    state = loop_state(store)
    if state.name == "running":
        now = LoopObserver(store.paths.directory).look().running
        steps = ", ".join(
            _STEPS.get(step.phase, step.phase) + ("" if step.iteration is None else f" {step.iteration}") for step, _ in now
        )
        return f"Now {state.text}{': ' if steps else ''}{steps}. This page follows it."
    if state.name == "interrupted":
        return f"Interrupted: nothing runs it any more. Type {_resume(store)}, and it goes on where it stopped."
    return ""


def _resume(store: LoopStore) -> str:
    """Return what resumes a loop, and where: its id does with a configuration and without one."""
    root = store.paths.root.resolve()
    words = ["jumar", "run", "--id", store.loop_id, *([] if root.name == ".jumar" else ["--root", root.name])]
    return f"{shlex.join(words)} in {root.parent}"


def iteration(frame: PageFrame, run: Run, store: LoopStore, report: LoopReport, number: int, against: str) -> str:
    """Return an iteration's page: what it changed against another one, what checks and scorers said, its prompt and logs.

    ``against`` is ``parent``, ``start``, ``selected``, ``last`` or a number. Errors: :class:`NotFoundError`.
    """
    record = report.record(number)
    others = _others(report, record)
    other = others.get(against, natural(against))
    address, numbers = address_of(run), [each.iteration_number for each in report.records]
    place = numbers.index(number)
    page: dict[str, Any] = {
        "number": number,
        "name": f"Iteration {iteration_label(number)}",
        "lead": _lead(report, record),
        "bad": valid_score(record.view()) is None or record.verification_status == "failed",
        "facts": _iteration_facts(report, record),
        "address": address,
        "saved": f"{address}/iterations/{number}/files/" if store.has_snapshot(number) else "",
        "compare": f"/compare?{urlencode({'a': f'{run.key}:{number}'})}",
        "before": numbers[place - 1] if place else None,
        "after": numbers[place + 1] if place + 1 < len(numbers) else None,
        "others": [(name, value, value == other) for name, value in others.items() if value != number],
        "against": other,
        "numbers": [value for value in numbers if value != number],
        "diff": None if other is None or other == number else _diff(store, report, other, number),
        "repaired": [(name, str(tests)) for name, tests in repairs(record, report.compared_with(record)).all if tests],
        "checks": record.checks,
        "dimensions": [(name, f"{value:.2f}") for name, value in record.dimensions.items()],
        "reasons": [*([record.status_reason] if record.status_reason else []), *record.reasons],
        "logs": _logs(store, record),
        "duration": duration,
        "block": block,
    }
    return frame.page("iteration.html.j2", page, tabs=tabs_of(run, ""))


def _others(report: LoopReport, record: IterationRecord) -> dict[str, int]:
    parent = report.compared_with(record)
    named = {
        "parent": None if parent is None else parent.iteration_number,
        "start": None if report.start is None else 0,
        "selected": report.chosen,
        "last": None if report.final is None else report.final.iteration_number,
    }
    return {name: number for name, number in named.items() if number is not None}


def _lead(report: LoopReport, record: IterationRecord) -> str:
    score = percent(record.quality_score)
    said = f"{score}, {VERIFIED[record.verification_status]}" if record.quality_score is not None else "No valid score"
    selected = " This iteration is selected." if record.iteration_number == report.chosen else ""
    return f"{said}.{selected}"


def _iteration_facts(report: LoopReport, record: IterationRecord) -> list[tuple[str, str, str]]:
    parent, tests, usage = report.compared_with(record), tests_of(record), record.usage
    more = change(record, parent)
    moved = (
        "" if parent is None or more is None else f"{signed_points(more)} on iteration {iteration_label(parent.iteration_number)}"
    )
    passed = f"{sum(check.passed for check in record.checks)} of {len(record.checks)}"
    facts = [("Score", percent(record.quality_score), moved)]
    if tests:
        facts.append(("Tests that pass", tests.replace("/", " of "), f"{passed} checks pass"))
    elif record.checks:
        facts.append(("Checks that pass", passed, ""))
    tokens = "" if record.tokens_used is None else f"{record.tokens_used:,} tokens"
    cost = "not reported" if record.token_cost_usd is None else short_dollars(record.token_cost_usd)
    return [
        *facts,
        ("Cost of the generator", cost, ", ".join(filter(None, (tokens, usage.model)))),
        ("Time", duration(None if record.execution_time_ms is None else record.execution_time_ms / 1000), ""),
    ]


def _diff(store: LoopStore, report: LoopReport, other: int, number: int) -> dict[str, Any]:
    if report.find(other) is None:
        raise NotFoundError(f"this loop has no iteration {other}")
    return shown_diff(diff_snapshots(store, other, number))


def _logs(store: LoopStore, record: IterationRecord) -> list[tuple[str, str]]:
    """Return the prompt, then the log of the generator, then the others, each with the name of what wrote it."""
    number = record.iteration_number
    names = {"generator.log": "Log of the generator"}
    names |= {log_name("check", check.name): f"Output of check {check.name}" for check in record.checks}
    place = store.paths.iteration(number) / "logs"
    found = [(path.name, end_of(path, _LOG_END)) for path in log_files(store, store.attempts(), number)]
    found.sort(key=lambda one: one[0] != "generator.log")
    prompt = end_of(place / "prompt.md", _LOG_END) if is_directory(place) else ""
    shown = [("Prompt that the generator got", prompt), *((names.get(name, name), text) for name, text in found)]
    return [one for one in shown if one[1]]


# ---------------------------------------------------------------------------------------------------- other subjects


def cases(frame: PageFrame, report: ChainReport) -> str:
    """Return the page of a run of cases."""
    return cases_page(report, frame.layout())


def learning(frame: PageFrame, run: Run, report: LearningReport) -> str:
    """Return the page of a learning run."""
    return learning_page(report, frame.layout(links=f"{address_of(run)}/iterations/", patterns=f"{address_of(run)}/patterns/"))


def trail_of(run: Run) -> tuple[tuple[str, str], ...]:
    """Return the way from a part of a run back to the first page."""
    return (("Runs", "/"), (run.name, address_of(run)))


def evaluation_address(run: Run, number: int) -> str:
    """Return where one evaluation of a folder is."""
    return f"{address_of(run)}/iterations/{number}"


def evaluation(frame: PageFrame, run: Run, report: EvaluationReport) -> str:
    """Return the page of an evaluation, with those of its folder beside it."""
    tabs = [
        (str(each.number), evaluation_address(run, each.number), each.number == report.number) for each in report.course[-20:]
    ]
    links = f"{evaluation_address(run, report.number)}/items/"
    return evaluation_page(report, frame.layout(links=links, tabs=tabs if len(tabs) > 1 else ()))


def loops_document(every: Sequence[Run]) -> dict[str, Any]:
    """Return what `jumar list --json` says of each loop."""
    return {"loops": [run.summary.to_json() for run in every if run.kind == "loop" and run.summary is not None]}


def loop_document(report: LoopReport) -> dict[str, Any]:
    """Return what `jumar report --json` prints."""
    return json.loads(render_json(report))


def cases_document(report: ChainReport) -> dict[str, Any]:
    """Return what `jumar cases report --json` prints."""
    return cases_to_json(report)


def learning_document(report: LearningReport) -> dict[str, Any]:
    """Return what `jumar learn report --json` prints."""
    return json.loads(learning_json(report))
