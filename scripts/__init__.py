"""Scripts that contributors run by hand."""
