"""The parts of `scripts/real_input.py`: payloads, deliveries, faults, checks and sessions."""
