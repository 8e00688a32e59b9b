"""A learning run in its folder."""
