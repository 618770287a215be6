"""Finds lost and overdue runs, every minute."""
