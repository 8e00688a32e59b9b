"""A run of cases on disk: layout, writing, reading, verifying, and the recordings of other tools."""
