"""``jumar init --template autoresearch``: the ratchet on a training run that crashes, overruns its time and is noisy."""

from __future__ import annotations

import json
import math
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import call
from loops import jumar

# What the agent leaves as train.py, by the number of the experiment; 0 is the start.
TRAINED = (
    "print(f'val_bpb:          {1.0 + luck:.6f}')",
    "print(f'val_bpb:          {0.98 + luck:.6f}')",
    "raise MemoryError('the model is too wide')",
    "print('val_bpb: 0.1', flush=True); import time; time.sleep(60)",
    "print(f'val_bpb:          {0.95 + luck:.6f}')",
    "print(f'val_bpb:          {1.05 + luck:.6f}')",
    "print(f'val_bpb:          {0.9499 + luck:.6f}')",
    "print('val_bpb: nan')",
)
HEAD = "import os\nluck = {'1': 0.001}.get(os.environ.get('JUMAR_REPEAT', '1'), -0.001)\n"
AGENT = f"import os\nopen('train.py', 'w').write({HEAD!r} + {TRAINED!r}[int(os.environ['JUMAR_ITERATION'])])\n"


def set_up(place: Path) -> None:
    call("init", "--template", "autoresearch", place, check=0)
    (place / "train.py").write_text(HEAD + TRAINED[0])
    (place / "agent.py").write_text(AGENT)
    python = shlex.quote(sys.executable)
    edits = {
        "jumar.toml": (("'your-agent \"$JUMAR_PROMPT_FILE\"'", f"'{python} agent.py'"), ("python3", python)),
        "measure.py": (("uv run train.py", f"{python} train.py"), ("TIME_BOX = 600", "TIME_BOX = 3")),
    }
    for name, changes in edits.items():
        text = (place / name).read_text()
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        (place / name).write_text(text)


def record(outcome: dict[str, Any], number: int) -> dict[str, Any]:
    return json.loads(Path(outcome["directory"], "iterations", f"iteration-{number:03}", "metrics.json").read_text())


def test_the_ratchet_keeps_what_is_better_and_nothing_else(fresh_place: Path):
    set_up(fresh_place)
    outcome = json.loads(jumar(fresh_place, "run", "--json", "-n", str(len(TRAINED) - 1), timeout=200).stdout)
    assert (outcome["selected_iteration"], outcome["verified"], outcome["rechecked"]) == (4, True, True), "6 may be luck"
    records = [record(outcome, number) for number in range(len(TRAINED))]
    scores = [each["quality_score"] for each in records]
    expected = [100 / (1 + value**10) for value in (1.0, 0.98, math.inf, math.inf, 0.95, 1.05, 0.9499, math.inf)]
    assert scores == pytest.approx(expected, abs=0.05)
    assert [each["parent"] for each in records] == [None, 0, 1, 1, 1, 4, 4, 6], "a failed or worse one is taken back"
    assert [each["verification_status"] == "passed" for each in records] == [score > 0 for score in scores]
    told = ["val_bpb 1.0", "MemoryError", "not done after 3 seconds", "val_bpb is nan"]
    for number, words in zip((0, 2, 3, 7), told, strict=True):
        assert words in json.dumps(records[number]), words
    assert (fresh_place / "train.py").read_text() == HEAD + TRAINED[4]
    manifest = Path(outcome["directory"], "iterations", "iteration-004", "manifest.json").read_text()
    assert "train.py" in manifest
    assert "run.log" not in manifest
