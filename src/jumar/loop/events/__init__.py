"""What a loop tells while it runs."""
