"""``jumar learn ITEMS``: a cheap judge from what an expensive one says, proved on items that nothing was learned from."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import click

from jumar.cli.common import DecimalRange, json_option, print_json, print_line, quiet_option, warned
from jumar.cli.judging.judged import judge_config, judge_options
from jumar.errors import ConfigError
from jumar.learning.material import Profile
from jumar.learning.proposals import ProposerName
from jumar.learning.run.request import LearnRequest
from jumar.processes.control import StopSwitch, signals_handled

_EPILOG = """\b
Examples:
  jumar learn answers.jsonl --judge openai:gpt-5-mini -o outputs/ --max-cost 5
  jumar learn run judged.jsonl --judge replay:judged.jsonl -o outputs/  offline
  jumar learn status outputs/ ; jumar learn report outputs/
  jumar evaluate new.jsonl --mode cheap --patterns outputs/patterns.json

Items of one --group are never parted between learning and proof. Run the same command again to resume a
run that was interrupted. Ends with 0 when it reached a verdict, whichever."""

MOST_OPEN, MOST_SEALED = 0.1, 0.9
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("run", epilog=_EPILOG)
@click.argument("items", type=_FILE, metavar="ITEMS")
@click.option("-o", "--output", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Where all of it goes.")
@click.option("--patterns", type=_FILE, metavar="FILE", help="A set to begin with; what it knows is provisional.")
@click.option("--rubric", metavar="story|text|FILE", help="How to judge.  [default: story for stories, else text]")
@click.option(
    "--field", "fields", multiple=True, type=click.STRING, metavar="NAME=KEY", help="A key that has another name; repeatable."
)
@click.option("--group", metavar="KEY", help="The key of what belongs together.  [default: group]")
@click.option(
    "--heldout",
    type=DecimalRange(MOST_OPEN, MOST_SEALED),
    default=0.4,
    show_default=True,
    metavar="SHARE",
    help="Share of the groups that is held out for the proof.",
)
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True, help="What all chance is made from.")
@click.option("--max-iterations", type=click.IntRange(1, 1000), default=10, show_default=True, help="Iterations at most.")
@click.option(
    "--min-iterations",
    type=click.IntRange(2, 1000),
    default=2,
    show_default=True,
    help="Not converged before so many iterations.",
)
@click.option(
    "--profile",
    type=click.Choice(get_args(Profile)),
    default="evidence",
    show_default=True,
    help="What commits a pattern: evidence about the set, or the first design's counters.",
)
@click.option(
    "--propose",
    "proposer",
    type=click.Choice(get_args(ProposerName)),
    default="terms",
    show_default=True,
    help="Who proposes patterns: statistics of words, or the judge's model.",
)
@click.option(
    "--robust",
    is_flag=True,
    default=False,
    help="Give no points for what makes an item worse or just longer: for a set that a loop optimises against.",
)
@click.option(
    "--plan", is_flag=True, default=False, help="Ask and learn nothing: say what these items could prove, and what that takes."
)
@click.option("--executor", metavar="SPEC", help="Where else texts are read: dask://HOST:PORT.")
@judge_options
@json_option
@quiet_option
def run_command(items: Path, *, as_json: bool, quiet: bool, **options: Any) -> int:
    """Learn a cheap judge, and prove that it tracks.

    Every proposal has to earn its place on items that it was not made from. At the end the best set is held against
    held-out items: it tracks the judge, it fails, or neither is proven.
    """
    from jumar.app.evaluate import open_executor
    from jumar.cli.learn.display import learn_display
    from jumar.cli.learn.status import show_result
    from jumar.learning.run.learn import learn
    from jumar.learning.run.read import read_progress

    only_plan = options.pop("plan")
    spec = options.pop("executor")
    if only_plan and spec is not None:
        raise ConfigError("--plan learns nothing, so there is nothing to hand over; leave --executor out")
    request = _request(items, options, asked=not only_plan)
    if only_plan:
        return _show_plan(request, as_json=as_json)
    switch = StopSwitch()
    display = learn_display(lambda number: read_progress(request.output, number), as_json=as_json, quiet=quiet)
    with open_executor(spec) as executor, warned(), signals_handled(switch, quiet=quiet), display:
        heard: Any = {"listener": display.hear, "hear": display.judged, "planned": display.planned}
        found = learn(request, switch=switch, executor=executor, **heard)
    if as_json:
        print_json(found.document())
    else:
        show_result(found, quiet=quiet)
    return found.exit_code


def _show_plan(request: LearnRequest, *, as_json: bool) -> int:
    from jumar.learning.run.data import plan_of

    with warned():
        plan = plan_of(request)
    if as_json:
        print_json(plan.to_json())
        return 0
    for label, text in plan.lines():
        print_line(label, text)
    return 0


def _request(items: Path, options: dict[str, Any], *, asked: bool) -> LearnRequest:
    """Return what is to be learned; where nobody is to be ``asked``, a judge and a folder may be left out."""
    from jumar.judging.items.records import field_map

    if asked and options["output"] is None:
        raise click.UsageError("Missing option '-o' / '--output': the folder for what is learned; only --plan needs none.")
    if asked and options["judge"] is None:
        raise ConfigError("learning needs a judge to learn from: give --judge openai:MODEL, replay:FILE, …")
    if not MOST_OPEN <= options["heldout"] <= MOST_SEALED:  # a number that is none slips through every range
        raise ConfigError(f"--heldout {options['heldout']}: give a share from {MOST_OPEN} to {MOST_SEALED}")
    if options["no_reasons"] and options["proposer"] == "judge":
        raise ConfigError("--propose judge needs the judge's reasons; leave --no-reasons out")
    if options["min_iterations"] > max(2, options["max_iterations"]):
        raise ConfigError(
            f"--min-iterations {options['min_iterations']} is more than --max-iterations {options['max_iterations']}: "
            "such a run never converges; raise the one or lower the other"
        )
    named = [*options["fields"], *([] if options["group"] is None else [f"group={options['group']}"])]
    given: dict[str, Any] = {
        **options,
        "items": items,
        "output": options["output"] or Path(),
        "judge": judge_config({**options, "judge": options["judge"] or ""}, options["cache"]),
        "fields": field_map(named),
    }
    return LearnRequest(**{field.name: given[field.name] for field in fields(LearnRequest)})
