"""`jumar init`."""
