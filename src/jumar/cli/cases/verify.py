"""``jumar cases verify``: is what a run stored what was written?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from jumar.cases.layout import RunPaths, list_runs
from jumar.cases.verify import verify_run
from jumar.cli.cases import complete_run, run_directory
from jumar.cli.common import json_option, print_json, print_text, quiet_option, root_option
from jumar.core.findings import VerifyReport
from jumar.core.rendering.figures import size
from jumar.core.text import escape, plural
from jumar.errors import NotFoundError, StoreDamagedError
from jumar.loop.store.layout import runs_directory

_EPILOG = """\b
Examples:
  jumar cases verify nightly
  jumar cases verify                    all runs
  jumar cases verify --json --quiet

Exit code: 0 when everything is as it was written, 14 when anything is damaged."""


@dataclass(frozen=True, slots=True)
class _Verified:
    run_id: str
    report: VerifyReport

    def to_json(self) -> dict[str, Any]:
        return {"run_id": self.run_id, **self.report.to_json()}


@click.command("verify", epilog=_EPILOG)
@click.argument("run", required=False, shell_complete=complete_run)
@root_option
@json_option
@quiet_option
def verify_command(run: str | None, root: Path, *, as_json: bool, quiet: bool) -> int:
    """Re-hash everything that a run stored, and read every record; without RUN, of all runs.

    Nothing is changed. Each problem says what can be done about it.
    """
    if run is None:
        directories = [RunPaths.of(runs_directory(root), run_id).directory for run_id in list_runs(runs_directory(root))]
    else:
        directories = [run_directory(root, run)]
    if not root.is_dir():
        raise NotFoundError(f"there is no folder {escape(str(root))}, so nothing to verify; name another one with --root")
    results = [_Verified(directory.absolute().name.removeprefix("run_"), verify_run(directory)) for directory in directories]
    damaged = any(result.report.problems for result in results)
    if as_json:
        print_json({"ok": not damaged, "runs": [result.to_json() for result in results]})
    else:
        _print(results, quiet=quiet)
    return StoreDamagedError.exit_code if damaged else 0


def _print(results: list[_Verified], *, quiet: bool) -> None:
    for result in results:
        report = result.report
        for problem in report.problems:
            print_text(f"{escape(result.run_id)}: {escape(problem.path)}: {escape(problem.what)}")
            print_text(f"    {escape(problem.fix)}")
        if quiet:
            continue
        for note in report.notes:
            print_text(f"{escape(result.run_id)}: note: {escape(note)}")
        verdict = plural(len(report.problems), "problem") if report.problems else "ok"
        counts = f"{plural(report.iterations, 'iteration')}, {plural(report.files, 'file')}, {size(report.bytes)} re-hashed"
        print_text(f"{escape(result.run_id)}: {verdict} ({counts})")
