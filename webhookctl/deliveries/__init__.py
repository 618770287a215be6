"""Deliveries that the CLI sends: made from sample files or saved requests, and posted over HTTP."""
