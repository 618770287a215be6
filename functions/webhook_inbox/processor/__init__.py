"""Queue to handler to ledger: admission, lease, invocation, settlement."""
