"""Quantities, which are texts with their units as in files, and what all tables share.

Made from docs/reference/scenario.schema.json by python/tools/scenario_types.py; do not edit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar, TypeAlias, cast

#: A time with its unit: ns, us, ms, s or min: "25 ms".
Time: TypeAlias = str
#: A rate with its unit: bit/s, kbit/s, Mbit/s or Gbit/s: "100 Mbit/s".
Rate: TypeAlias = str
#: A size with its unit: B, kB, MB or GB: "1500 B".
Size: TypeAlias = str
#: A share in percent, 0 to 100: "1.5 %".
Percent: TypeAlias = str
#: A number of packets: "100 packets".
Packets: TypeAlias = str
#: The limit of a queue: a multiple of the bandwidth-delay product of the path, packets, bytes, or
#: "unlimited": "1.0 bdp".
Limit: TypeAlias = str
#: A first window: "rfc3390", "rfc6928" or a number of packets: "3 packets".
StartWindow: TypeAlias = str
#: A service code of DCCP: "SC:PERF".
Service: TypeAlias = str


class Table:
    """A table of a scenario file."""

    _names: ClassVar[Mapping[str, str]] = {}
    _fixed: ClassVar[Mapping[str, Any]] = {}

    def to_dict(self) -> dict[str, Any]:
        """The table as a mapping by the keys of a file, without what is absent."""
        table: dict[str, Any] = dict(self._fixed)
        for field in fields(self):  # type: ignore[arg-type]  # every subclass is a dataclass
            value = getattr(self, field.name)
            if value is not None:
                table[self._names.get(field.name, field.name)] = to_plain(value)
        return table


def to_plain(value: Any) -> Any:  # noqa: ANN401 (a JSON value)
    """Tables, mappings and sequences as dicts and lists; entries that are None are left out."""
    if isinstance(value, Table):
        return value.to_dict()
    if isinstance(value, Mapping):
        table = cast("Mapping[Any, Any]", value)  # type: ignore[redundant-cast]
        return {str(key): to_plain(item) for key, item in table.items() if item is not None}
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = cast("Sequence[Any]", value)  # type: ignore[redundant-cast]
        return [to_plain(item) for item in items]
    return value
