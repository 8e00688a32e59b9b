"""What people read of a loop: one read model, and its renderings as markdown, CSV, JSON, HTML and JUnit; the views; diffs.

Reads records and decisions, and nothing else. Import the modules by name: only :mod:`jumar.loop.report.page` needs a library.
"""

from __future__ import annotations
