"""The smoke test: the built-in source and handler of a stack, from a delivery to a replay."""
