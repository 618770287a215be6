"""Queue to handler to ledger: lease, admission, invocation, settlement."""
