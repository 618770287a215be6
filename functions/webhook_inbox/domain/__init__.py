"""The words that everything else speaks; imports nothing of ours but itself."""
