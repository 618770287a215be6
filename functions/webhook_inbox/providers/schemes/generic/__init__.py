"""Declared sources: schemes that the tables of inbox.toml define."""
