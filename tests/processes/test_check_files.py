"""Which files a check consists of, read from its command."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from jumar.errors import ConfigError
from jumar.processes.check_files import CheckSource, check_files, installed_modules
from jumar.processes.command_words import programs, runs_tests

PROGRAMS = [
    ("python check.py draft.md", ["python", "check.py"]),
    (["python3.11", "-B", "-W", "error", "check.py", "x"], ["python3.11", "check.py"]),
    ("python -m checks.length draft.md", ["python", "-m checks.length"]),
    ("python -c 'import check'", ["python"]),
    ("./check.sh draft.md && bash other.sh", ["./check.sh", "bash", "other.sh"]),
    ("A=1 env B=2 timeout 60s ./check.sh", ["./check.sh"]),
    ("uv run --frozen python check.py", ["python", "check.py"]),
    ("if test -e out.txt; then sh deep.sh; fi", ["test", "sh", "deep.sh"]),
    ("cat draft.md | ./count.py; ! grep -q TODO draft.md", ["cat", "./count.py", "grep"]),
    ("sh -c 'sh inner.sh draft.md'", ["sh", "sh", "inner.sh"]),
    ("bash -o pipefail strict.sh", ["bash", "strict.sh"]),
    ("node -r ./hook.js run.js", ["node", "./hook.js", "run.js"]),
    ("perl -e 'print 1' x.pl", ["perl"]),
    (". ./env.sh", [".", "./env.sh"]),
    ("(cd sub; ./a.sh)", ["cd", "sub/./a.sh"]),
    ("(cd ./sub && sh a.sh); sh b.sh", ["cd", "sh", "sub/a.sh", "sh", "b.sh"]),
    ("cd a && cd b && python3 -m tool.run", ["cd", "cd", "python3", "-m a/b/tool.run"]),
    ("if cd 'my dir'; then sh a.sh; fi", ["cd", "sh", "my dir/a.sh"]),
    ("bash -c 'cd sub && sh a.sh'", ["bash", "cd", "sh", "sub/a.sh"]),
    ('cd sub; sh "$(pwd)/a.sh" && sh ${PWD}/b.sh', ["cd", "pwd", "sh", "sub/a.sh", "sh", "sub/b.sh"]),
    ("bash -euo pipefail check.sh", ["bash", "check.sh"]),
    ("sh -e check.sh", ["sh", "check.sh"]),
    ("bash -lc 'sh check.sh'", ["bash", "sh", "check.sh"]),
    ("bash -eo pipefail -c 'sh check.sh'", ["bash", "sh", "check.sh"]),
    ("python3 -Im checks.length", ["python3", "-m checks.length"]),
    ("perl -I lib x.pl", ["perl", "x.pl"]),
    ("npx --yes tsx check.ts", ["tsx", "check.ts"]),
    ("coverage run check.py", ["check.py"]),
    ("xvfb-run sh a.sh", ["sh", "a.sh"]),
    ("env -u A sh a.sh", ["sh", "a.sh"]),
    ("uv run --with x check.py", ["check.py"]),
    ('test "$(python3 check.py)" = ok', ["python3", "check.py", "test"]),
    ("test `python3 check.py` = ok", ["python3", "check.py", "test"]),
    ("(cd sub; A=$(sh a.sh) sh b.sh); sh c.sh", ["cd", "sh", "sub/a.sh", "sh", "sub/b.sh", "sh", "c.sh"]),
    ("diff <(sh a.sh) b.txt", ["sh", "a.sh", "diff"]),
    ("cd sub && sh $JUMAR_PROJECT_DIR/a.sh", ["cd", "sh", "a.sh"]),
    ("cd $JUMAR_PROJECT_DIR && sh a.sh", ["cd", "sh", "a.sh"]),
    ("env -C sub A=1 sh a.sh", ["sh", "sub/a.sh"]),
    ("cd - && sh a.sh", ["cd", "sh", "a.sh"]),
    ("cd /elsewhere && sh a.sh", ["cd", "sh", "/elsewhere/a.sh"]),
    ("sh проверка+1.sh", ["sh", "проверка+1.sh"]),
    ("echo 'open", []),
    ("grep -q done draft.md", ["grep"]),
]


@pytest.mark.parametrize(("command", "expected"), PROGRAMS)
def test_the_programs_of_a_command(command: str | list[str], expected: list[str]) -> None:
    assert list(programs(command)) == expected


RUNNERS = [
    ("pytest -q", "pytest"),
    ("python3 -m pytest -q tests", "pytest"),
    ("uv run pytest", "pytest"),
    ("npm test", "npm"),
    ("npm run build", None),
    ("go test ./...", "go"),
    ("make check", "make"),
    ("make", None),
    ("ruff check .", None),
    ("./check.sh", None),
]


@pytest.mark.parametrize(("command", "expected"), RUNNERS)
def test_the_test_runner_of_a_command(command: str, expected: str | None) -> None:
    assert runs_tests(command) == expected


def found(tmp_path: Path, *sources: CheckSource, named: tuple[str, ...] = ()) -> dict[str, str]:
    files = check_files(sources, workdir=tmp_path, base=tmp_path, is_candidate=named.__contains__)
    return {file.path: file.used_by for file in files}


def write(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)


def test_a_check_is_its_script_and_not_what_it_looks_at(tmp_path: Path) -> None:
    write(tmp_path, "check.py", "draft.md")

    assert found(tmp_path, CheckSource(label="A", command="python check.py draft.md")) == {"check.py": "A"}


def test_a_script_that_is_not_there_yet_is_no_file_of_the_check(tmp_path: Path) -> None:
    assert found(tmp_path, CheckSource(label="A", command="python main.py")) == {}


def test_a_module_comes_with_the_packages_around_it(tmp_path: Path) -> None:
    write(tmp_path, "checks/__init__.py", "checks/deep/__init__.py", "checks/deep/length.py", "checks/other.py")
    expected = {"checks/__init__.py": "A", "checks/deep/__init__.py": "A", "checks/deep/length.py": "A"}

    assert found(tmp_path, CheckSource(label="A", reference="checks.deep.length:score")) == expected
    assert found(tmp_path, CheckSource(label="A", command=("python", "-m", "checks.deep.length"))) == expected


def test_files_replace_what_is_found_and_an_empty_list_is_nothing(tmp_path: Path) -> None:
    write(tmp_path, "check.py", "rules/a.toml", "rules/b.toml")

    assert set(found(tmp_path, CheckSource(label="A", command="python check.py", files=("rules/*.toml",)))) == {
        "rules/a.toml",
        "rules/b.toml",
    }
    assert found(tmp_path, CheckSource(label="A", command="python check.py", files=())) == {}


def test_what_a_person_names_as_the_work_is_no_check(tmp_path: Path) -> None:
    write(tmp_path, "main.py")

    assert found(tmp_path, CheckSource(label="A", command="python main.py"), named=("main.py",)) == {}
    assert set(found(tmp_path, CheckSource(label="A", files=("main.py",)), named=("main.py",))) == {"main.py"}


def test_files_that_name_nothing_are_refused_with_the_table_and_the_pattern(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"check 'v': files names 'nothing\*\.py', and there is no such file in "):
        found(tmp_path, CheckSource(label="check 'v'", files=("nothing*.py",)))


def test_a_script_elsewhere_is_known_by_its_absolute_path_and_programs_of_the_system_are_not(tmp_path: Path) -> None:
    work, elsewhere = tmp_path / "work", tmp_path / "elsewhere"
    write(work, "draft.md")
    write(elsewhere, "check.sh")
    files = check_files(
        [CheckSource(label="A", command=f"sh {elsewhere}/check.sh draft.md; grep x draft.md")],
        workdir=work,
        base=work,
        is_candidate=lambda _: False,
    )

    assert [(file.path, file.in_tree) for file in files] == [(f"{elsewhere}/check.sh", False)]


def test_a_link_and_what_it_leads_to_are_both_the_check(tmp_path: Path) -> None:
    write(tmp_path, "scripts/real.sh")
    (tmp_path / "check.sh").symlink_to("scripts/real.sh")

    assert set(found(tmp_path, CheckSource(label="A", command="./check.sh"))) == {"check.sh", "scripts/real.sh"}


def test_modules_that_are_installed_beside_the_programs_of_checks(tmp_path: Path):
    site = tmp_path / ".venv/lib/python3.12/site-packages"
    for name in ("apart/__init__.py", "built.abi3.so", "mine.py", "odd-name.py", "x.data/a.py", "note.txt"):
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).touch()
    for package, source in (("mine", '{"url": "file:///here"}'), ("apart", '{"url": "https://example.org"}')):
        made = site / f"{package}-1.dist-info"
        made.mkdir()
        (made / "direct_url.json").write_text(source)
        (made / "RECORD").write_text(f"{package}.py,,\n{package}-1.dist-info/RECORD,,\n")
    (tmp_path / "venv/lib/python3.12").mkdir(parents=True)
    (tmp_path / "venv/lib/python3.12/site-packages").touch()
    sources = [CheckSource(label="check 'a'", command=f"{sys.executable} a.py"), CheckSource(label="check 'b'")]

    found = installed_modules(sources, workdir=tmp_path)

    assert {"apart", "built", "click"} <= found
    assert not found & {"mine", "odd-name", "odd", "x", "note"}


def test_what_is_no_file_among_installed_packages_is_not_waited_for(tmp_path: Path) -> None:
    site = tmp_path / ".venv/lib/python3.12/site-packages"
    (site / "other.dist-info").mkdir(parents=True)
    (site / "here.py").touch()
    os.mkfifo(site / "other.dist-info/direct_url.json")
    assert "here" in installed_modules((), workdir=tmp_path)


def test_files_that_a_command_names_after_cd(tmp_path: Path) -> None:
    (tmp_path / "sub/tool").mkdir(parents=True)
    (tmp_path / "sub/check.sh").touch()
    (tmp_path / "sub/tool/run.py").touch()
    sources = [CheckSource(label="c", command=command) for command in ("cd sub && sh check.sh", "cd sub; python3 -m tool.run")]
    found = check_files(sources, workdir=tmp_path, base=tmp_path, is_candidate=lambda _: False)
    assert ["sub/check.sh", "sub/tool/run.py"] == [file.path for file in found]
