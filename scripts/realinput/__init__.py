"""Parts of `scripts/real_input.py`."""
