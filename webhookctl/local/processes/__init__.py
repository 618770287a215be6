"""The child processes of a session: ministack and the sink."""
