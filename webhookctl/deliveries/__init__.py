"""Builds, signs and posts sample deliveries."""
