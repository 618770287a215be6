"""Explains events and runs: effects, retry safety and the next action."""
