"""API Gateway → verify → ledger → queue."""
