"""A durable webhook inbox: every event verified, stored once, handled once, replayable."""
