"""Failures that a person reads: one line with error and cause, and a hint."""

import sys
from collections.abc import Callable


class Failure(Exception):
    """A run that cannot go on; `code` is the exit code of the command."""

    code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        # A message may hold text of a library or of a file; the printed message stays one line.
        return " ".join(super().__str__().split())


class CaptureFailed(Failure):
    """The model ran, or began to run, and did not show what the order says: exit code 1."""


class BadInput(Failure):
    """Arguments, files or packages are not usable: exit code 2."""

    code = 2


def command(name: str, work: Callable[[], None]) -> int:
    """Do the work of a command, print an error on stderr, and return the exit code."""
    try:
        work()
    except Failure as err:
        print(f"{name}: {err}", file=sys.stderr)
        if err.hint:
            print(f"hint: {err.hint}", file=sys.stderr)
        return err.code
    except OSError as err:
        print(f"{name}: {err}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return 1
    return 0
