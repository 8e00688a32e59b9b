"""One strategy a file: its parameters, its rule for one query and for many, and what ``tune`` tries. Loaded when asked for."""
