"""Quantities, which are texts with their units as in files.

Made from docs/reference/scenario.schema.json by python/tools/scenario_types.py; do not edit.
"""

from __future__ import annotations

from typing import TypeAlias

#: A time with its unit: ns, us, ms, s, min or h: "25 ms".
Time: TypeAlias = str
#: A rate with its unit: bit/s, kbit/s, Mbit/s or Gbit/s: "100 Mbit/s".
Rate: TypeAlias = str
#: A size with its unit: B, kB, MB or GB: "1500 B".
Size: TypeAlias = str
#: A share in percent, 0 to 100: "1.5 %".
Percent: TypeAlias = str
#: A number of packets: "100 packets".
Packets: TypeAlias = str
#: The limit of a queue: a multiple of the bandwidth-delay product of the path, optionally plus
#: packets ("0.5 bdp + 128 packets"), packets, bytes, or "unlimited": "1.0 bdp".
Limit: TypeAlias = str
#: A first window: "rfc3390", "rfc6928" or a number of packets: "3 packets".
StartWindow: TypeAlias = str
#: A service code of DCCP: "SC:PERF".
Service: TypeAlias = str
