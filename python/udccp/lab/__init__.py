"""The laboratory: scenarios and published studies, run in this process.

``run`` runs one scenario, ``run_many`` runs many on all cores. Results use the names of
``udccp sim --json`` (docs/reference/record.md).
"""

from udccp.errors import Diagnostic, RunError, ScenarioError, StoreError
from udccp.lab import scenario
from udccp.lab._run import Source, Value, prepare, run, run_many
from udccp.lab.protocols import Protocol, protocols
from udccp.lab.record import Record, runs_frame
from udccp.lab.scenario import Scenario
from udccp.lab.study import STORE, Cell, Experiment, Table, experiment, experiments, load

__all__ = [
    "STORE",
    "Cell",
    "Diagnostic",
    "Experiment",
    "Protocol",
    "Record",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Source",
    "StoreError",
    "Table",
    "Value",
    "experiment",
    "experiments",
    "load",
    "prepare",
    "protocols",
    "run",
    "run_many",
    "runs_frame",
    "scenario",
]
