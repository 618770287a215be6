"""Whether an inbox works: the checks of an account, of a deployed inbox, and by a delivery."""
