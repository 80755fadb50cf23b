"""Failures that a person reads: one line that says what and why, and a hint what to do."""


class Failure(Exception):
    """A run that cannot go on; `code` is the exit code of the command."""

    code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        # A message may hold text of a library or of a file; what is printed stays one line.
        return " ".join(super().__str__().split())


class CaptureFailed(Failure):
    """The model ran, or began to, and did not show what the order says: exit code 1."""


class BadInput(Failure):
    """Arguments, files or packages are not usable: exit code 2."""

    code = 2
