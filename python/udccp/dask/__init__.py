"""Runs the experiments of udccp on a Dask cluster (extra ``dask``).

The address of the scheduler is all that differs between a laptop and a cluster.
"""

try:
    from udccp.dask.runner import Outcome, run
except ModuleNotFoundError as error:
    raise ImportError("udccp.dask needs distributed: pip install 'udccp[dask]'") from error

__all__ = ["Outcome", "run"]
