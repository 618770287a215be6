"""Explains offline why a delivery fails verification."""
