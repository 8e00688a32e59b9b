"""Evaluations for people: the dashboard of an iteration and the gap report."""
