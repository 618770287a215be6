"""Event ids, types and times of verified deliveries, and the items of batches."""
