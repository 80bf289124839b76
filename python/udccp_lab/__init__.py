"""Runs the experiments of udccp on a Dask cluster."""

from udccp_lab.laboratory import Amount, Laboratory, LaboratoryError
from udccp_lab.runner import Outcome, run

__all__ = ["Amount", "Laboratory", "LaboratoryError", "Outcome", "run"]
