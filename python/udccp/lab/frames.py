"""Makes polars or pandas frames, depending on which is installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Union

if TYPE_CHECKING:
    import pandas
    import polars

Library: TypeAlias = Literal["polars", "pandas"]
Frame: TypeAlias = Union["polars.DataFrame", "pandas.DataFrame"]


def library_of(wanted: Library | None = None) -> Library:
    """Return the library to make frames with.

    Raises
    ------
    ImportError
        The library is not installed, or neither of the two is.
    """
    for library in ("polars", "pandas"):
        if wanted in (None, library) and find_spec(library) is not None:
            return library
    asked = wanted or "polars or pandas"
    raise ImportError(f"frames need {asked}: pip install 'udccp[{wanted or 'polars'}]'")


def make_frame(columns: dict[str, list[Any]], library: Library | None = None) -> Frame:
    """Make a frame of columns of equal length.

    Parameters
    ----------
    columns
        Values by column name; None for a row without a value.
    library
        ``"polars"`` or ``"pandas"``; by default the one that is installed.

    Examples
    --------
    >>> frame = make_frame({"rtt_s": [0.025, 0.05], "jain": [0.99, None]}, "pandas")
    >>> frame.shape, [str(kind) for kind in frame.dtypes]
    ((2, 2), ['float64', 'float64'])
    """
    if library_of(library) == "polars":
        import polars

        # Read all rows to find the type: the first ones may have no value.
        return polars.DataFrame(columns, infer_schema_length=None, strict=False)
    import pandas

    return pandas.DataFrame(columns)
