"""Follows an inbox until it is interrupted, and keeps the place for the next time."""
