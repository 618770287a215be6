"""What a test did wrong."""


class KitError(AssertionError):
    """The kit cannot do what the test asks for; the text names the remedy."""
