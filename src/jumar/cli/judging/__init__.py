"""`jumar evaluate`: its options, what it prints."""
