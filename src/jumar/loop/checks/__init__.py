"""Who says whether a candidate passes."""
