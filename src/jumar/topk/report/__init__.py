"""Selections for people: one query with every strategy's cut, and strategies compared."""
