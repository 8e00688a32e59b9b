"""`jumar doctor`."""
