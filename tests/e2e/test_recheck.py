"""What is verified is what ships: at the end the checks run once more on the selected snapshot alone. Real loops, real kills."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import call, call_json
from loops import jumar

from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.verify import verify

CONFIG = """
[loop]
id = "t"
max_iterations = {count}
{loop}

[generator]
command = "sh {here}/agent.sh"

[[checks]]
name = "works"
command = "sh check.sh"

[[scorers]]
dimension = "quality"
command = "cat score"
"""
CHECK = """
echo "$JUMAR_ITERATION $JUMAR_PROMPT_FILE" >> {log}
test -e wrong && exit 1
test -e build/ok || test "$(cat packages/dep 2>&1)" = evil || grep -q right app
"""
BUILD = "mkdir -p build; touch build/ok; echo 0.9 > score"
WORSE = "echo 0.4 > score"
FIXED = "echo right > app; echo 0.8 > score"


@pytest.fixture
def place(fresh_place: Path) -> Path:
    files = {".gitignore": "build/\npackages/\ncache/\nlocal\n", "app": "", "score": "0.1", "packages/dep": "good"}
    for name, text in files.items():
        (fresh_place / name).parent.mkdir(exist_ok=True)
        (fresh_place / name).write_text(text)
    (fresh_place / "check.sh").write_text(CHECK.format(log=fresh_place.parent / "checked.log"))
    return fresh_place


def prepare(place: Path, *steps: str, loop: str = "", more: str = "") -> None:
    """Write a loop whose agent does one of ``steps`` in each iteration."""
    lines = [f"if test $JUMAR_ITERATION = {number}; then {step}; fi" for number, step in enumerate(steps, start=1)]
    (place.parent / "agent.sh").write_text("\n".join(lines))
    (place / "jumar.toml").write_text(CONFIG.format(count=len(steps), loop=loop, here=place.parent) + more)


def run(place: Path, *steps: str, loop: str = "", more: str = "", check: int = 0) -> Any:
    prepare(place, *steps, loop=loop, more=more)
    return call_json("run", check=check)


def checked(place: Path) -> int:
    """How often the check ran."""
    return len((place.parent / "checked.log").read_text().splitlines())


def answer(document: Any) -> tuple[Any, ...]:
    return document["selected_iteration"], document["verified"], document["rechecked"]


def test_what_passes_only_with_what_no_snapshot_holds_is_told(place: Path) -> None:
    found = run(place, BUILD, WORSE)

    assert answer(found) == (1, True, False)
    because = "check 'works' fails without build/, which is in no snapshot and new or changed since the start"
    assert found["rechecked_because"] == because
    assert (place / "build/ok").exists(), "what was set aside came back"
    assert answer(call_json("run", check=2)) == (1, True, False), "it stands in the records"
    shown = call("show", check=0).words
    assert "at iteration 1 (all checks passed, but not once more)" in shown
    assert f"Checked once more, the snapshot alone: {because}." in shown
    report = call_json("report", "t", "--format", "json")
    assert (report["rechecked"], report["rechecked_because"]) == (False, because)
    assert because.replace("'", "&#39;") in call("report", "t", "--format", "html").out
    assert call("verify", "t").code == 0


@pytest.mark.parametrize("hidden", ["mkdir cache", "mkdir -p cache/a/b", "mkfifo cache", "mkdir cache; mkfifo cache/pipe"])
def test_what_no_snapshot_can_hold_does_not_ship_either(place: Path, hidden: str) -> None:
    (place / "check.sh").write_text("test -e cache || grep -q right app\n")
    found = run(place, f"{hidden}; echo 0.9 > score")
    assert answer(found) == (1, True, False)
    assert "fails without cache" in found["rechecked_because"]
    assert (place / "cache").exists()


@pytest.mark.parametrize("there", ["mkdir cache", "mkfifo cache"])
def test_what_no_snapshot_can_hold_stays_where_it_was_there_at_the_start(place: Path, there: str) -> None:
    os.system(there)
    (place / "check.sh").write_text("test -e cache && grep -q right app\n")
    found = run(place, FIXED, WORSE)
    assert answer(found) == (1, True, True)


@pytest.mark.parametrize(
    "planted",
    [
        *(
            "ln -s {here} logs",
            "touch logs",
            "mkdir -p plan.json/x",
            "ln -s {here} aside",
            "touch aside",
            "mkdir -p aside/build/x",
        ),
        *("mkfifo begun.json", "mkdir begun.json"),
    ],
)
def test_what_an_agent_lays_in_the_way_of_a_recheck_does_not_keep_it_from_its_answer(place: Path, planted: str) -> None:
    (place.parent / "persons").mkdir()
    there = planted.format(here=place.parent / "persons")
    found = run(place, f"{BUILD}; (cd .jumar/loops/t/recheck && {there})")
    assert found["rechecked"] is False, found["rechecked_because"]
    assert [] == list((place.parent / "persons").iterdir())
    assert (place / "build/ok").exists()


def test_strict_takes_verified_away_and_the_next_best_is_tried(place: Path) -> None:
    found = run(place, BUILD, f"rm -r build; {FIXED}", WORSE, loop='recheck = "strict"')

    assert answer(found) == (2, True, True)
    assert found["rechecked_because"] == "all checks pass"
    assert (place / "score").read_text() == "0.8\n"
    assert "Iteration 1 is next, 10 points higher, but does not pass all checks" in call("show", check=0).words


def test_strict_tries_three_at_most(place: Path) -> None:
    steps = [f"mkdir -p build; touch build/ok; echo 0.{9 - number} > score" for number in range(5)]

    found = run(place, *steps, loop='recheck = "strict"')

    assert answer(found) == (4, True, None)
    kinds = [json.loads(path.read_text())["kind"] for path in (place / ".jumar/loops/t/decisions").iterdir()]
    assert kinds.count("recheck") == 3


def test_strict_leaves_nothing_verified_where_nothing_passes(place: Path) -> None:
    found = run(place, BUILD, loop='recheck = "strict"', check=10)

    assert answer(found) == (1, False, False)
    assert found["fallback"] == "verification"


def test_what_was_there_and_changed_cannot_be_put_back_and_the_way_out_is_named(place: Path) -> None:
    os.rename("packages", "node_modules")
    (place / "check.sh").write_text((place / "check.sh").read_text().replace("packages/", "node_modules/"))

    found = run(place, "echo evil > node_modules/dep; echo 0.9 > score", WORSE)

    assert answer(found) == (1, True, None)
    said = "check 'works' fails without node_modules/; node_modules/ is not as at the start, and no snapshot holds it: "
    assert found["rechecked_because"] == said + '[loop] setup = "npm ci" makes it anew'
    assert (place / "node_modules/dep").read_text() == "evil\n"
    assert "Not known whether the snapshot alone passes: check 'works' fails" in call("show", check=0).words


@pytest.mark.parametrize(("step", "expected"), [(BUILD, False), (f"{FIXED}; touch local", True)])
def test_setup_makes_anew_what_changed(place: Path, step: str, expected: bool) -> None:
    setup = "rm -rf packages; mkdir packages; echo made > packages/dep; echo x >> ../set-up.log"

    found = run(place, f"echo worse > packages/dep; {step}", WORSE, loop=f'setup = "{setup}"')

    assert answer(found) == (1, True, expected)
    assert f"without {'build/' if 'build' in step else 'local'}, packages/, which are in no" in found["rechecked_because"]
    assert (place / "packages/dep").read_text() == "worse\n", "that of the loop came back"
    assert (place.parent / "set-up.log").read_text() == "x\nx\n"


def test_what_setup_does_not_make_is_still_missing(place: Path) -> None:
    (place / "local").write_text("mine")
    (place / "check.sh").write_text((place / "check.sh").read_text() + "test -e local || exit 1\n")

    found = run(place, f"{FIXED}; echo other > local", WORSE, loop='setup = "true"')

    assert answer(found) == (1, True, None)
    said = "local is not as at the start, and no snapshot holds it: name the command that makes it in [loop] setup"
    assert found["rechecked_because"] == f"check 'works' fails without local; {said}"


def test_a_loop_that_becomes_strict_asks_again(place: Path) -> None:
    assert answer(run(place, BUILD, f"rm -r build; {FIXED}")) == (1, True, False)
    prepare(place, BUILD, f"rm -r build; {FIXED}", WORSE, loop='recheck = "strict"')

    assert answer(call_json("run")) == (2, True, True)


def test_what_changed_and_does_not_matter_is_no_question(place: Path) -> None:
    found = run(place, f"echo other > packages/dep; {FIXED}", WORSE)

    assert answer(found) == (1, True, True)
    assert "all checks pass without packages/" in found["rechecked_because"]


def test_nothing_runs_again_where_the_answer_is_known(place: Path) -> None:
    found = run(place, WORSE, FIXED)

    assert answer(found) == (2, True, True)
    assert "nothing ran after its checks" in found["rechecked_because"]
    assert checked(place) == 3
    assert "once more" not in call("show", check=0).words


def test_what_the_candidate_removes_while_the_checks_run_was_not_there_for_the_recheck(place: Path) -> None:
    found = run(place, WORSE, BUILD, more="[[checks]]\nname = 'removes'\ncommand = 'rm -rf build'\n")
    assert answer(found) == (2, True, False)
    assert "check 'works' fails" in found["rechecked_because"]


@pytest.mark.parametrize("kill", ["true", "kill -9 $PPID"], ids=["running", "killed"])
def test_through_a_link_in_the_place_of_the_copy_nothing_of_a_persons_is_touched(place: Path, kill: str) -> None:
    mine, swaps = place.parent / "mine", place.parent / "swaps.sh"
    files = {"build/ok": "mine", "build/thesis": "mine", "pytest.ini": "mine", "app": "mine"}
    for name, text in files.items():
        (mine / name).parent.mkdir(parents=True, exist_ok=True)
        (mine / name).write_text(text)
    swaps.write_text(f"test -e build/ok -o $JUMAR_ITERATION = 0 || {{ cd ..; mv t ../../moved; ln -s {mine} t; {kill}; }}")
    command = json.dumps(["sh", str(swaps)])
    prepare(place, BUILD, WORSE, loop="isolation = 'copy'\nprotect = ['app']")
    config = place / "jumar.toml"
    config.write_text(f"{config.read_text()}\n[[checks]]\nname = 'swaps'\ncommand = {command}\n")
    (place / "packages/dep").write_text("evil")
    jumar(place, "run", check=-9 if "kill" in kill else 0)
    jumar(place, "status", check=0)
    jumar(place, "run", "-n", "3", check=None)
    assert {str(path.relative_to(mine)): path.read_text() for path in mine.rglob("*") if path.is_file()} == files


@pytest.mark.parametrize(
    ("loop", "steps", "because"),
    [
        ('recheck = "off"', (BUILD, WORSE), '[loop] recheck = "off"'),
        ("", ("touch wrong; echo 0.9 > score", "echo 0.95 > score"), "no iteration passed all checks"),
    ],
)
def test_nothing_is_rechecked_where_nothing_is_to_be(place: Path, loop: str, steps: tuple[str, ...], because: str) -> None:
    found = run(place, *steps, loop=loop, check=0 if "off" in loop else 10)

    assert (found["rechecked"], found["rechecked_because"]) == (None, because)
    assert checked(place) == 3


def test_checks_that_saw_other_files_than_the_snapshots_are_run_again(place: Path) -> None:
    once = place.parent / "once"
    swap = f"if test $JUMAR_ITERATION = 1 -a ! -e {once}; then touch {once}; echo right > app; fi"
    found = run(place, WORSE, loop=f"[[checks]]\nname = 'swaps'\ncommand = '{swap}'\n")
    assert (1, False) == (found["selected_iteration"], found["rechecked"])
    assert "check 'works' fails" in found["rechecked_because"]


def test_a_loop_without_checks_has_no_recheck(place: Path) -> None:
    prepare(place, WORSE, FIXED)
    config = place / "jumar.toml"
    config.write_text(config.read_text().replace('[[checks]]\nname = "works"\ncommand = "sh check.sh"\n', ""))

    found = call_json("run")

    assert (found["verified"], found["rechecked"], found["rechecked_because"]) == (None, None, "there are no checks")


def test_what_the_starts_own_checks_changed_is_never_touched(place: Path) -> None:
    (place / "cache").mkdir()
    (place / "cache/old").write_text("0")
    with (place / "check.sh").open("a") as script:  # its last line decides
        script.write("code=$?\nmkdir -p made; echo x >> cache/old; echo x >> made/new; exit $code\n")
    (place / ".gitignore").write_text((place / ".gitignore").read_text() + "made/\n")
    kept = "test -s made/new && test -s cache/old || touch wrong"
    (place / "check.sh").write_text(
        (place / "check.sh")
        .read_text()
        .replace("test -e wrong", f"case $JUMAR_PROMPT_FILE in */recheck/*) {kept};; esac\ntest -e wrong")
    )

    found = run(place, f"{FIXED}; echo y >> made/new; touch cache/more", WORSE)

    assert answer(found) == (1, True, True)
    assert "without cache/more," in found["rechecked_because"]


def test_repositories_and_the_store_stay(place: Path) -> None:
    inside = "mkdir -p build/clone/.git; touch build/clone/.git/HEAD build/clone/file"
    (place / "check.sh").write_text(
        (place / "check.sh").read_text()
        + "case $JUMAR_PROMPT_FILE in */recheck/*) ls -A build/clone > ../seen; ls .jumar >> ../seen;; esac\ngrep -q right app\n"
    )

    found = run(place, f"{inside}; {FIXED}", WORSE)

    assert answer(found) == (1, True, True)
    assert (place.parent / "seen").read_text() == ".git\nlocks\nloops\n"
    assert (place / "build/clone/file").exists()


@pytest.mark.parametrize(
    "loop", ['isolation = "copy"', 'isolation = "worktree"', "candidates = 2", 'isolation = "copy"\ncandidates = 2']
)
def test_wherever_the_loop_works(place: Path, loop: str) -> None:
    if "worktree" in loop:
        git = "git -c user.name=a -c user.email=a@b"
        os.system(f"git init -q && git add -A && {git} commit -qm start")
    single = "candidates" not in loop

    found = run(place, BUILD, WORSE if single else BUILD, WORSE, WORSE, loop=loop)

    assert answer(found) == (1, True, False)
    assert not (place / "build").exists()


def test_jumars_own_files_are_not_held_against_it(place: Path) -> None:
    prepare(place, FIXED, loop="max_iterations = 1".replace("max_iterations = 1", ""))
    with (place / "run.log").open("w") as log:
        log.write("before\n")
        log.flush()
        code = os.spawnv(os.P_WAIT, "/bin/sh", ["sh", "-c", f"{sys.executable} -m jumar.cli.entry run > run.log"])

    assert code == 0
    assert "nothing ran after its checks" in call_json("run", check=2)["rechecked_because"]


KILLED = {
    "while the checks run": ("check.sh", ""),
    "while setup runs": ("setup.sh", 'setup = "sh setup.sh"'),
}


@pytest.mark.parametrize("command", ["status", "show", "run", "apply", "rm"])
@pytest.mark.parametrize("when", KILLED)
def test_what_was_set_aside_comes_back_after_a_kill(place: Path, when: str, command: str) -> None:
    script, loop = KILLED[when]
    kill = "ls build packages > ../missing 2>&1; mkdir -p build; echo made > build/ok; "
    kill += "kill -9 $(cut -d' ' -f4 /proc/$PPID/stat); sleep 9"
    if script == "setup.sh":
        (place / script).write_text(
            f"test -e ../set-up || {{ touch ../set-up; exit; }}\ntest -e ../killed || {{ touch ../killed; {kill}; }}\n"
        )
    else:
        path = place / script
        path.write_text(
            f"case $JUMAR_PROMPT_FILE in */recheck/*) test -e ../killed || {{ touch ../killed; {kill}; }};; esac\n"
            + path.read_text()
        )
    prepare(place, f"{BUILD}; echo evil > packages/dep; touch packages/new", WORSE, loop=loop)

    jumar(place, "run", check=-9)

    assert "build" in (place.parent / "missing").read_text()
    assert not (place / "packages/dep").exists()
    told = call(command, *(["t", "-y"] if command == "rm" else []))
    assert "was interrupted: 2 of the files and directories that it had set aside came back" in told.err + told.out
    assert (place / "packages/dep").read_text() == "evil\n"
    assert (place / "build/ok").read_text() == ""
    if command != "rm":
        kept = list((place / ".jumar/loops/t/set-aside").glob("recheck-*/build/ok"))
        assert [path.read_text() for path in kept] == ["made\n"]
        assert not (place / ".jumar/loops/t/recheck/aside").exists()
        assert "came back" not in call("status").err
        call("verify", check=0)


def test_a_finished_recheck_is_not_made_again_and_one_that_is_not_known_is(place: Path) -> None:
    run(place, f"{FIXED}; echo 0.9 > score", WORSE)
    before = checked(place)
    assert call_json("run", "-n", "3")["rechecked"] is True
    assert checked(place) == before + 1, "the check of iteration 3 alone"


def test_without_what_was_seen_at_the_start_nothing_is_known(place: Path) -> None:
    prepare(place, FIXED, "rm .jumar/loops/t/recheck/start-main.json; kill -9 $(cut -d' ' -f4 /proc/$PPID/stat)", WORSE)
    jumar(place, "run", check=-9)
    (place.parent / "agent.sh").write_text(WORSE)

    found = call_json("run")

    assert answer(found) == (1, True, None)
    assert found["rechecked_because"] == "what lay beside its files at the start is not known any more"


def test_what_an_agent_writes_about_the_start_is_not_believed(place: Path) -> None:
    edit = 'sed -i \'s/"touched": *\\[/"touched":["build\\/",/\' .jumar/loops/t/recheck/start-main.json'

    assert answer(run(place, f"{BUILD}; {edit}", WORSE)) == (1, True, False)


def test_a_check_that_cannot_run_again_says_nothing(place: Path) -> None:
    with (place / "check.sh").open("a") as script:
        script.write("code=$?\ncase $JUMAR_PROMPT_FILE in */recheck/*) exit 127;; esac\nexit $code\n")

    found = run(place, FIXED, WORSE)

    assert answer(found) == (1, True, None)
    assert found["rechecked_because"].startswith("they could not be run once more: check 'works': ")


def test_one_that_is_stopped_in_the_middle_is_made_by_the_next_run(place: Path) -> None:
    path = place / "check.sh"
    jumar_pid = "$(cut -d' ' -f4 /proc/$PPID/stat)"
    stop = f"kill -INT {jumar_pid}; sleep 0.5; kill -INT {jumar_pid}; sleep 60"
    first = f"case $JUMAR_PROMPT_FILE in */recheck/*) test -e ../stopped || {{ touch ../stopped; {stop}; }};; esac\n"
    path.write_text(first + path.read_text())
    prepare(place, BUILD, WORSE)

    jumar(place, "run", check=130)

    assert (place / "build/ok").exists()
    assert not (place / ".jumar/loops/t/recheck/plan.json").exists()
    assert answer(call_json("run")) == (1, True, False)


THIRD = """
if test $(wc -l < {log}) = 3; then
    sleep 0.7
    {does}
fi
"""


def third_time(place: Path, does: str) -> None:
    """Let the check do something when it runs for the third time: after the start and the only iteration."""
    path = place / "check.sh"
    first, rest = path.read_text().lstrip().split("\n", 1)
    path.write_text(f"{first}\n{THIRD.format(log=place.parent / 'checked.log', does=does)}{rest}")


def test_what_a_recheck_takes_is_counted(place: Path) -> None:
    third_time(place, "true")
    found = run(place, f"{FIXED}; touch build-of-mine", more="[artifacts]\nexclude = ['build-of-mine']\n")
    assert (3, True) == (checked(place), found["rechecked"])
    taken = [one.data["seconds"] for one in LoopStore.open(place / ".jumar/loops/t").decisions() if one.kind == "recheck"]
    assert [True] == [0.7 <= one < 10 for one in taken]
    assert found["spend"]["seconds"] >= 0.7
    assert call_json("show")["spend"]["seconds"] == pytest.approx(found["spend"]["seconds"])


@pytest.mark.parametrize(
    "does",
    [
        "mkdir .jumar/loops/t/iterations/iteration-077; echo '{{}}' > .jumar/loops/t/iterations/iteration-077/metrics.json",
        "echo '{{}}' > .jumar/loops/t/iterations/iteration-000/metrics.json",
        "echo '{{}}' > .jumar/loops/t/decisions/0001-override.json",
    ],
)
def test_what_the_candidate_writes_into_the_store_in_a_recheck_is_held_against_it(place: Path, does: str) -> None:
    third_time(place, does.format())
    found = run(place, f"{FIXED}; touch build-of-mine", more="[artifacts]\nexclude = ['build-of-mine']\n")
    assert (3, False) == (checked(place), found["rechecked"])
    assert "the store was written by somebody else" in found["rechecked_because"]
    store = LoopStore.open(place / ".jumar/loops/t")
    assert (0, 1) == tuple(store.iteration_numbers())
    assert verify(store).problems == ()
    assert all(one.kind != "override" for one in store.decisions())


KILLING = "touch ../killing; kill -9 $(cut -d' ' -f4 /proc/$PPID/stat); sleep 9"
HELD_OUT = "[holdout]\n[[holdout.scorers]]\ndimension = 'held'\ncommand = 'sh held.sh'\n"


@pytest.mark.parametrize("where", ["recheck", "holdout"])
def test_what_kills_jumar_at_the_end_again_and_again_is_given_up(place: Path, where: str) -> None:
    path = place / "check.sh"
    kill = f"case $JUMAR_PROMPT_FILE in */recheck/*) {KILLING};; esac\n" if where == "recheck" else ""
    path.write_text(kill + path.read_text())
    (place / "held.sh").write_text(f"if test $JUMAR_ITERATION = 1; then {KILLING}; fi; echo 0.5")
    loop = 'recheck = "off"' if where == "holdout" else ""
    prepare(place, f"{BUILD}; {FIXED}", loop=loop, more="" if where == "recheck" else HELD_OUT)
    for _ in range(5):
        (place.parent / "killing").unlink(missing_ok=True)
        jumar(place, "run", check=-9)
        assert (place.parent / "killing").exists()
    said = "its checks ran once more" if where == "recheck" else "it was read"
    assert f"jumar was killed 5 times while {said}" in " ".join(jumar(place, "run", check=0).stdout.split())
    jumar(place, "verify", "t", check=0)
