"""Where patterns are proposed from."""
