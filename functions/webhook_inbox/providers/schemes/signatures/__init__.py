"""Signatures over a delivery, and the keys, encodings and times that belong to them."""
