"""The local HTTP endpoint, and the gateway from it to the ingest function."""
