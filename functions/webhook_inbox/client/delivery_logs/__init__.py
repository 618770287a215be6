"""Compares providers' delivery logs with the ledger.

For providers with a queryable log: GitHub never retries by itself, Stripe gives up after three
days. No function ships this package.

Missing events are not written to the ledger. The provider is asked to send them again, so that they
are signed and verified as every delivery is (G6).
"""
