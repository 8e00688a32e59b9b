"""``jumar evaluate --mode auto``: its options, what it prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from jumar.cli.common import print_json, print_text, shown_path, warned
from jumar.cli.judged import judge_progress, judged_request
from jumar.cli.numbers import DecimalRange
from jumar.errors import ConfigError, NothingEvaluatedError, UsageError
from jumar.text import plural

if TYPE_CHECKING:
    from jumar.app.auto_model import AutoEvaluation, AutoRequest

__all__ = ["auto_options", "refuse_auto_options", "run_auto"]

_OWN: Final = {
    "proof": "--proof",
    "decision_line": "--decision-line",
    "audit": "--audit",
    "confidence": "--confidence",
    "audit_seed": "--audit-seed",
    "audits": "--audits",
}
_DEFAULTS: Final = {"audit": 0.05, "confidence": 0.9, "audit_seed": 0}

F = TypeVar("F", bound=Callable[..., Any])


def auto_options(function: F) -> F:
    """Add the options of mode ``auto``."""
    options = (
        click.option("--proof", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="auto: of the patterns."),
        click.option("--decision-line", type=DecimalRange(1, 5), metavar="SCORE", help="auto: what is decided, yes from here."),
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
    from jumar.app.auto import evaluate_auto

    with warned(), judge_progress(shown=not (as_json or quiet)) as hear:
        found = evaluate_auto(request, datetime.now(UTC), hear)
    for reason in found.trust.reasons:
        print_text(f"jumar: warning: {_consequence(found)}: {reason}", err=True)
    if as_json:
        print_json(found.document())
    else:
        _print(found, request, quiet=quiet)
    return 0 if found.scored else NothingEvaluatedError.exit_code


def _consequence(found: AutoEvaluation) -> str:
    if found.rest_asked:
        return "the audits failed, so that the expensive judge was asked about the rest, too"
    if all(one.escalated for one in found.planned):
        return "the cheap judge decided nothing"
    return "the proof no longer holds"


def _request(items: Path, fields: Mapping[str, str], options: Mapping[str, Any]) -> AutoRequest:
    from jumar.app.auto_model import AutoRequest
    from jumar.judging.auto import AutoRules

    if options["decision_line"] is None:
        raise ConfigError(
            "--mode auto needs --decision-line SCORE, such as 3.5: the judges only have to agree on which side of it an item is"
        )
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


def _print(found: AutoEvaluation, request: AutoRequest, *, quiet: bool) -> None:
    outcome, average = found.outcome, found.outcome.average
    count = len(found.items)
    if average is None:
        print_text(f"auto  —  nothing of {plural(count, 'item')} was scored")
    else:
        between = "" if average.interval is None else f" [{average.interval[0]:.2f}, {average.interval[1]:.2f}]"
        plain = "" if average.cheap is None else f" · cheap alone {average.cheap:.2f}"
        left = f", {outcome.undecided:,} not" if outcome.undecided else ""
        print_text(f"auto  {average.estimate:.2f}{between}  {plural(found.scored, 'item')} scored{left}{plain}")
    if quiet:
        return
    line = found.rules.line
    print_text(f"decided  {outcome.above:,} from {line:g} on, {outcome.below:,} below")
    print_text(f"by  cheap {outcome.cheaply:,} · expensive {outcome.escalated:,} · audited {outcome.audited:,}")
    saved = found.cost_saved_usd
    cost = "unknown cost" if saved is None else f"${saved:.4f}"
    print_text(f"saved  {plural(found.calls_saved, 'call')} ({found.not_asked / count:.0%} of the items) · {cost}")
    _print_guarantee(found)
    for path in (request.judged.per_item, found.directory):
        if path is not None:
            print_text(f"wrote {shown_path(path)}")


def _print_guarantee(found: AutoEvaluation) -> None:
    promise, check = found.outcome.guarantee, found.trust.check
    words = {True: "held", False: "broken", None: "not known yet"}[promise.held]
    print_text(
        f"guarantee  at most {promise.promised:.0%} of cheap decisions on the wrong side: {words}; "
        f"{promise.wrong:,} of {plural(promise.audited, 'audit')}, so at most {promise.upper:.0%}"
    )
    if check is not None:
        sealed = check.decisions
        print_text(
            f"sealed items  {sealed.wrong:,} of {plural(sealed.audited, 'decision')} wrong, so at most {sealed.upper:.0%}; "
            f"{check.escalated:,} of {check.items:,} escalated"
        )
