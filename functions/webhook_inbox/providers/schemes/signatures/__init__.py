"""HMAC and asymmetric signatures: formats, encodings, signed content and tolerance."""
