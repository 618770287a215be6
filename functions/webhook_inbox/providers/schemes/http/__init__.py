"""Header, URL and public-key lookups that verification needs."""
