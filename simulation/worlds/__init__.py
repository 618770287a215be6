"""Scenarios: the parts of a world, and the small worlds that are explored exhaustively."""
