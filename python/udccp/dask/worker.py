"""What a worker does. It is sent to workers by value: they need neither this package nor files."""

import subprocess


class TaskError(Exception):
    """A task that did not run."""


def run_task(udccp: str, task: str) -> str:
    """Runs one task and returns its result.

    Args:
        udccp: The program, as the worker calls it.
        task: The task as JSON.

    Returns
    -------
        One line for ``udccp lab import``.

    Raises
    ------
        TaskError: The program is missing, or says that the task does not run.
    """
    try:
        done = subprocess.run(
            [udccp, "lab", "task", "-"], input=task, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise TaskError(f"cannot run {udccp}: {error}") from error
    if done.returncode != 0:
        raise TaskError(done.stderr.strip() or f"{udccp} ended with code {done.returncode}")
    return done.stdout
