"""``jumar patterns``: one file a command, as above."""
