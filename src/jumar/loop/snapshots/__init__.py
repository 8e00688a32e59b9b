"""What of a working directory is kept, and how: rules, manifest, snapshot, restore."""
