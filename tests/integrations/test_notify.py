"""``[notify]``: who is told of an end, against a real server here; and that neither a service nor its address does any harm."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import call, call_json
from judge_server import Answer, JudgeServer, Seen
from loops import jumar, write_loop

pytest.importorskip("apprise")

from jumar.errors import ConfigError
from jumar.integrations import notify

pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")  # of apprise

TOKEN = "t0k3n-of-the-team-channel"


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer(lambda _seen, _number: Answer(body="{}")) as running:
        yield running


def address(server: JudgeServer, more: str = "") -> str:
    return f"json://127.0.0.1:{server.port}/{TOKEN}{more}"


def told(server: JudgeServer) -> list[tuple[str, str, str]]:
    return [(seen.json["type"], seen.json["title"], seen.json["message"]) for seen in server.seen]


def loop(here: Path, scores: tuple[Any, ...], *urls: str, on: str = "", more: str = "", **options: Any) -> Path:
    return write_loop(here, scores, extra=f"[notify]\nurls = {json.dumps(urls)}\n{on}\n{more}", **options)


def test_the_end_is_told_in_the_words_of_the_terminal(fresh_place: Path, server: JudgeServer):
    loop(fresh_place, (0.6, 0.9), address(server))
    shown = call("run", check=0)
    [(kind, title, body)] = told(server)
    assert ("success", "jumar: t has ended") == (kind, title)
    assert "score 50 → 90 at iteration 2 (all checks pass)" in body
    assert "Ended: 2 of 2 iterations done." in body
    assert f"In {fresh_place}: jumar show t" in body
    assert f"/{TOKEN}" == server.seen[0].path
    assert "notify" not in shown.out + shown.err


def test_nothing_is_told_where_nothing_ran(fresh_place: Path, server: JudgeServer):
    loop(fresh_place, (0.6,), address(server))
    call("run", check=0)
    call("run", check=2)
    assert 1 == len(server.seen)


@pytest.mark.parametrize(
    ("on", "expected"),
    [
        ("", ["warning"]),
        ('on = ["limit"]', ["warning"]),
        ('on = ["end", "failure", "needs_person"]', []),
    ],
)
def test_a_limit_is_told_with_how_to_resume_where_it_is_asked_for(
    fresh_place: Path, server: JudgeServer, on: str, expected: list[str]
):
    pays = "import json, os\nopen(os.environ['JUMAR_USAGE_FILE'], 'w').write(json.dumps({'token_cost_usd': 0.5}))\n"
    loop(fresh_place, (0.6, 0.9), address(server), on=on, more="[budget]\nmax_cost_usd = 0.5\nreserve_cost_usd = 0.5\n")
    agent = fresh_place / "agent.py"
    agent.write_text(agent.read_text() + pays)
    call("run", check=0)
    assert expected == [kind for kind, _, _ in told(server)]
    for _, title, body in told(server):
        assert "jumar: t has reached a limit" == title
        assert "Resume: raise [budget] max_cost_usd (jumar run --max-cost)" in body


def test_failures_and_what_needs_a_person_are_told(fresh_place: Path, server: JudgeServer):
    loop(fresh_place, ("fail", "fail", "fail"), address(server))
    call("run")
    (fresh_place / "agent.py").write_text("import sys\nprint('log in first')\nsys.exit(77)\n")
    call("run", "--new")
    assert ["jumar: t failed", "jumar: t-2 needs you"] == [title for _, title, _ in told(server)]


def test_an_error_in_the_middle_is_told(fresh_place: Path, server: JudgeServer, monkeypatch: pytest.MonkeyPatch):
    loop(fresh_place, (0.6,), address(server))

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no more of this")

    monkeypatch.setattr("jumar.loop.engine.engine.Loop._finish", broken)
    with pytest.raises(RuntimeError):
        call("run")
    [(kind, title, body)] = told(server)
    assert ("failure", "jumar: t failed") == (kind, title)
    assert "Ended: RuntimeError: no more of this" in body


def test_a_service_that_refuses_or_hangs_is_told_of_and_changes_nothing(fresh_place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(notify, "PATIENCE", 0.5)

    def behave(seen: Seen, _number: int) -> Answer:
        return (
            Answer(status=500, body="no")
            if "refuses" in seen.path
            else Answer(body="{}", delay=20 if "hangs" in seen.path else 0)
        )

    with JudgeServer(behave) as server:
        loop(fresh_place, (0.9,), *(address(server, f"/{what}?rto=60") for what in ("refuses", "takes", "hangs")))
        began = time.monotonic()
        done = call("run", check=0)
        assert time.monotonic() - began < 10
        assert {"refuses", "takes", "hangs"} == {seen.path.rpartition("/")[2] for seen in server.seen}
    assert "[notify]: no message reached JSON (address 1), JSON (address 3); the loop is not affected" in done.out + done.err
    assert TOKEN not in done.out + done.err
    assert 1 == call_json("show", "t")["chosen"]


def test_the_process_ends_although_a_service_never_answers(fresh_place: Path):
    with JudgeServer(lambda _seen, _number: Answer(body="{}", delay=60)) as server:
        loop(fresh_place, (0.9,), address(server, "?rto=60"))
        program = "import jumar.integrations.notify as n; n.PATIENCE = 0.5; from jumar.cli.entry import main; main()"
        began = time.monotonic()
        done = subprocess.run([sys.executable, "-c", program, "run"], capture_output=True, text=True, timeout=50, check=False)
        assert time.monotonic() - began < 20
    assert 0 == done.returncode, done.stderr
    assert "no message reached JSON (address 1)" in re.sub(r"\s+", " ", done.stdout + done.stderr)
    assert "Traceback" not in done.stderr


def test_an_address_is_written_nowhere(fresh_place: Path, server: JudgeServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TEAM_CHANNEL", address(server, "/of-a-variable"))
    loop(fresh_place, (0.6,), address(server), "TEAM_CHANNEL", loop='isolation = "copy"')
    agent = fresh_place / "agent.py"
    agent.write_text(agent.read_text() + f"print(open({str(fresh_place / 'jumar.toml')!r}).read())\n")
    said = [call("run", check=0), call("doctor"), call("report", "t"), call("logs", "t"), call("run", "--estimate")]
    assert 2 == len(server.seen)
    assert not any(TOKEN in each.out + each.err for each in said)
    assert "JSON (address 1), JSON (address 2)" in said[1].out
    written = [path for path in (fresh_place / ".jumar").rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]
    assert [] == [path for path in written if "work" not in path.relative_to(fresh_place / ".jumar").parts[0]]
    log = next((fresh_place / ".jumar/loops/t/iterations/iteration-001/logs").glob("generator*"))
    assert "[redacted: notify_urls_1]" in log.read_text(), "the agent printed the whole file"


def test_other_addresses_are_no_change_of_the_loop(fresh_place: Path, server: JudgeServer):
    config = loop(fresh_place, (0.6, 0.9), address(server, "/a"))
    call("run", "-n", "1", check=0)
    config.write_text(config.read_text().replace(f"{TOKEN}/a", f"{TOKEN}/b").replace("[notify]", '[notify]\non = ["end"]'))
    call("run", "-n", "2", check=0)
    assert [f"/{TOKEN}/a", f"/{TOKEN}/b"] == [seen.path for seen in server.seen]
    kinds = [path.name.partition("-")[2] for path in (fresh_place / ".jumar/loops/t/decisions").glob("*accept*")]
    assert [] == kinds
    [entry] = call_json("report", "t")["config"]["run"]["notify"]["urls"]
    assert re.fullmatch(r"sha256:[0-9a-f]{16}", entry)
    config.unlink()
    call("run", "--id", "t", "-n", "3", "--root", ".jumar", check=0)
    assert 2 == len(server.seen), "whom the record knows by their hash alone cannot be told"


def test_other_addresses_are_refused_where_an_agent_that_nobody_watched_may_have_written_them(
    fresh_place: Path, server: JudgeServer
):
    config = loop(fresh_place, (0.6, 0.9), address(server, "/a"))
    call("run", "-n", "1", check=0)
    start = fresh_place / ".jumar/loops/t/attempts"
    for end in sorted(start.glob("*.end.json"))[-1:]:
        end.unlink()  # killed while it ran
    config.write_text(config.read_text().replace(f"{TOKEN}/a", "b"))
    refused = call("run", "-n", "2", check=2)
    assert "notify.urls" in refused.err
    assert TOKEN not in refused.err
    call("run", "-n", "2", "--accept-changes", check=0)


@pytest.mark.parametrize(
    ("urls", "expected"),
    [
        ('["nonsense://x/' + TOKEN + '"]', "apprise cannot read address 1 of 1"),
        ('["json://localhost/", "json://"]', "apprise cannot read address 2 of 2"),
        ('["NOT_SET_HERE"]', "[notify] urls: the variable NOT_SET_HERE is not set"),
        (f'"json://localhost/{TOKEN}"', "notify.urls: input should be a valid list"),
        (f'[]\non = ["json://{TOKEN}"]', "notify.on[1]: input should be 'end', 'limit', 'failure' or 'needs_person'"),
        (f'["a"]\nurl = "json://{TOKEN}"', "unknown key 'notify.url'"),
        ('["json://localhost/"]\non = []', "notify.on"),
    ],
)
def test_what_cannot_be_sent_to_is_refused_before_anything_runs(fresh_place: Path, urls: str, expected: str):
    write_loop(fresh_place, (0.9,), extra=f"[notify]\nurls = {urls}\n")
    refused = call("run", check=2)
    assert expected in refused.err
    assert TOKEN not in refused.out + refused.err
    assert not (fresh_place / ".jumar").exists()
    assert not (fresh_place / "calls.log").exists()
    looked = call("doctor")
    assert TOKEN not in looked.out + looked.err
    assert 0 != looked.code


def test_without_the_extra_it_is_told_how_to_install_it(fresh_place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("jumar.core.lazy.find_spec", lambda _name: None)
    loop(fresh_place, (0.9,), "json://localhost/")
    assert "pip install 'jumar[notify]'" in call("run", check=2).err
    with pytest.raises(ConfigError, match="jumar\\[notify\\]"):
        notify.Notifier(["json://localhost/"], ["end"])
    assert not (fresh_place / ".jumar").exists()


def test_a_secret_of_the_environment_is_not_sent(tmp_path: Path, server: JudgeServer):
    loop(tmp_path, ("fail", "fail", "fail"), address(server))
    agent = tmp_path / "agent.py"
    agent.write_text("import sys\nprint('the key is hunter2hunter2', file=sys.stderr)\nsys.exit(3)\n")
    jumar(tmp_path, "run", env={"MY_API_KEY": "hunter2hunter2"})
    assert "hunter2" not in json.dumps([seen.json for seen in server.seen])
    assert 1 == len(server.seen)
