"""Which files are kept: built-in rules, patterns, ignore files, quota; and git as the judge of the patterns."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from store_kit import new_store, put

from jumar.core.text import human_size
from jumar.errors import ArtifactError, ConfigError
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.store.staging import Pending


@pytest.fixture
def work(fresh_place: Path) -> Path:
    directory = fresh_place / "work"
    directory.mkdir()
    return directory


def make(work: Path, *paths: str) -> None:
    put(work, dict.fromkeys(paths, b""))


def test_everything_is_kept_but_what_must_not_be(work: Path) -> None:
    secrets = (
        ".env",
        ".env.local",
        "deep/.env",
        "key.pem",
        "a.p12",
        "id_rsa",
        "id_rsa.pub",
        "id_ed25519",
        ".netrc",
        "credentials.json",
        *(".envrc", ".npmrc", "web/.npmrc", ".pypirc", ".pgpass", ".git-credentials", "server.key", "a.pfx", "a.jks", "id_ecdsa"),
        *(".aws/credentials", "home/.aws/config", ".ssh/config", ".kube/config", "kubeconfig", "kubeconfig.yaml", "a.kubeconfig"),
        *("service-account.json", "service-account-prod.json", "service_account.json", "client_secret_1.json", ".htpasswd"),
    )
    caches = ("__pycache__/x.py", "a/.pytest_cache/x", "node_modules/a/b.js", ".venv/bin/python", ".mypy_cache/x", "m.pyc")
    others = (".git/config", "sub/.git", ".jumar/loops/x", ".jumar-tmp-0a/file", "sub/.jumar-tmp-1")
    kept = (
        "README.md",
        "a/b.txt",
        "env",
        "my.env",
        "pem",
        "netrc",
        "key",
        "keys.py",
        "npmrc",
        "aws/credentials.md",
        "service-accounts.md",
        "node_modules.txt",
        "x.pyc.txt",
        ".gitignore",
        "a/.hidden",
    )
    make(work, *secrets, *caches, *others, *kept)
    put(work, {"link": "README.md", "venv/link": "/etc", "linked/node_modules": "../a"})
    os.mkfifo(work / "pipe")
    (work / "empty").mkdir()
    assert ArtifactRules().list(work) == tuple(sorted([*kept, "link", "venv/link", "pipe", "linked/node_modules"]))
    assert all(ArtifactRules().matches(path) for path in kept)
    assert not any(ArtifactRules().matches(path) for path in (*secrets, *caches, *others))


@pytest.mark.parametrize(
    ("include", "expected"),
    [
        (("*",), ("a.txt",)),
        (("*", ".env"), (".env", "a.txt", "config/.env")),
        (("config/.env",), ("config/.env",)),
        (("*", "config/.env"), ("a.txt", "config/.env")),
        (("*.pem",), ("certs/x.pem",)),
        (("certs/",), ()),
        (("certs/*.pem", "!certs/x.pem"), ()),
        (("node_modules/mine/*.js",), ("node_modules/mine/a.js",)),
        (("node_modules/",), ("node_modules/mine/a.js", "node_modules/other/b.js")),
        (("*.js",), ()),
        (("!*.pem",), ()),
        ((".git/*", ".jumar"), ()),
        (("*.json",), ()),
        (("service-account-*.json", "*.txt"), ("a.txt", "service-account-x.json")),
        ((".aws/credentials",), (".aws/credentials",)),
    ],
)
def test_secrets_and_caches_are_kept_only_where_a_pattern_names_them(
    work: Path, include: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    make(work, "a.txt", ".env", "config/.env", "certs/x.pem", "node_modules/mine/a.js", "node_modules/other/b.js", ".git/a.txt")
    make(work, "service-account-x.json", ".aws/credentials")
    rules = ArtifactRules(include=include)
    assert rules.list(work) == expected
    assert [path for path in expected if not rules.matches(path)] == []


def test_include_and_exclude_are_gitignore_patterns(work: Path) -> None:
    make(work, "src/a.py", "src/gen/b.py", "docs/a.md", "a.md", "other/src/c.py", "src/x.log")
    assert ArtifactRules(include=("/src/",)).list(work) == ("src/a.py", "src/gen/b.py", "src/x.log")
    assert ArtifactRules(include=("src/", "*.md"), exclude=("gen/", "*.log")).list(work) == (
        "a.md",
        "docs/a.md",
        "other/src/c.py",
        "src/a.py",
    )
    assert ArtifactRules(include=("*.py", "!**/gen/*")).list(work) == ("other/src/c.py", "src/a.py")
    assert ArtifactRules(exclude=("*", "!*.md")).list(work) == ("a.md",)


def test_a_pattern_that_is_none_is_an_error_of_the_configuration(work: Path) -> None:
    with pytest.raises(ConfigError, match=r"\[artifacts\] include: .*patterns are those of .gitignore"):
        ArtifactRules(include=("!",)).list(work)
    with pytest.raises(ConfigError, match=r"\[artifacts\] exclude"):
        ArtifactRules(exclude=("[z-a]",)).list(work)


def test_a_line_of_an_ignore_file_that_is_no_pattern_ignores_nothing(work: Path) -> None:
    put(work, {".gitignore": b"!\n[z-a]\n*.log\nx\\\n[[:alpha:]]1\n", "a.log": b"", "b.txt": b""})
    assert ArtifactRules().list(work) == (".gitignore", "b.txt")


def test_ignore_files_count_only_without_an_include(work: Path) -> None:
    make(work, "a.log", "sub/a.log", "sub/b.txt", "sub/keep.log", "build/x", "other/build/x")
    put(work, {".gitignore": b"*.log\n/build/\n", "sub/.gitignore": b"!keep.log\nb.*\n"})
    assert ArtifactRules().list(work) == (".gitignore", "other/build/x", "sub/.gitignore", "sub/keep.log")
    assert ArtifactRules(include=("*.log",)).list(work) == ("a.log", "sub/a.log", "sub/keep.log")


def test_an_ignore_file_that_changes_is_read_again(work: Path) -> None:
    make(work, "a.log", "sub/a.log", "sub/b.txt")
    rules = ArtifactRules()
    assert rules.list(work) == ("a.log", "sub/a.log", "sub/b.txt")
    put(work, {".gitignore": b"*.log\n"})
    assert rules.list(work) == (".gitignore", "sub/b.txt")
    put(work, {".gitignore": b"*.txt\n", "sub/.gitignore": b"!b.txt\n"})
    assert rules.list(work) == (".gitignore", "a.log", "sub/.gitignore", "sub/a.log", "sub/b.txt")
    (work / ".gitignore").unlink()
    (work / ".gitignore").symlink_to("sub/.gitignore")
    os.unlink(work / "sub" / ".gitignore")
    os.mkfifo(work / "sub" / ".gitignore")
    assert rules.list(work) == (".gitignore", "a.log", "sub/.gitignore", "sub/a.log", "sub/b.txt")


def test_what_a_snapshot_holds_and_is_still_there_is_kept_whatever_is_ignored_now(work: Path) -> None:
    before = ("a", "d/e/f", "gone", "d/gone", "was/file", "link/b", ".env", "n.md", "out/x", "m.pyc", ".git/config", "store/x")
    make(work, "a", "d/e/f", "was/file/x", "other/b", ".env", "n.md", "out/x", "m.pyc", ".git/config", "store/x", "new")
    (work / "link").symlink_to("other")
    put(work, {".gitignore": b"*\n"})
    rules = ArtifactRules(exclude=("out/",))
    assert rules.list(work, never=(work / "store",)) == ()
    assert rules.list(work, never=(work / "store",), kept=before) == ("a", "d/e/f", "n.md")
    assert ArtifactRules(include=("*.md",)).list(work, kept=before) == ("n.md",)
    assert rules.list(work, kept=("x/" * 5_000 + "x", "d/e/" + "y/" * 5_000)) == ()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter every directory")
def test_what_is_kept_and_cannot_be_reached_is_an_error_or_mended(work: Path) -> None:
    make(work, "d/e/f")
    put(work, {".gitignore": b"d/\n"})
    (work / "d").chmod(0)
    with pytest.raises(ArtifactError, match="'d/' cannot be read"):
        ArtifactRules().list(work, kept=("d/e/f",))
    assert ArtifactRules().list(work, kept=("d/e/f",), mend=lambda *_: False) == (".gitignore",)
    mended = ArtifactRules().list(work, kept=("d/e/f",), mend=lambda prefix, _: (work / prefix).chmod(0o755) is None)
    assert mended == (".gitignore", "d/e/f")


def test_what_must_never_be_looked_at_is_left_out(work: Path, fresh_place: Path) -> None:
    make(work, "a", "store/x", "deep/store/x", "file")
    os.symlink("work", fresh_place / "alias")
    never = (fresh_place / "alias" / "store", work / "file", fresh_place / "elsewhere", work)
    assert ArtifactRules().list(work, never=never) == ("a", "deep/store/x")


def test_strange_names_match_like_others(work: Path) -> None:
    names = ["new\nline/a.py", os.fsdecode(b"caf\xe9.py"), "-rf.py", "a b.py", "naïve.py"]
    make(work, *names, "x\ny.txt")
    assert ArtifactRules(include=("*.py",)).list(work) == tuple(sorted(names))
    assert ArtifactRules(include=("**/a.py",)).list(work) == ("new\nline/a.py",)


def test_a_root_that_cannot_be_read_is_named(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArtifactError, match="nowhere' cannot be read"):
        ArtifactRules().list(work / "nowhere")
    make(work, "sub/a", "b")
    real = os.scandir

    def failing(number: int) -> Callable[[Any], Any]:
        def scan(path: Any) -> Any:
            if "sub" in str(path):
                raise OSError(number, os.strerror(number))
            return real(path)

        return scan

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", failing(2))
        assert ArtifactRules().list(work) == ("b",)
        patch.setattr(os, "scandir", failing(13))
        with pytest.raises(ArtifactError, match="the directory 'sub/' cannot be read: Permission denied; exclude it"):
            ArtifactRules().list(work)


def test_rules_with_the_same_words_are_equal_whatever_they_have_seen(work: Path) -> None:
    make(work, "a")
    one, other = ArtifactRules(exclude=("x",)), ArtifactRules(exclude=("x",))
    one.list(work)
    assert one == other
    assert hash(one) == hash(other)
    assert "memory" not in repr(one)


def test_a_tree_over_the_quota_is_shown_before_it_is_taken(work: Path) -> None:
    put(work, {f"data/{number}.bin": b"x" * 1000 for number in range(30)})
    put(work, {"big.bin": b"x" * 5000, "src/a.py": b"x", "bigger\x1b.bin": b"x" * 6000})
    rules = ArtifactRules(max_files=20, max_total_bytes=20_000, max_file_bytes=4000)
    with pytest.raises(ArtifactError) as caught:
        rules.check_quota(work, rules.list(work))
    assert str(caught.value).splitlines() == [
        "the snapshot would hold 33 files, 41.0 kB; allowed are 20 files, 20.0 kB in all, 4.0 kB a file",
        "  too large: bigger\\x1b.bin (6.0 kB)",
        "  too large: big.bin (5.0 kB)",
        "    30.0 kB       30 files  data/",
        "     6.0 kB         1 file  bigger\\x1b.bin",
        "     5.0 kB         1 file  big.bin",
        "        1 B         1 file  src/",
        "say in jumar.toml what the loop is about, for instance",
        "  [artifacts]",
        '  include = ["src/", "*.md"]',
        (
            'or leave out what it is not: exclude = ["data/", "/bigger\\x1b.bin", "/big.bin"]; '
            "or raise max_files, max_file_mb, max_total_mb there"
        ),
    ]


def test_each_limit_counts_and_its_own_value_is_allowed(work: Path) -> None:
    put(work, {"a": b"12345", "b": b"123"})
    paths = ("a", "b")
    ArtifactRules(max_files=2, max_file_bytes=5, max_total_bytes=8).check_quota(work, paths)
    for rules in (ArtifactRules(max_files=1), ArtifactRules(max_file_bytes=4), ArtifactRules(max_total_bytes=7)):
        with pytest.raises(ArtifactError, match="the snapshot would hold 2 files, 8 B"):
            rules.check_quota(work, paths)
    ArtifactRules(max_total_bytes=3).check_quota(work, ("b", "gone"))
    put(work, {f"many/{number}": b"123456" for number in range(8)})
    with pytest.raises(ArtifactError, match="and 3 more files over 5 B"):
        ArtifactRules(max_file_bytes=5).check_quota(work, ArtifactRules().list(work))


def test_what_cannot_be_looked_at_is_named(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise PermissionError(13, os.strerror(13))

    with monkeypatch.context() as patch:
        patch.setattr(os, "lstat", refuse)
        with pytest.raises(ArtifactError, match="'a' cannot be read: Permission denied"):
            ArtifactRules().check_quota(work, ("a",))


def test_a_quota_is_kept_where_the_snapshot_is_taken(work: Path) -> None:
    store = new_store("loop", work)
    put(work, {"a": b"12345", "sub/b": b"123"})

    def stage(rules: ArtifactRules) -> Pending:
        return store.stage(1, source=work, paths=["."], nonce="n", attempt=None, stage={}, logs=None, quota=rules)

    with pytest.raises(ArtifactError, match=r"(?s)the snapshot would hold 2 files, 8 B.* 3 B +1 file  sub/"):
        stage(ArtifactRules(max_total_bytes=7))
    assert list(store.paths.pending.iterdir()) == []
    assert len(stage(ArtifactRules(max_total_bytes=8)).manifest.entries) == 2


def test_sizes_for_people() -> None:
    sizes = (0, 999, 1000, 999_949, 999_950, 10**6, 10**9, 10**12, 10**15)
    assert [human_size(size) for size in sizes] == [
        "0 B", "999 B", "1.0 kB", "999.9 kB", "1.0 MB", "1.0 MB", "1.0 GB", "1.0 TB", "1000.0 TB",
    ]  # fmt: skip


PATTERNS = (
    *("*.log", "build/", "/top", "a*", "!a1", "**/x", "sub/**", "!*.txt", "x/y", "/sub/*.log"),
    *("*", "!*/", "?1", "[ab]2", "\\#x", "# c", ""),
)
NAMES = ("a1", "b2", "x", "y", "top", "build", "sub", "n.log", "m.txt", "#x")


def test_ignore_files_mean_what_they_mean_to_git(work: Path) -> None:
    """Random trees with nested ignore files: git lists the same files."""
    git = ["git", "-c", "init.defaultBranch=main", "-c", "core.excludesFile=/dev/null"]
    subprocess.run([*git, "init", "-q"], cwd=work, check=True)
    (work / ".git" / "info" / "exclude").unlink(missing_ok=True)
    chance, listed, trees = random.Random(5), 0, 60
    for number in range(trees):
        root = work / f"case{number}"
        directories = ["", *("/".join(chance.choices(NAMES, k=chance.randint(1, 3))) for _ in range(4))]
        for directory in directories:
            for name in chance.sample(NAMES, k=4):
                path = root / directory / name
                if not path.exists() and not any(parent.is_file() for parent in path.parents):
                    put(root, {f"{directory}/{name}".strip("/"): b""})
        for directory in chance.sample(directories, k=2):
            place = root / directory
            if place.is_dir() and not (place / ".gitignore").exists():
                (place / ".gitignore").write_text("\n".join(chance.choices(PATTERNS, k=chance.randint(1, 4))))
        command = [*git, "ls-files", "-co", "--exclude-standard", "-z", "--", "."]
        expected = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout.split("\0")[:-1]
        actual = ArtifactRules().list(root)
        patterns = {str(path.relative_to(root)): path.read_text() for path in root.rglob(".gitignore")}
        assert actual == tuple(sorted(expected)), patterns
        listed += len(actual)
    print(f"trees compared with git: {trees}, files listed: {listed}")
    assert listed > 200
