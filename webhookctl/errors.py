"""What a command cannot do."""


class CommandError(Exception):
    """The command cannot go on; the text is one line that names the remedy."""
