"""Kernels for many queries at once, one strategy a file, called as the strategy. The only importers of numpy in this package."""
