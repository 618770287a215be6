"""Static tokens and the credentials of agents."""
