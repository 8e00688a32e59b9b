"""Fitting a scorecard: which features and phrases of an item say what the expensive judge will say. Needs the extra ``learn``."""
