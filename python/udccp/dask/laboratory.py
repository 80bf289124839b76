"""The laboratory on this machine: experiment files, the store, and the program that reads both."""

import json
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any


class LaboratoryError(Exception):
    """The program failed; the message is what it said.

    Attributes
    ----------
        code: Its exit code.
    """

    def __init__(self, message: str, code: int = 1) -> None:
        """A failure with an exit code of ``udccp``."""
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Amount:
    """How much of each experiment is run."""

    quick: bool = False
    runs: int | None = None

    def flags(self) -> list[str]:
        """The flags of ``udccp lab`` that mean the same."""
        runs = [] if self.runs is None else ["--runs", str(self.runs)]
        return [*(["--quick"] if self.quick else []), *runs]


@dataclass(frozen=True)
class Laboratory:
    """Where the program, the experiments and the store are.

    Without a folder of experiments, those of the folder ``experiments`` and those that come with
    the program are meant.
    """

    udccp: str = "udccp"
    experiments: Path | None = None
    store: Path = Path("results/lab.sqlite")

    def _folder(self) -> list[str]:
        return [] if self.experiments is None else ["--experiments", str(self.experiments)]

    def command(self, name: str, *arguments: str) -> list[str]:
        """A command of ``udccp lab`` on this store."""
        return [self.udccp, "lab", name, *arguments, "--store", str(self.store)]

    def _out(self, command: Sequence[str]) -> str:
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            hint = "hint: --udccp PATH, or put it on the PATH"
            raise LaboratoryError(f"error: cannot run {self.udccp}: {error}\n{hint}", 10) from error
        if done.returncode != 0:
            raise LaboratoryError(done.stderr.strip(), done.returncode)
        return done.stdout

    def missing(self, names: Sequence[str], amount: Amount) -> list[dict[str, Any]]:
        """The tasks that the store does not have, those that take longest first.

        Args:
            names: Experiments; all of the folder where there are none.
            amount: How much of each.
        """
        flags = ["--missing", "--json", *self._folder()]
        tasks = json.loads(self._out(self.command("plan", *names, *flags, *amount.flags())))
        return list(tasks)

    def tables(self, names: Sequence[str], amount: Amount) -> str:
        """The tables as ``udccp lab run`` prints them; runs what is still missing.

        Args:
            names: Experiments; all of the folder where there are none.
            amount: How much of each.
        """
        names = names or ["--all"]
        flags = [*self._folder(), *amount.flags()]
        return self._out(self.command("run", *names, *flags))

    @contextmanager
    def importing(self) -> Generator[IO[str]]:
        """A stream that puts every line written to it into the store at once.

        Raises
        ------
            LaboratoryError: The store refused a line.
        """
        store = subprocess.Popen(
            self.command("import", "-"),
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        assert store.stdin is not None
        broken = False
        try:
            yield store.stdin
        except BrokenPipeError:
            broken = True
        finally:
            try:
                store.stdin.close()
            except BrokenPipeError:
                broken = True
            # The stream is closed: `communicate` must not flush it again.
            store.stdin = None
            _, says = store.communicate()
        if broken or store.returncode != 0:
            raise LaboratoryError(says.strip(), store.returncode or 1)
