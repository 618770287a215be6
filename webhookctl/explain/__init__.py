"""Explains the state of a run, its effects and its approval requests, and names the next action."""
