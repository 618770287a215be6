"""The cost of an inbox: counted units, and the estimate of a month."""
