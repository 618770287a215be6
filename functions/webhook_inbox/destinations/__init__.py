"""Calls to destinations: a circuit breaker and a rate limit that all workers share, and the client.

Other packages use `Gate` and the client. Decisions 18 and 19 give the reasons.
"""
