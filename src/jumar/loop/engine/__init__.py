"""One loop from start to end: its iterations, their evaluation, resume."""
