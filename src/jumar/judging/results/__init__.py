"""What an evaluation leaves behind."""
