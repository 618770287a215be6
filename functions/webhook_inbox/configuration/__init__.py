"""inbox.toml and handlers/ to the manifest; never ships."""
