"""A run of cases, or a recording of one, as people and programs read it: one read model, and what is made from it."""
