"""The protocols of flows, and the colour and marker of each in figures."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache

from udccp import _native


@dataclass(frozen=True)
class Protocol:
    """One protocol.

    Parameters
    ----------
    name
        Its name in scenarios: ``dccp/ccid2``.
    short, title
        The name in a CSV, and in a report.
    about
        What it is, and where it is defined.
    colour
        Its colour in figures, as ``#rrggbb``.
    marker
        Its marker, by its name in reports: ``Circle``.
    outline
        Corners of the marker, shape ``(corners, 2)``, y downwards; empty for the circle, the
        cross, the plus and the arch.
    """

    name: str
    short: str
    title: str
    about: str
    colour: str
    marker: str
    outline: list[list[float]]


@cache
def protocols() -> dict[str, Protocol]:
    """All protocols by name.

    Examples
    --------
    >>> protocols()["dccp/ccid2"].title
    'DCCP CCID 2'
    """
    return {row["name"]: Protocol(**row) for row in json.loads(_native.protocols())}
