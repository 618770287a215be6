"""Offers the commands to agents, over the Model Context Protocol."""
