"""The infrastructure: one file per box of the flow, and the construct that joins them."""
