"""The engine: generators, validators and scorers around one loop, and the tracker for loops of one's own.

Nothing is imported here: the child processes of a step pass through this file.
"""
