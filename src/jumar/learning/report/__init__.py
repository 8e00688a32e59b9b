"""Reports of a learning run: read from the files that it left, and nothing else."""
