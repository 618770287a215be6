"""Deliberate faults of the protocol, and the runs that check that the simulation detects each."""
