"""Loops that exist already: a history of experiments read from a file or from git, and made a loop of."""
