"""The handful of schemes that providers sign with; a provider's provider is a choice of these.

Pure functions over bytes: whatever the input, they return or raise `Rejected`.
"""
