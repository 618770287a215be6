"""Event identity: ids, types, times, and batches of events."""
