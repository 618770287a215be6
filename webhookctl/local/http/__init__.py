"""The local API: an HTTP server in front of ministack's gateway."""
