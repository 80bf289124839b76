"""Runs tasks in a worker, which needs only this package: no experiment files and no store."""

from udccp import _native
from udccp.errors import TaskError


def run_task(version: str, task: str) -> str:
    """Run one task and return its result.

    Parameters
    ----------
    version
        The version of the package that planned it.
    task
        The task as JSON.

    Returns
    -------
    str
        One line for ``udccp lab import``, or a result store.

    Raises
    ------
    TaskError
        The package of this worker is a different build.
    """
    if version != _native.LAB_VERSION:
        raise TaskError(
            f"the worker has udccp {_native.LAB_VERSION}, the campaign is of {version}: "
            "install the same build on both"
        )
    return _native.run_task(task)
