"""The operator's command line and the local runtime. Never ships to Lambda."""
