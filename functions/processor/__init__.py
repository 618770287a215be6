"""Queue → handler → ledger; the only importer of handlers."""
