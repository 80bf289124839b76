"""The base class of a scenario's tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar, cast


class Table:
    """A table of a scenario file."""

    _names: ClassVar[Mapping[str, str]] = {}
    _fixed: ClassVar[Mapping[str, Any]] = {}

    def to_dict(self) -> dict[str, Any]:
        """The table as a mapping with a file's keys, without missing values."""
        table: dict[str, Any] = dict(self._fixed)
        for field in fields(self):  # type: ignore[arg-type]  # every subclass is a dataclass
            value = getattr(self, field.name)
            if value is not None:
                table[self._names.get(field.name, field.name)] = to_plain(value)
        return table


def to_plain(value: Any) -> Any:  # noqa: ANN401 (a JSON value)
    """Convert tables, mappings and sequences to dicts and lists, without entries that are None."""
    if isinstance(value, Table):
        return value.to_dict()
    if isinstance(value, Mapping):
        table = cast("Mapping[Any, Any]", value)  # type: ignore[redundant-cast]
        return {str(key): to_plain(item) for key, item in table.items() if item is not None}
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = cast("Sequence[Any]", value)  # type: ignore[redundant-cast]
        return [to_plain(item) for item in items]
    return value
