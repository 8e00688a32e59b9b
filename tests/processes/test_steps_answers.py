"""What comes back from the child of a `python =` check or scorer: whatever runs in it can write there too."""

from __future__ import annotations

from pathlib import Path

import pytest
from loops import jumar, jumar_json

LOOP = """
[loop]
max_iterations = 1
[generator]
command = "cp ../evil.py candidate.py"
[[checks]]
name = "loads"
python = "check:loads"
[[scorers]]
dimension = "quality"
python = "check:quality"
"""
CHECK = """
def loads(context):
    return True

def quality(context):
    import candidate
    return 0.25
"""


@pytest.mark.parametrize(
    "said",
    [
        "[1]",
        '{"value": ' * 5_000,
        '{"value": {"score": 5, "reason": "", "invalid": null}}',
        '{"value": {"score": true, "reason": "", "invalid": null}}',
        '{"value": {"score": 1, "reason": [], "invalid": null}}',
        '{"value": {"passed": true, "reason": ""}}',
        '{"value": {"score": 1}}',
        '{"error": 3}',
        '{"unknown": ""}',
        '{"value": 1, "error": ""}',
    ],
)
def test_what_is_no_answer_is_no_score_and_ends_nothing(said: str):
    Path("candidate.py").write_text("")
    Path("check.py").write_text(CHECK)
    Path("../said").write_text(said)
    Path("../evil.py").write_text(f"import os\nos.write(3, open({str(Path('../said').resolve())!r}, 'rb').read())\nos._exit(0)\n")
    Path("jumar.toml").write_text(LOOP)
    done = jumar_json(Path.cwd(), "run")
    assert 25 == done["quality_score"]
    (start, last) = jumar_json(Path.cwd(), "show")["iterations"]
    assert ("ok", "scorer_broken") == (start["status"], last["status"])
    jumar(Path.cwd(), "verify", check=0)
