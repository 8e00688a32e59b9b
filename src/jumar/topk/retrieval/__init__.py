"""Fetching candidates, and how many of them to keep."""
