"""What providers say they sent, compared with what the ledger has.

For providers that keep a log of their deliveries and can be asked for it: `github` never sends
again by itself, `stripe` gives up after three days. Part of an operator's hands, never of a bundle.

What is missing is not written into the ledger from here. The provider is asked to send it again,
so that it comes in as every delivery does, signed and verified (G6): there is one way in.
"""
