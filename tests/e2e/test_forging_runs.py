"""What a step leaves for the next command of a run of cases, after it killed jumar: other runs, records that hide records."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from loops import jumar
from pipelines import RUN, before_steps, write_pipeline

from jumar.app.run_cases import cases_request, chain_of
from jumar.cases.accounting import CaseAccounting
from jumar.cases.layout import open_runs
from jumar.cases.run_store import RunReader

SCORES = {1: [(6, 6, 6), (7, 7, 7), (5, 5, 5)]}
PAYS = 'echo "{\\"token_cost_usd\\": 0.1}" > "$JUMAR_USAGE_FILE"'
STEPS = f"{RUN}/case_01/pending/iter_0002/steps"
WITH_PID = """
import os, runpy, sys
open("pid", "w").write(str(os.getpid()))
sys.argv = ["jumar", "cases", "run", *sys.argv[1:]]
runpy.run_module("jumar.cli.entry", run_name="__main__")
"""


def killed(directory: Path, act: str = "", *, budget: str = "", when: str = "2agent", options: tuple[str, ...] = ()) -> None:
    """A run in which a step does ``act`` and kills jumar, once."""
    if not options:
        write_pipeline(directory, SCORES, extra=f"[budget]\nmax_cost_usd = 2\nreserve_cost_usd = 0.1\n{budget}")
    kill = f"{act}\nkill -9 $(cat pid); sleep 5"
    before_steps(directory, f'if [ "$JUMAR_ITERATION$1" = {when} ] && mkdir once; then\n{kill}\nfi 2> /dev/null; {PAYS}')
    run = [sys.executable, "-c", WITH_PID, *options]
    done = subprocess.run(run, cwd=directory, capture_output=True, timeout=30, check=False)
    assert -signal.SIGKILL == done.returncode, done.stderr


def resumed(directory: Path, *options: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(jumar(directory, "cases", "run", "--resume", "--json", *options, timeout=30).stdout)
    return found


def test_an_end_that_a_step_wrote_does_not_hide_that_jumar_was_killed(tmp_path: Path) -> None:
    act = "sed -i 's/max_cost_usd = 2/max_cost_usd = 99/' cases.toml\n"
    killed(tmp_path, f"{act} for start in {STEPS}/*.start.json; do echo '{{}}' > ${{start%.start.json}}.end.json; done")
    done = jumar(tmp_path, "cases", "run", "--resume", timeout=30, check=2)
    assert "max_cost_usd was 2 when run 't' was started and is 99 now" in " ".join(done.stderr.split())


@pytest.mark.parametrize("planted", ["0000-a.start.json", "0001-augment.end.json", "../../iter_0001/steps/0001-a.start.json"])
def test_what_a_step_plants_takes_nothing_off_the_cost(tmp_path: Path, planted: str) -> None:
    killed(tmp_path)

    def spent() -> float:
        settings = chain_of(cases_request(tmp_path / "cases.toml", output_root=None, root=None, resume=True))
        accounting = CaseAccounting.of(RunReader(tmp_path / RUN), settings)
        assert accounting is not None
        return round(accounting.spend().known_cost_usd + accounting.spend().assumed_cost_usd, 9)

    before = spent()
    path = tmp_path / STEPS / planted
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")
    assert 0.5 == before == spent()


def test_a_run_that_was_put_there_is_not_the_one_that_a_resume_goes_on_with(tmp_path: Path) -> None:
    killed(tmp_path)
    other = tmp_path / RUN / "../run_z"
    shutil.copytree(tmp_path / RUN, other)
    document = json.loads((other / "run.json").read_text())
    del document["mark"], document["seal"]
    (other / "run.json").write_text(json.dumps({**document, "run_id": "z", "created_at": "2099-01-01T00:00:00.000Z"}))
    config = tmp_path / "cases.toml"
    config.write_text(config.read_text().replace('run_id = "t"\n', ""))
    assert "t" == resumed(tmp_path)["run_id"]
    done = jumar(tmp_path, "cases", "run", "--resume", timeout=30, check=2)
    assert "or from elsewhere: z; see --run-id" in " ".join(done.stderr.split())


def test_an_end_from_before_a_case_was_opened_again_is_not_taken(tmp_path: Path) -> None:
    write_pipeline(tmp_path, SCORES, extra="[budget]\nmax_cost_usd = 0.4\nreserve_cost_usd = 0.1\n")
    before_steps(tmp_path, PAYS)
    jumar(tmp_path, "cases", "run", timeout=30, check=0)
    case, kept = tmp_path / RUN / "case_01", tmp_path / "kept"
    shutil.copytree(case / "best", kept / "best")
    shutil.copy(case / "case.json", kept)
    act = f"cp -r {kept}/best {case}; cp {kept}/case.json {case}"
    killed(tmp_path, act, when="3agent", options=("--resume", "--max-cost", "9"))
    (found,) = resumed(tmp_path)["cases"]
    assert (2, 3, {"accuracy": 7.0}) == (found["best_iter"], found["iterations"], {"accuracy": found["ranking"]["accuracy"]})
    assert 2 == len(list(case.glob("quarantine/*")))


@pytest.mark.parametrize("closed", ["", "run.json", "inputs", "case_01", "case_01/pending", "case_01/iterations/iter_0001"])
def test_what_a_step_closed_is_opened_again_before_it_is_read(tmp_path: Path, closed: str) -> None:
    killed(tmp_path)
    place = tmp_path / RUN / closed
    place.chmod(0)
    mine = tmp_path / "mine"
    mine.mkdir(mode=0)
    (tmp_path / RUN / "../run_link").symlink_to(tmp_path)
    open_runs(tmp_path / RUN / "..")
    assert place.stat().st_mode & 0o700 == (0o400 if closed == "run.json" else 0o700)
    assert mine.stat().st_mode & 0o777 == 0


def test_a_fifo_in_the_place_of_a_configuration_is_not_waited_for(tmp_path: Path) -> None:
    killed(tmp_path, "rm cases.toml; mkfifo cases.toml")
    done = jumar(tmp_path, "cases", "run", "--resume", timeout=30, check=2)
    assert "cases.toml: cannot be read: it is no regular file" in done.stderr


@pytest.mark.parametrize("key", ["[loop]\nobjective_file", "[generator]\nprompt"])
def test_a_fifo_in_the_place_of_a_text_that_a_loop_reads_is_not_waited_for(tmp_path: Path, key: str) -> None:
    command = '[generator]\ncommand = "true"\n'
    text = f"{command}{key.partition(chr(10))[2]} = 'text.md'\n" if "generator" in key else f"{key} = 'text.md'\n{command}"
    (tmp_path / "jumar.toml").write_text(f"{text}[[checks]]\nname = 'c'\ncommand = 'true'\n")
    os.mkfifo(tmp_path / "text.md")
    assert "it is no regular file" in " ".join(jumar(tmp_path, "run", timeout=30, check=2).stderr.split())


def test_the_rules_that_a_judge_is_run_by_stay_as_they_were(tmp_path: Path) -> None:
    config = write_pipeline(tmp_path, SCORES)
    config.write_text(
        config.read_text().replace("name = \"judge\"\ncommand = '''", "name = \"judge\"\ncommand = '''make judge; ", 1)
    )
    (tmp_path / "Makefile").write_text("judge:\n\t@true\n")
    before_steps(tmp_path, '[ "$JUMAR_ITERATION$1" != 2agent ] || echo "judge:" > Makefile')
    jumar(tmp_path, "cases", "run", timeout=60, check=0)
    records = RunReader(tmp_path / RUN).case(1).iterations()
    assert ["ok", "step_failed", "ok"] == [record.status for record in records]
    assert "Makefile was changed or deleted, and is again what it was" in records[1].reason
