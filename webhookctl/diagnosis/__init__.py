"""Finds out why a delivery does not verify, by testing common causes one by one."""
