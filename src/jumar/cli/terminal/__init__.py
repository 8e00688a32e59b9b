"""What a person sees: lines, tables, progress."""
