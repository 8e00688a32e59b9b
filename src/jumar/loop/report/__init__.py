"""What people read of a loop. Reads records, decisions and events, and nothing else; import the modules by name.

The read models: :class:`~jumar.loop.report.read.LoopReport` is a loop as its records have it, and
:class:`~jumar.loop.report.status.LoopStatus` a loop as it is now, which ``observer`` makes without a lock, again and again.
``rows``, ``reasons``, ``advice``, ``spending``, ``judged`` and ``diff`` say what follows from them; ``page``, ``export``,
``plot``, ``frame`` and ``ending`` are renderings; ``views`` are the files beside the records. Only ``page`` needs a library.
"""

from __future__ import annotations
