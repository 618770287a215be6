"""What an inbox costs: counted units, prices, and the estimate of a month."""
