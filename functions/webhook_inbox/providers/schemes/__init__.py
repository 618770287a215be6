"""The schemes that providers sign with; a provider is a choice of these with its own values."""
