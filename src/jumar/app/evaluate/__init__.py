"""`jumar evaluate`."""
