"""Sends chosen runs again."""
