"""One loop: its engine and its parts, its store, its decisions and its report.

Nothing is imported here: the child processes of a step pass through this file.
"""
