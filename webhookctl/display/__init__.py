"""Formats results for the terminal and as JSON."""
