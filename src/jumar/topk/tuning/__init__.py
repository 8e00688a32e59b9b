"""Choosing a strategy and its parameters from labelled queries."""
