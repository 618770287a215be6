"""The child processes of the local runtime: ministack, sinks, and the supervision of both."""
