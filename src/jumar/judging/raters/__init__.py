"""Do raters, people or models, agree on the same items? Their ratings read from files, the figures, and the report."""
