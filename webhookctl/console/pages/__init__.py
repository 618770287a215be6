"""One module per page: its view and its actions."""
