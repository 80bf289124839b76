"""What the package raises."""

from collections.abc import Sequence
from dataclasses import dataclass


class UdccpError(Exception):
    """Base of all errors of this package but those of sockets, which are ``OSError``."""


@dataclass(frozen=True)
class Diagnostic:
    """One thing that is wrong in a scenario or an experiment.

    Parameters
    ----------
    message
        What is wrong, in one sentence.
    file
        The file as it was named, ``<scenario>`` for one made in Python, ``set`` for the argument
        of that name; None where no place is meant.
    line, column
        Where, counted from 1.
    hint
        What would be right.
    """

    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    hint: str | None = None


class ScenarioError(UdccpError, ValueError):
    """A scenario or an experiment is wrong.

    The text shows each place with its line, as ``udccp sim`` does.

    Attributes
    ----------
    diagnostics
        Everything that is wrong, in the order of the file.
    """

    diagnostics: tuple[Diagnostic, ...]

    def __init__(
        self,
        text: str,
        faults: Sequence[tuple[str, str | None, int | None, int | None, str | None]] = (),
    ) -> None:
        super().__init__(text)
        self.diagnostics = tuple(Diagnostic(*fault) for fault in faults)


class RunError(UdccpError, RuntimeError):
    """A run did not end: a capture cannot be written, or an invariant of the simulator broke."""


class StoreError(UdccpError, OSError):
    """A store of results cannot be read or written."""


class TaskError(UdccpError, ValueError):
    """A task or its result is of another version, or was changed on the way."""


class UndefinedError(UdccpError, ValueError):
    """A metric has no value for this input; the text says why."""


class LogError(UdccpError, ValueError):
    """A log of another tool cannot be read."""


class InternalError(UdccpError, RuntimeError):
    """A defect of this package. Please report it, with the call and its arguments."""
