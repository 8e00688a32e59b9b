"""Whether a learned set tracks its judge, and how that is proved."""
