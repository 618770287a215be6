"""Synthesizes and deploys the stack to ministack."""
