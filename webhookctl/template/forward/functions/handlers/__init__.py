"""Your handlers: every module in this directory, listed here."""

MODULES = ("forwarding",)
