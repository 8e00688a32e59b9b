"""The expensive judge's providers, one a file."""
