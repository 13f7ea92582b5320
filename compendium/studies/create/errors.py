"""CREATE: the one error of its files."""


class CreateError(ValueError):
    """A file of answers that cannot be read; the message names file, line and column, and what would be
    right."""
