"""Integrations with something else: one file each, behind its own extra."""
