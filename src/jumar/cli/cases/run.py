"""``jumar cases run``: all cases of a cases.toml, the best of each carried into the next."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from jumar.cases.records import CarriedFrom, CaseEnded, CaseEvent, CaseIteration, CaseNotice, CaseStarted, IterationMade
from jumar.cli.common import DecimalRange, json_option, print_json, quiet_option, room, writable
from jumar.core.text import escape, escape_block, plural, short_dollars, wrapped
from jumar.errors import ConfigError

if TYPE_CHECKING:
    from jumar.app.run_cases import CasesRequest
    from jumar.model.attempts import Spend
    from jumar.model.budget.pricing import Budget

_WIDTH = 12  # of a column of scores
_EPILOG = """\b
Examples:
  jumar cases run cases.toml
  jumar cases run cases.toml --case 2 --start-from-scratch
  jumar cases run cases.toml --dry-run --dry-run-scores scores.json
  jumar cases run cases.toml --resume
  jumar cases run cases.toml --no-carry-forward --executor threads:4

Ctrl-C once finishes the running step and stops; twice stops now. Both can be resumed with --resume.
Exit codes: 0 every case has a best, 1 a case has none, 2 usage, 12 no case has one, 13 locked, 14 damaged,
130/143 interrupted."""


class _Assignments(click.ParamType[Any]):
    """``NAME=VALUE``."""

    name = "NAME=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        name, equals, rest = str(value).partition("=")
        if not equals or not name or not rest:
            self.fail(f"'{value}' should be {param.metavar if param is not None else self.name}", param, ctx)
        return name, rest


@click.command("run", epilog=_EPILOG)
@click.argument("config", required=False, type=click.Path(path_type=Path))
@click.option("--case", "cases", multiple=True, type=click.IntRange(min=1), metavar="N", help="Only this case; repeatable.")
@click.option("--run-id", help="The run's name (default: time and some random digits).")
@click.option("--resume", is_flag=True, help="Resume a run that was interrupted.")
@click.option("--start-from-scratch", is_flag=True, help="Start the first case from nothing.")
@click.option("--base", "bases", multiple=True, type=_Assignments(), metavar="ROLE=FILE", help="What to start from; repeatable.")
@click.option("--base-ckg", metavar="FILE", help="The same as --base ckg=FILE.")
@click.option("--base-fix-db", metavar="FILE", help="The same as --base fix_db=FILE.")
@click.option("--max-iters", type=click.IntRange(min=1), metavar="N", help="Iterations a case, at most (default 5).")
@click.option("--max-seconds", type=DecimalRange(min=0, min_open=True), help="Time of all steps of the run, at most.")
@click.option("--max-cost", type=DecimalRange(0), metavar="USD", help="Dollars of all steps, at most, over all resumes.")
@click.option("--max-tokens", type=click.IntRange(min=0), metavar="N", help="Tokens of all steps, at most, over all resumes.")
@click.option("--reserve-cost", type=DecimalRange(0), metavar="USD", help="What a step that reports no cost is charged.")
@click.option("--stop-accuracy", type=float, metavar="SCORE", help="End a case when this is reached, and all other --stop-….")
@click.option("--stop-overall", type=float, metavar="SCORE", help="As above.")
@click.option("--stop-chain", type=float, metavar="SCORE", help="As above.")
@click.option(
    "--stop", "stops", multiple=True, type=_Assignments(), metavar="KEY=SCORE", help="As above, for any key; repeatable."
)
@click.option("--best-order", metavar="KEYS", help="What is best: keys in the order of their weight (accuracy,overall,chain).")
@click.option("--best-tiebreak", metavar="RULES", help="Among equals: earlier_iter, smaller_diff (default earlier_iter).")
@click.option("--select-best/--no-select-best", default=None, help="Carry the best forward, or the last for comparison.")
@click.option("--carry-forward/--no-carry-forward", default=None, help="Start each case from the one before, or from the start.")
@click.option("--continue-from", type=click.Choice(["previous", "best"]), help="What the next iteration builds on.")
@click.option("--dry-run", is_flag=True, help="Synthetic steps: no program is run.")
@click.option(
    "--dry-run-stop-iter", type=click.IntRange(min=1), metavar="N", help="Scores rise to the thresholds at iteration N."
)
@click.option(
    "--dry-run-scores", type=click.Path(path_type=Path), metavar="FILE", help="JSON rows of scores; they win over the above."
)
@click.option("--executor", metavar="WHERE", help="Cases side by side: threads:N, processes:N or dask://HOST:PORT.")
@click.option(
    "--output-root", type=click.Path(path_type=Path), metavar="DIR", help="Where run_<id> appears (default <root>/runs)."
)
@click.option(
    "--root",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="JUMAR_ROOT",
    help="Folder that holds the runs (default: .jumar beside the configuration).",
)
@json_option
@quiet_option
def run_command(**given: Any) -> int:
    """Run all cases of CONFIG (default: cases.toml) in order; the best iteration of each is carried into the next."""
    from jumar.app.run_cases import chain_of, run_cases
    from jumar.processes.control import StopSwitch, signals_handled

    settings = chain_of(_request(given))
    stream = None if given["quiet"] else (sys.stderr if given["as_json"] else sys.stdout)
    count = f"{plural(len(settings.cases), 'case')}, at most {plural(settings.limits.max_iters, 'iteration')} each"
    heading = f"jumar cases run · {settings.run_id} · {count}{' · dry run' if settings.dry_run else ''}"
    progress = CaseProgress(stream, heading=heading, keys=[key.name for key in settings.order.keys])
    switch = StopSwitch()
    with signals_handled(switch, quiet=given["quiet"]):
        result = run_cases(settings, resume=given["resume"], executor=given["executor"], switch=switch, listener=progress.hear)
    if given["as_json"]:
        print_json(result.document())
    if result.stopped is not None:
        config = f" {given['config']}" if given["config"] else ""
        progress.say(f"stopped   {result.stopped.detail}")
        progress.say(f"resume    jumar cases run{escape(config)} --resume --run-id {settings.run_id}")
    if result.spend is not None:
        progress.say(f"spent     {_spent(result.spend, settings.budget)}")
    progress.say(f"run       {result.run_dir}")
    progress.say(f"report    jumar cases report {escape(_named(result.run_dir))}")
    return result.exit_code


def _request(given: Mapping[str, Any]) -> CasesRequest:
    from jumar.app.run_cases import CasesRequest, cases_request

    bases = dict(given["bases"])
    for role, option in (("ckg", "base_ckg"), ("fix_db", "base_fix_db")):
        if given[option] is None:
            continue
        if role in bases:
            raise ConfigError(f"--base {role}=… and --{option.replace('_', '-')} are both given; keep one")
        bases[role] = given[option]
    thresholds = {name: _score(name, text) for name, text in given["stops"]}
    for name in ("accuracy", "overall", "chain"):
        if given[f"stop_{name}"] is not None:
            thresholds[name] = given[f"stop_{name}"]
    options = {each.name: given[each.name] for each in fields(CasesRequest) if each.name in given}
    options |= {
        "root": given["root"],
        "cases": tuple(sorted(set(given["cases"]))),
        "base_paths": {role: Path(file) for role, file in bases.items()},
        "thresholds": thresholds,
        "order": given["best_order"],
        "tiebreak": given["best_tiebreak"],
    }
    return cases_request(**options)


def _score(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"--stop {escape(name)}={escape(text)}: the threshold should be a number") from None


def _spent(spend: Spend, budget: Budget) -> str:
    parts: list[str] = []
    if budget.max_cost_usd is not None:
        estimated = f", {short_dollars(spend.assumed_cost_usd)} of it estimated" if spend.assumed_cost_usd else ""
        silent = f", and {plural(spend.uncharged_costs, 'run')} of a step did not say" if spend.uncharged_costs else ""
        parts.append(f"{short_dollars(spend.charged_cost_usd)} of {short_dollars(budget.max_cost_usd)}{estimated}{silent}")
    if budget.max_tokens is not None:
        parts.append(f"{spend.charged_tokens:,} of {plural(budget.max_tokens, 'token')}")
    return "; ".join(parts)


def _named(run_dir: Path) -> str:
    here = Path.cwd()
    return str(run_dir.relative_to(here) if run_dir.is_relative_to(here) else run_dir)


class CaseProgress:
    """Prints events to ``stream``, or to nobody when it is None.

    ``heading`` comes before the first event: what is refused before that begins nothing. ``keys`` are the columns, those of the
    order first.
    """

    def __init__(self, stream: TextIO | None, *, heading: str = "", keys: Sequence[str] = ()) -> None:
        self._stream = stream
        self._heading = heading
        self._keys = tuple(keys)
        self._headed = False

    def say(self, text: str) -> None:
        """Print one line; control characters are shown, not obeyed."""
        if self._stream is not None:
            with contextlib.suppress(OSError, ValueError):  # the terminal went away; the run goes on
                self._stream.write(writable(escape_block(text), self._stream.encoding) + "\n")
                self._stream.flush()

    def hear(self, event: CaseEvent) -> None:
        """Print what is worth a line."""
        if self._heading:
            heading, self._heading = self._heading, ""
            self.say(heading)
        if isinstance(event, CaseNotice):
            self.say("\n".join(wrapped(f"note      {event.message}", room(), 10)))
        elif isinstance(event, CaseStarted):
            self._start(event)
        elif isinstance(event, IterationMade):
            self._row(event.record, mark="★ best so far" if event.record.number == event.best else "")
        elif isinstance(event, CaseEnded):
            self._end(event)

    def _start(self, event: CaseStarted) -> None:
        self._headed = False
        self.say(f"case {event.case} · {escape(event.case_id)} · {_origin(event.carried_from)}")
        for record in event.recorded:
            self._row(record, mark="made before" + (", ★ best so far" if record.number == event.best else ""))

    def _row(self, record: CaseIteration, *, mark: str) -> None:
        names = tuple(dict.fromkeys((*(name for name in self._keys if name in record.values), *record.values)))
        if not self._headed:
            self.say("  it  " + "".join(f"{escape(name)[:_WIDTH]:>{_WIDTH}}" for name in names) + f"{'diff':>8}{'time':>9}")
            self._headed = True
        cells = "".join(f"{_number(record.values[name]):>{_WIDTH}}" for name in names)
        seconds = sum(step.seconds or 0.0 for step in record.steps)
        if record.status != "ok":
            mark = f"✗ {record.status.replace('_', ' ')}: {record.reason}"
        self.say(f"{record.number:>4}  {cells}{_number(record.diff):>8}{seconds:>8.1f}s  {mark}".rstrip())

    def _end(self, event: CaseEnded) -> None:
        end = event.end
        kept = f"no iteration {'is valid' if end.iterations else 'was made'}, nothing is carried from here"
        if event.best is not None:
            kept = f"iteration {event.best.best_iter}: {_scores(event.best.values, self._keys)}"
        lead = "  " if self._headed else f"case {end.case}  "
        self.say(f"{lead}stopped   {end.stopped_by}: {end.detail}")
        self.say(f"{' ' * len(lead)}kept      {kept}")
        if event.best is not None and event.best.not_carried is not None:
            self.say(f"{' ' * len(lead)}          not carried: {event.best.not_carried}")


def _scores(values: Mapping[str, float | None], keys: Sequence[str]) -> str:
    named = [name for name in (keys or tuple(values)) if name in values]
    return ", ".join(f"{escape(name)} {_number(values[name])}" for name in named)


def _number(value: float | None) -> str:
    return "—" if value is None else f"{value:g}"


def _origin(carried: CarriedFrom | None) -> str:
    if carried is None:
        return "from the start of the run"
    return f"from case {carried.case}, its {carried.selected_by} iteration {carried.iteration}"
