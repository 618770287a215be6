"""YOURS: the stacks of this app."""
