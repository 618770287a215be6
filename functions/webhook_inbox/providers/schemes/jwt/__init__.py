"""Verification of JSON Web Tokens, their keys and times, and signing for tests."""
