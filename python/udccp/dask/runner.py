# pyright: basic
# (distributed has no types)
"""Sends the tasks of a campaign to a Dask cluster, and stores their results."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from distributed import Client, as_completed

from udccp import _native
from udccp.dask.worker import run_task
from udccp.lab.study import Experiment


@dataclass
class Outcome:
    """The result of a campaign.

    Parameters
    ----------
    ran
        Number of completed runs.
    failed
        The tasks that failed, and why.
    """

    ran: int = 0
    failed: list[str] = field(default_factory=list)


def report(line: str) -> None:
    """Print a line of progress to standard error."""
    print(line, file=sys.stderr, flush=True)


def run(
    client: Client,
    experiment: Experiment,
    *,
    retries: int = 2,
    progress: Callable[[str], None] = report,
) -> Outcome:
    """Run what the store lacks on the cluster of the client.

    Each result is stored when it arrives. After an interruption, the next call continues.

    Parameters
    ----------
    client
        The cluster. Its workers need the same build of this package.
    experiment
        The experiment, with its store.
    retries
        How often a task that failed, or whose worker was lost, is repeated.
    progress
        Called with a line of text after about every tenth of the campaign.

    Returns
    -------
    Outcome
        How many runs were completed, and why the others failed.

    Raises
    ------
    StoreError
        The store rejects a result.
    """
    tasks = [(line, json.loads(line)) for line in experiment.missing()]
    outcome = Outcome()
    if not tasks:
        return outcome
    progress(f"{len(tasks)} runs to do on {len(client.scheduler_info()['workers'])} workers")
    store = _native.ResultStore(experiment.store)
    futures = {
        client.submit(
            run_task, _native.LAB_VERSION, line, key=f"udccp-{task['key']}", retries=retries
        ): task
        for line, task in tasks
    }
    for future in as_completed(list(futures)):
        task = futures.pop(future)
        if future.status == "finished":
            store.put(future.result())
            outcome.ran += 1
        else:
            point = ", ".join(f"{axis} {value}" for axis, value in task["point"].items())
            label = f"{task['experiment']}: {point}, run {task['run']}"
            outcome.failed.append(f"{label}: {future.exception()}")
        future.release()
        done = outcome.ran + len(outcome.failed)
        if done % max(len(tasks) // 10, 1) == 0 or done == len(tasks):
            progress(f"{done} of {len(tasks)} runs")
    return outcome
