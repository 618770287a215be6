"""The schemes of declared sources, whose settings are in inbox.toml."""
