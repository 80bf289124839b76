# pyright: basic
# (distributed has no types)
"""Hands the tasks of a campaign to a Dask cluster, and their results to the store."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import cloudpickle
from distributed import Client, as_completed

from udccp.dask import worker
from udccp.dask.laboratory import Amount, Laboratory

# A worker gets the function itself, not the name of a module that it would have to have.
cloudpickle.register_pickle_by_value(worker)


@dataclass
class Outcome:
    """What a campaign did."""

    ran: int = 0
    failed: list[str] = field(default_factory=list)


def say(line: str) -> None:
    """Prints a line of progress to standard error."""
    print(line, file=sys.stderr, flush=True)


def run(
    client: Client,
    laboratory: Laboratory,
    names: Sequence[str],
    amount: Amount | None = None,
    *,
    worker_udccp: str | None = None,
    retries: int = 2,
    tell: Callable[[str], None] = say,
) -> Outcome:
    """Runs what the store does not have, on whatever cluster the client is connected to.

    Every result is stored as it comes: a campaign that is stopped goes on where it was.

    Args:
        client: The cluster.
        laboratory: Experiments and store.
        names: Experiments; all of the folder where there are none.
        amount: How much of each.
        worker_udccp: The program as workers call it, where it differs from the one here.
        retries: How often a task that failed, or whose worker was lost, is tried again.
        tell: Is told how it goes.

    Returns
    -------
        How many runs were done, and what the others failed of.

    Raises
    ------
        LaboratoryError: An experiment file is wrong, or the store refuses a result.
    """
    tasks = laboratory.missing(names, amount or Amount())
    outcome = Outcome()
    if not tasks:
        return outcome
    tell(f"{len(tasks)} runs to do on {len(client.scheduler_info()['workers'])} workers")
    program = worker_udccp or laboratory.udccp
    futures = {
        client.submit(
            worker.run_task, program, json.dumps(task), key=f"udccp-{task['key']}", retries=retries
        ): task
        for task in tasks
    }
    with laboratory.importing() as store:
        for future in as_completed(list(futures)):
            task = futures.pop(future)
            if future.status == "finished":
                store.write(future.result())
                outcome.ran += 1
            else:
                point = ", ".join(f"{axis} {value}" for axis, value in task["point"].items())
                label = f"{task['experiment']}: {point}, run {task['run']}"
                outcome.failed.append(f"{label}: {future.exception()}")
            future.release()
            done = outcome.ran + len(outcome.failed)
            if done % max(len(tasks) // 10, 1) == 0 or done == len(tasks):
                tell(f"{done} of {len(tasks)} runs")
    return outcome
