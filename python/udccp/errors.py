"""The exceptions of the package."""

from collections.abc import Sequence
from dataclasses import dataclass


class UdccpError(Exception):
    """Base of all exceptions of this package; those of sockets are ``OSError``."""


@dataclass(frozen=True)
class Diagnostic:
    """One error in a scenario or an experiment.

    Parameters
    ----------
    message
        What is wrong, in one sentence.
    file
        The file as it was named; ``<scenario>`` for a scenario made in Python, ``set`` for the
        argument of that name; None if the error has no place.
    line, column
        The place, counted from 1.
    hint
        How to correct it.
    """

    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    hint: str | None = None


class ScenarioError(UdccpError, ValueError):
    """A scenario or an experiment has errors.

    The text shows each place with its line, as ``udccp sim`` does.

    Attributes
    ----------
    diagnostics
        All errors, in the order of the file.
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
    """A run failed: no capture could be written, or an invariant of the simulator was violated."""


class StoreError(UdccpError, OSError):
    """A store of results cannot be read or written."""


class TaskError(UdccpError, ValueError):
    """A task or its result is of another version, or was changed in transit."""


class UndefinedError(UdccpError, ValueError):
    """A metric has no value for this input; the text says why."""


class LogError(UdccpError, ValueError):
    """A log of another tool cannot be read."""


class InternalError(UdccpError, RuntimeError):
    """A bug in this package. Please report it, with the call and its arguments."""
