"""Rankings, settings and logs of selections as files."""
