"""``jumar prove``: does the learned set track its judge on the held-out items? And does a proof hold?"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jumar.cli.common import json_option, print_json, print_line, print_text, quiet_option, shown_path, warned
from jumar.cli.judging.judged import given, judge_config, judge_options, judge_progress, recalled
from jumar.core.text import escape, plural
from jumar.errors import StoreDamagedError, UsageError

if TYPE_CHECKING:
    from jumar.judging.proofs import Proof
    from jumar.learning.proof.make import Verification
    from jumar.learning.run.prove import Proving
    from jumar.learning.run.request import ProveRequest

_EPILOG = """\b
Examples:
  jumar prove outputs/
  jumar prove outputs/ --extra-look
  jumar prove --verify outputs/proof.json
  jumar prove --verify proof.json --items items.jsonl --patterns patterns.json

OUT is the folder that `jumar learn` wrote with -o; what it was asked is asked again. Exit code: 0 when a proof was
made, whatever its verdict; with --verify 0 when the proof holds, 14 when it does not."""

_HELD = {True: "yes", False: "no", None: "open"}
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("prove", epilog=_EPILOG)
@click.argument("output", required=False, type=click.Path(path_type=Path, file_okay=False), metavar="[OUT]")
@click.option("--verify", "proof", type=_FILE, metavar="PROOF", help="Compute everything in a proof again, offline.")
@click.option("--extra-look", is_flag=True, help="Evaluate on the held-out items beyond the three planned evaluations.")
@click.option("--items", type=_FILE, metavar="FILE", help="The items.  [default: those that were learned from]")
@click.option("--patterns", type=_FILE, metavar="FILE", help="With --verify: the set that was proven.")
@click.option("--rubric", metavar="story|text|FILE", help="The rubric.  [default: the one that was learned with]")
@click.option(
    "--field", "fields", multiple=True, type=click.STRING, metavar="NAME=KEY", help="A key that has another name; repeatable."
)
@click.option("--group", metavar="KEY", help="The key of what belongs together.  [default: the one that was learned with]")
@judge_options
@json_option
@quiet_option
def prove_command(output: Path | None, proof: Path | None, *, as_json: bool, quiet: bool, **options: Any) -> int:
    """Judge the held-out items, and say whether the learned set tracks the judge: one of three planned evaluations.

    An evaluation is counted before it is made; the same set again is the same one. The proof goes to OUT/proof.json.
    """
    from jumar.judging.items.records import field_map

    group = options.pop("group")
    fields = field_map([*options["fields"], *([] if group is None else [f"group={group}"])])
    if proof is not None:
        if output is not None or options["extra_look"] or options["judge"] is not None:
            raise UsageError("--verify asks no judge and evaluates nothing: give it with --items and --patterns alone")
        return _verify(proof, fields, options, as_json=as_json, quiet=quiet)
    if output is None:
        raise UsageError("name the folder that `jumar learn` wrote, or a proof with --verify")
    if options["patterns"] is not None:
        raise UsageError("what is proven is OUT/patterns.json; --patterns goes with --verify")
    from jumar.learning.run.prove import prove

    request = _request(output, fields, options)
    with warned(), judge_progress(shown=not (as_json or quiet)) as hear:
        found = prove(request, datetime.now(UTC), hear)
    if as_json:
        print_json(_document(found))
    else:
        _print(found, quiet=quiet)
    return 0


def _request(output: Path, fields: Mapping[str, str], options: Mapping[str, Any]) -> ProveRequest:
    """Return what was asked when the set was learned, with what is given now before it."""
    from jumar.learning.run.request import ProveRequest, recall

    if not output.is_dir():
        raise UsageError(f"there is no folder {escape(str(output))}; name the one that `jumar learn` wrote with -o")
    known = recall(output)
    asked = recalled(known, options)
    items = options["items"] or known.get("items")
    if items is None or asked["judge"] is None:
        name = "--items FILE" if items is None else "--judge SPEC"
        raise UsageError(f"{escape(str(output))} does not say what it was learned from; give {name}")
    cache: str | Path | None = options["cache"] if given("cache") or not known else known.get("cache")
    return ProveRequest(
        output=output,
        items=Path(items),
        judge=judge_config(asked, cache),
        fields=fields or known.get("fields", {}),
        rubric=asked["rubric"],
        extra_look=options["extra_look"],
    )


def _document(found: Proving) -> dict[str, Any]:
    proof = found.proof
    figures = proof.statistics
    return {
        "verdict": proof.verdict,
        "tracks": proof.verdict == "tracks",
        "heldout": found.heldout,
        "checks": figures["checks"],
        "gap": figures["gap"],
        "judge_noise": figures["judge_noise"],
        "looks": proof.looks.model_dump(),
        "items": proof.items.model_dump(),
        "judge_calls": found.calls,
        "cost_usd": found.cost_usd,
        "proof": str(found.path.absolute()),
    }


def _print(found: Proving, *, quiet: bool) -> None:
    proof = found.proof
    print_line("verdict", proof.verdict.replace("_", " "))
    if quiet:
        return
    figures = proof.statistics
    beyond = ", beyond the plan" if proof.looks.extra else f" of {proof.looks.planned} planned"
    held = f"{plural(figures['items'], 'item')} in {plural(figures['groups'], 'group')}"
    print_line("held-out", f"{held}, evaluation {proof.looks.number}{beyond}")
    constant, length = _figure(figures, "constant_mae"), _figure(figures, "length_mae")
    print_line("MAE", f"{_figure(figures, 'mae')}; baselines: constant {constant}, length only {length}")
    print_line("ranks", f"Spearman {_figure(figures, 'spearman')}; baseline: length only {_figure(figures, 'length_spearman')}")
    for name, one in figures["checks"].items():
        value = "—" if one["value"] is None else f"{one['value']:+.3f}{_between(one['interval'])}"
        print_line(_HELD[one["held"]], f"{one['says']}: {value} ({name})")
    gap = figures["gap"]
    print_line(_HELD[gap["held"]], f"{gap['says']}: {_figure(figures, 'mae')} (apart from the verdict)")
    noise = figures["judge_noise"]
    if noise is not None:
        print_line("noise", f"two readings of the judge differ by {noise['mean_abs_difference']:.2f} on average")
    print_line("wrote", shown_path(found.path))


def _figure(figures: Mapping[str, Any], name: str) -> str:
    value = figures["figures"][name]
    return "—" if value is None else f"{value:.3f}{_between(figures['intervals'][name])}"


def _between(interval: list[float] | None) -> str:
    return "" if interval is None else f" [{interval[0]:.3f}, {interval[1]:.3f}]"


def _verify(path: Path, fields: Mapping[str, str], options: Mapping[str, Any], *, as_json: bool, quiet: bool) -> int:
    from jumar.judging.proofs import stale_reasons
    from jumar.learning.run.prove import verify_file
    from jumar.learning.run.request import recall

    beside: Mapping[str, str] = {} if fields else recall(path.parent).get("fields", {})  # a proof that lies where it was learned
    proof, found = verify_file(
        path, items=options["items"], patterns=options["patterns"], rubric=options["rubric"], fields=fields or beside
    )
    stale = stale_reasons(proof, datetime.now(UTC))
    if as_json:
        print_json({"proof": str(path.absolute()), "verdict": proof.verdict, **found.to_json(), "stale": stale})
    else:
        _print_verified(path, proof, found, stale, options, quiet=quiet)
    return 0 if found.holds else StoreDamagedError.exit_code


def _print_verified(
    path: Path, proof: Proof, found: Verification, stale: list[str], options: Mapping[str, Any], *, quiet: bool
) -> None:
    for problem in found.problems:
        print_text(f"{shown_path(path)}: {problem}")
    if quiet:
        return
    for name in found.checked:
        print_line("differs" if name in found.differing else "checked", name)
    for name in found.not_checked:
        print_line("unchecked", name)
    missing = [option for option in ("--items FILE", "--patterns FILE") if options[option.split()[0].removeprefix("--")] is None]
    if found.not_checked and missing:
        print_line("", f"{' and '.join(missing)} let them be compared as well")
    for reason in stale:
        print_line("stale", reason)
    if found.holds:
        held = f"verdict {proof.verdict.replace('_', ' ')}, evaluation {proof.looks.number} of {proof.looks.planned}"
        print_line("holds", held)
    else:
        print_line(
            "fails",
            f"it does not hold: {plural(len(found.problems), 'difference')} between the proof and what follows from its rows, "
            "or from the files that were given. A proof is never mended: of the set that is in OUT now `jumar prove OUT` makes "
            "another, which is another evaluation",
        )
