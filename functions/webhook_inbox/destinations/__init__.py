"""What spares a destination: a circuit breaker and a rate limit that all workers share.

`Gate` is what the rest of the inbox uses. Decisions 14 and 15 say why it is as it is.
"""
