"""The checks of `webhookctl doctor`: whether a deployed inbox works, and what it waits for."""
