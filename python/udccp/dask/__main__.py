# pyright: basic
# (distributed has no types)
"""``python -m udccp.dask``: the command line."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from distributed import Client, LocalCluster

from udccp.dask.runner import run
from udccp.errors import ScenarioError, StoreError
from udccp.lab.study import STORE, Experiment, experiment, experiments

BAD_INPUT = 4
UNREACHABLE = 5


def positive(text: str) -> int:
    """Parse a whole number of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
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
    parser.add_argument("--store", default=STORE, metavar="FILE", help="the result store")
    args = parser.parse_args(given)
    if bool(args.names) == args.all:
        parser.error("name experiments, or give --all")
    return args


def load(args: argparse.Namespace) -> list[Experiment]:
    """Read the experiments named on the command line."""
    folder: Path | None = args.experiments
    if folder is None:
        # Local files first, as in `experiment`.
        own = (path.stem for path in Path("experiments").glob("*.toml"))
        names = args.names or sorted({*own, *experiments()})
    else:
        known = sorted(path.stem for path in folder.glob("*.toml"))
        names = [
            str(folder / f"{name}.toml") if name in known else name for name in args.names or known
        ]
    return [experiment(n, store=args.store, quick=args.quick, runs=args.runs) for n in names]


def connect(args: argparse.Namespace) -> Client:
    """Connect to a scheduler, or start local workers."""
    if args.scheduler:
        return Client(args.scheduler, timeout="10s")
    # Runs release the interpreter lock, so threads of one process suffice, and they start at once.
    workers = args.workers or os.cpu_count() or 1
    cluster = LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=False, dashboard_address=":0"
    )
    return Client(cluster)


def main(given: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code, with the same meaning as of ``udccp``."""
    args = arguments(given)
    try:
        campaigns = load(args)
    except ScenarioError as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD_INPUT
    try:
        client = connect(args)
    except (OSError, ValueError) as error:
        print(f"error: no scheduler at {args.scheduler}: {error}", file=sys.stderr)
        print(
            "hint: start one with `dask scheduler`, and workers with `dask worker ADDRESS`",
            file=sys.stderr,
        )
        return UNREACHABLE
    failed: list[str] = []
    try:
        with client:
            for campaign in campaigns:
                failed += run(client, campaign, retries=args.retries).failed
        if not failed:
            for campaign in campaigns:
                if len(campaigns) > 1:
                    print(f"\n== {campaign.id}: {campaign.asks}\n")
                print(campaign.text().rstrip())
            return 0
    except StoreError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    lines = "\n  ".join(failed[:10])
    print(f"error: {len(failed)} runs failed:\n  {lines}", file=sys.stderr)
    print("hint: the others are stored; the same command tries these again", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
