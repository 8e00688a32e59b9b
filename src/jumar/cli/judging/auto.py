"""``jumar evaluate --mode auto``: its options, what it prints."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from jumar.cli.common import DecimalRange, print_json, print_line, print_text, shown_path, warned
from jumar.cli.judging.judged import judge_progress, judged_request, recalled
from jumar.core.text import plural
from jumar.errors import ConfigError, NothingEvaluatedError, UsageError

if TYPE_CHECKING:
    from jumar.judging.auto.escalation import Guarantee
    from jumar.judging.auto.intervals import CorrectedAverage
    from jumar.judging.auto.results import AutoEvaluation, AutoRequest

_OWN: Final = {
    "proof": "--proof",
    "decision_line": "--decision-line",
    "audit": "--audit",
    "confidence": "--confidence",
    "audit_seed": "--audit-seed",
    "audits": "--audits",
}
_DEFAULTS: Final = {"audit": 0.05, "confidence": 0.9, "audit_seed": 0}

_ONE_TO_FIVE: Final = (
    "scores are mapped to 1–5, also those of a judge with another --judge-scale: of 0 to 10 the line 7 is 1 + 4 · 7/10 = 3.8"
)

F = TypeVar("F", bound=Callable[..., Any])


def auto_options(function: F) -> F:
    """Add the options of mode ``auto``."""
    options = (
        click.option("--proof", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="auto: of the patterns."),
        click.option(
            "--decision-line",
            type=DecimalRange(1, 5, why=_ONE_TO_FIVE),
            metavar="SCORE",
            help="auto: what is decided, yes from here.",
        ),
        click.option("--audit", type=DecimalRange(0, 1), metavar="SHARE", help="auto: checked at random.  [default: 0.05]"),
        click.option(
            "--confidence",
            type=DecimalRange(0.5, 0.99),
            metavar="SHARE",
            help="auto: of each end of an interval.  [default: 0.9]",
        ),
        click.option(
            "--audits",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="auto: all checks so far, and these.",
        ),
        click.option("--audit-seed", type=int, metavar="N", help="auto: which items are checked.  [default: 0]"),
    )
    for option in reversed(options):
        function = option(function)
    return function


def refuse_auto_options(options: Mapping[str, Any]) -> None:
    """Refuse what only mode ``auto`` knows. Errors: :class:`jumar.errors.UsageError`."""
    given = [spelled for name, spelled in _OWN.items() if options[name] is not None]
    if given:
        raise UsageError(f"{given[0]} is for --mode auto, in which the cheap judge decides where a proof lets it")


def run_auto(items: Path, fields: Mapping[str, str], options: Mapping[str, Any], *, as_json: bool, quiet: bool) -> int:
    """Evaluate in mode ``auto``, print what came of it, and return the exit code."""
    request = _request(items, fields, options)
    from jumar.judging.files import learned_from_words
    from jumar.learning.run.auto import evaluate_auto

    with warned(), judge_progress(shown=not (as_json or quiet)) as hear:
        found = evaluate_auto(request, datetime.now(UTC), hear)
    for reason in found.trust.reasons:
        print_text(f"jumar: warning: {_consequence(found)}: {reason}", err=True)
    if found.learned_from:
        print_text(f"jumar: warning: {learned_from_words(found.learned_from, len(found.items))}", err=True)
    if as_json:
        print_json(found.document())
    elif not quiet:
        _print(found, request)
    return 0 if found.scored else NothingEvaluatedError.exit_code


def _consequence(found: AutoEvaluation) -> str:
    if found.rest_asked:
        return "the audits failed, so that the expensive judge was asked about the rest, too"
    if all(one.escalated for one in found.planned):
        return "the cheap judge decided nothing"
    return "the proof no longer holds"


def _request(items: Path, fields: Mapping[str, str], options: Mapping[str, Any]) -> AutoRequest:
    from jumar.judging.auto.escalation import AutoRules
    from jumar.judging.auto.results import AutoRequest

    if options["decision_line"] is None:
        raise ConfigError(
            "--mode auto needs --decision-line SCORE, such as 3.5: the judges only have to agree on which side of it an item is"
        )
    options = _from_the_run(options)
    for name, spelled, what in (
        ("patterns", "--patterns FILE", "what the cheap judge has learned"),
        ("proof", "--proof FILE", "the proof that it tracks: `jumar learn` and `jumar prove` write OUT/proof.json"),
    ):
        if options[name] is None:
            raise ConfigError(f"--mode auto needs {spelled}, {what}; --mode expensive asks the judge about everything")
    if options["jobs"] != 1 or options["executor"] is not None:
        raise UsageError("--jobs and --executor are for --mode cheap; in --mode auto the judge is what takes the time")
    chosen = {name: default if options[name] is None else options[name] for name, default in _DEFAULTS.items()}
    return AutoRequest(
        judged=judged_request(items, "expensive", fields, options),
        patterns=options["patterns"],
        proof=options["proof"],
        audits=options["audits"],
        rules=AutoRules(
            line=options["decision_line"],
            confidence=chosen["confidence"],
            audit=chosen["audit"],
            seed=int(chosen["audit_seed"]),
        ),
    )


def _from_the_run(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options, with the set and the judge of the run that the proof lies in where nobody gave others.

    A judge on file is none of them: it has no verdict of new items.
    """
    from jumar.app.evaluate import check_mode
    from jumar.learning.run.request import recall

    if options["proof"] is not None:
        folder = options["proof"].absolute().parent
        known = {name: value for name, value in recall(folder).items() if name != "judge" or not value.startswith("replay:")}
        options = recalled(known, options)
        if options["patterns"] is None and (folder / "patterns.json").is_file():
            options = {**options, "patterns": folder / "patterns.json"}
    check_mode("auto", options["judge"])
    return options


def _print(found: AutoEvaluation, request: AutoRequest) -> None:
    outcome, count = found.outcome, len(found.items)
    _print_average(found)
    print_line("decided", f"{outcome.above:,} from {found.rules.line:g} on, {outcome.below:,} below")
    print_line("by", f"cheap judge {outcome.cheaply:,} · expensive judge {outcome.escalated:,} · audited {outcome.audited:,}")
    asked = f"{plural(found.expensive.calls, 'call')}, {found.expensive.cached:,} cached"
    print_line("asked", f"{asked} · {_dollars(found.expensive.cost_usd)}")
    share = f"{found.not_asked / count:.0%} of the items"
    print_line("saved", f"{plural(found.calls_saved, 'call')} ({share}) · {_dollars(found.cost_saved_usd)}")
    _print_promise(found)
    for path in (request.judged.per_item, found.directory):
        if path is not None:
            print_line("wrote", shown_path(path))


def _dollars(value: float | None) -> str:
    from jumar.core.text import short_dollars

    return "cost not reported" if value is None else short_dollars(value)


def _print_average(found: AutoEvaluation) -> None:
    outcome, average = found.outcome, found.outcome.average
    if average is None:
        print_line("auto", f"— · nothing of {plural(len(found.items), 'item')} was scored")
        return
    between = "" if average.interval is None else f" [{average.interval[0]:.2f}, {average.interval[1]:.2f}]"
    plain = "" if average.cheap is None else f" · cheap alone {average.cheap:.2f}"
    left = f", {outcome.undecided:,} not" if outcome.undecided else ""
    print_line("auto", f"{average.estimate:.2f}{between} · {plural(found.scored, 'item')} scored{left}{plain}")
    if average.interval is None:
        print_line("interval", f"none: {_why_no_interval(found, average)}")


def _why_no_interval(found: AutoEvaluation, average: CorrectedAverage) -> str:
    from jumar.judging.auto.intervals import FEWEST_AUDITS

    if average.groups < 2:
        return "all items are of one group"
    alone = found.outcome.cheaply + found.outcome.audited
    share = min(1.0, math.ceil(100 * 1.5 * FEWEST_AUDITS / alone) / 100)  # half as many again: they are drawn by chance
    way = f"; --audit {share:g} would draw enough" if alone >= FEWEST_AUDITS and average.drawn < FEWEST_AUDITS else ""
    apart = average.drawn == average.drawn_groups
    audits = plural(average.drawn, "audit") if apart else f"audits in {plural(average.drawn_groups, 'group')}"
    return f"{audits}, and fewer than {FEWEST_AUDITS} don't say how far the cheap judge errs{way}"


def _print_promise(found: AutoEvaluation) -> None:
    """Say what is known of the decisions that nobody checked; nothing where the cheap judge decided nothing."""
    promise, check = found.outcome.guarantee, found.trust.check
    if found.outcome.cheaply or promise.audited:
        print_line("guarantee", f"at most {promise.promised:.0%} of what the cheap judge decides is wrong: {_kept(promise)}")
    if check is not None:
        sealed = check.decisions
        wrong = f", {sealed.wrong:,} of them wrongly, so at most {sealed.upper:.0%} of such" if sealed.audited else ""
        print_line("held-out", f"of {plural(check.items, 'item')} it would decide {sealed.audited:,} alone{wrong}")


def _kept(promise: Guarantee) -> str:
    if not promise.audited:
        return "nobody knows, because nothing was audited"
    found = f"{promise.wrong:,} of {plural(promise.audited, 'audit')} wrong"
    if promise.held is None:
        return f"too few audits to say; {found}, so it may be up to {promise.upper:.0%}"
    bound = f"at most {promise.upper:.0%}" if promise.held else f"at least {promise.lower:.0%}"
    return f"{'kept' if promise.held else 'broken'}; {found}, so it is {bound}"
