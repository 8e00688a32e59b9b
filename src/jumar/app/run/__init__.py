"""`jumar run`: from a configuration to a loop that runs."""
