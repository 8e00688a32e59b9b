"""The commands for a loop, one a file."""
