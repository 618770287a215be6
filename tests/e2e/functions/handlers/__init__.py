"""Handlers that misbehave on request."""

from typing import Final

MODULES: Final = ("lab", "late", "press")
