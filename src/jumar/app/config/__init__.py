"""Configuration files as typed models, one table a file."""
