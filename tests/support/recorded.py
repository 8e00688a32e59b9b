"""Where the recorded loops of real agents lie; they are no part of the project, and a test without them says so."""

from __future__ import annotations

import os
from pathlib import Path

LOGS = Path(os.environ.get("JUMAR_DATA", Path(__file__).parents[3] / "shared" / "data")) / "loops"
