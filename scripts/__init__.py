"""Scripts that are run by hand."""
