"""Runs the experiments of udccp on a Dask cluster (extra ``dask``).

A laptop and a cluster differ only in the address of the scheduler.
"""

try:
    from udccp.dask.runner import Outcome, run
except ModuleNotFoundError as error:
    raise ImportError("udccp.dask needs distributed: pip install 'udccp[dask]'") from error

__all__ = ["Outcome", "run"]
