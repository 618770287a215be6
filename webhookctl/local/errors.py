"""What keeps the local runtime from starting or going on."""


class LocalError(Exception):
    """The local runtime cannot go on; the text is one line and names the remedy."""
