"""Reads the ledger again and again, without a gap and without a repetition."""
