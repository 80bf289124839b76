"""Runs the experiments of udccp on a Dask cluster."""

from udccp.dask.laboratory import Amount, Laboratory, LaboratoryError
from udccp.dask.runner import Outcome, run

__all__ = ["Amount", "Laboratory", "LaboratoryError", "Outcome", "run"]
