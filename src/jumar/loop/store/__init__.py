"""The loop directory: attempts, snapshots, commits, reading, verifying. One directory rename is one iteration."""
