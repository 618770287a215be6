"""The HTTP client behind ctx.http."""
