"""``jumar learn``: one file a command, as above."""
