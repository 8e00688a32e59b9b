"""Evaluations for people: as text, and as pages read from the folder that an evaluation wrote."""
