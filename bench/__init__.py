"""Measures ingest against four handlers that do the same work: `make bench`."""
