"""A loop as it runs: read from outside, and drawn."""
