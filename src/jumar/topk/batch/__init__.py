"""Kernels for many queries at once, one strategy a file, called as the strategy. The only importers of numpy in this package."""

from __future__ import annotations

from jumar.core.extras import need_extra

need_extra("topk", "select_batch, as everything that works on many queries,", "numpy")
