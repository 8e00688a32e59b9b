"""Whether a store is as jumar wrote it, and the way out where it is not."""
