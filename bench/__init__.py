"""Measurements of the inbox, each against a named baseline on the same machine."""
