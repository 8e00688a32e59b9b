"""``jumar topk``: one file a command, as above."""
