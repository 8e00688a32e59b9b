"""Figures, markdown and pages: how a report of any subject is written."""
