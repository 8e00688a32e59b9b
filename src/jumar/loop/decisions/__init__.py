"""Select, override, apply, undo, cleanup: everything that a person or the end of a loop decides, under the store's lock."""
