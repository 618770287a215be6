"""The AWS infrastructure: one construct per component, and the inbox that combines them."""
