"""The expensive judge: asking it, reading its answers, and what to do when it does not answer."""
