"""Checks: the observer notes each effect, every write is judged, and worlds must converge."""
