"""Handlers whose runs are measured."""

from typing import Final

MODULES: Final = ("work",)
