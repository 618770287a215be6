"""The handlers that the inbox is measured against; each choice favours the handler."""
