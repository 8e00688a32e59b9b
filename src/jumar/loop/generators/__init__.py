"""What changes the working directory, and what it is told."""
