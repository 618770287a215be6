"""What fell between two calls."""
