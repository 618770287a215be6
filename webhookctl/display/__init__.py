"""Formats events, effects, approvals, completions and rejected deliveries as text or JSON."""
