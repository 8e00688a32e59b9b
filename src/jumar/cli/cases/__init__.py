"""``jumar cases``: one file a command, as above."""
