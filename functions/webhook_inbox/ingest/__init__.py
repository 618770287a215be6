"""HTTP to ledger to queue: verify, deduplicate, record, enqueue."""
