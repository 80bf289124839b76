# pyright: basic
# (distributed has no types)
"""``python -m udccp.dask``: the command line."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from distributed import Client, LocalCluster

from udccp.dask.laboratory import Amount, Laboratory, LaboratoryError
from udccp.dask.runner import run

UNREACHABLE = 5


def positive(text: str) -> int:
    """A whole number from 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m udccp.dask", description="Run experiments of udccp on a Dask cluster."
    )
    parser.add_argument("names", nargs="*", metavar="EXPERIMENT", help="names, or paths of files")
    parser.add_argument("--all", action="store_true", help="every experiment of the folder")
    parser.add_argument("--quick", action="store_true", help="fewer (and shorter) runs")
    parser.add_argument("--runs", type=positive, metavar="N", help="this many runs of each point")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--workers", type=positive, metavar="N", help="workers on this machine")
    where.add_argument("--scheduler", metavar="ADDRESS", help="a scheduler, as tcp://host:8786")
    parser.add_argument("--retries", type=int, default=2, metavar="N", help="tries again (2)")
    parser.add_argument("--experiments", type=Path, metavar="DIR", help="no built-in ones then")
    parser.add_argument("--store", type=Path, default=Path("results/lab.sqlite"), metavar="FILE")
    program = os.environ.get("UDCCP", "udccp")
    parser.add_argument("--udccp", default=program, metavar="PATH", help="the program here")
    parser.add_argument("--worker-udccp", metavar="PATH", help="the program as workers call it")
    args = parser.parse_args(given)
    if bool(args.names) == args.all:
        parser.error("name experiments, or give --all")
    return args


def connect(args: argparse.Namespace) -> Client:
    """The cluster that was asked for: a scheduler elsewhere, or workers of our own."""
    if args.scheduler:
        return Client(args.scheduler, timeout="10s")
    workers = args.workers or os.cpu_count() or 1
    # A worker waits for a process of its own: threads are enough, and start at once.
    cluster = LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=False, dashboard_address=":0"
    )
    return Client(cluster)


def main(given: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code, as ``udccp`` has them."""
    args = arguments(given)
    laboratory = Laboratory(args.udccp, args.experiments, args.store)
    amount = Amount(args.quick, args.runs)
    try:
        client = connect(args)
    except (OSError, ValueError) as error:
        print(f"error: no scheduler at {args.scheduler}: {error}", file=sys.stderr)
        print(
            "hint: start one with `dask scheduler`, and workers with `dask worker ADDRESS`",
            file=sys.stderr,
        )
        return UNREACHABLE
    try:
        with client:
            outcome = run(
                client,
                laboratory,
                args.names,
                amount,
                worker_udccp=args.worker_udccp,
                retries=args.retries,
            )
        if outcome.failed:
            failed = "\n  ".join(outcome.failed[:10])
            print(f"error: {len(outcome.failed)} runs failed:\n  {failed}", file=sys.stderr)
            print(
                "hint: the others are stored; the same command tries these again", file=sys.stderr
            )
            return 1
        print(laboratory.tables(args.names, amount), end="")
    except LaboratoryError as error:
        print(error, file=sys.stderr)
        return error.code
    return 0


if __name__ == "__main__":
    sys.exit(main())
